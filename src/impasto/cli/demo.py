"""``impasto demo``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from impasto.samples import PAINTINGS, PHOTOS, locate

BUDGET = 80.0  # seconds: whatever the machine, a first picture comes soon


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("photo", nargs="?", default="astronaut", choices=PHOTOS, help="[astronaut]")
    parser.add_argument(
        "painting", nargs="?", default="cypresses", choices=PAINTINGS, help="[cypresses]"
    )
    parser.add_argument("-o", "--output", default="demo.png", metavar="OUT", help="[demo.png]")
    lines = [f"  {name:10} {sample.title}" for name, sample in {**PHOTOS, **PAINTINGS}.items()]
    parser.epilog = "\n".join(["pictures:", *lines])


def run(arguments: argparse.Namespace) -> int:
    """Paint a sample in the style of another."""
    began = time.monotonic()
    from impasto import imagefile
    from impasto.recipe import Recipe

    imagefile.check_writable(arguments.output)
    photo, painting = locate(arguments.photo), locate(arguments.painting)
    print(
        f"painting {PHOTOS[arguments.photo].title} like {PAINTINGS[arguments.painting].title} …",
        file=sys.stderr,
    )
    from impasto import api
    from impasto.cli.painting import paint

    job = api.open_job(photo, painting, Recipe(budget=BUDGET), began=began)
    result, code = paint(job, output=arguments.output)
    if result is not None:
        print(f"the picture is {Path(arguments.output).resolve()}")
    return code
