"""``impasto stylize``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from impasto.cli import flags
from impasto.types import ImpastoError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("content", metavar="CONTENT", help="the picture to paint")
    parser.add_argument("style", metavar="STYLE", help="the picture whose style it gets")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="PNG, JPEG, WebP or TIFF, by suffix"
    )
    parser.add_argument("--report", default="", metavar="FILE.json", help="record and all losses")
    parser.add_argument(
        "--checkpoint", default="", metavar="FILE", help="where an interrupted run can go on from"
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")
    flags.add_recipe(parser)
    parser.epilog = (
        "Ctrl-C ends early and saves the best picture so far. "
        "The picture carries its recipe: see `impasto rerun`."
    )


def run(arguments: argparse.Namespace) -> int:
    """Paint and save."""
    began = time.monotonic()
    # What can be wrong with words and places is found before torch is loaded.
    from impasto import files, imagefile
    from impasto.recipe import Recipe

    given = flags.settings_of(arguments)
    recipe = Recipe.of(arguments.preset, **given)
    imagefile.check_writable(arguments.output)
    for path in filter(None, (arguments.report, arguments.checkpoint)):
        files.check_place(path)
    check_apart(
        [arguments.content, arguments.style, recipe.start, recipe.weights],
        [arguments.output, arguments.report, arguments.checkpoint],
    )

    from impasto import api, runfile
    from impasto.cli.painting import fetch_missing, paint

    if arguments.checkpoint and Path(arguments.checkpoint).exists():
        runfile.load(arguments.checkpoint)  # anything else is not ours to replace

    if not arguments.quiet and (idle := flags.listed(given.keys() & recipe.idle)):
        print(f"impasto: without effect on method '{recipe.method}': {idle}", file=sys.stderr)
    fetch_missing(recipe, quiet=arguments.quiet)
    job = api.open_job(arguments.content, arguments.style, recipe, began=began)
    _, code = paint(
        job,
        output=arguments.output,
        report=arguments.report,
        checkpoint=arguments.checkpoint,
        quiet=arguments.quiet,
    )
    return code


def check_apart(read: list[str], written: list[str]) -> None:
    """No file may be written twice, and only the picture may replace one that is read."""
    taken = {Path(path).resolve() for path in read}
    for number, path in enumerate(filter(None, written)):
        place = Path(path).resolve()
        if number and place in taken:
            raise ImpastoError(f"{path} is used twice; name another file")
        taken.add(place)
