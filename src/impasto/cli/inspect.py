"""``impasto inspect``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from impasto.types import ImpastoError

SUFFIXES = (".png", ".svg")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("image", metavar="IMAGE", help="any picture, also another tool's")
    parser.add_argument("--content", required=True, metavar="FILE", help="what it was before")
    parser.add_argument("--style", required=True, metavar="FILE", help="what it should be like")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="the figure: PNG or SVG, by suffix"
    )
    parser.add_argument("--json", default="", metavar="FILE", help="the numbers of the figure")
    parser.add_argument(
        "--size", default="original", metavar="X", help="long side to look at [the picture's]"
    )
    parser.add_argument("--style-size", default="0", metavar="X", help="as in stylize")
    parser.add_argument("--weights", default="oxford", metavar="X", help="as in stylize")
    parser.add_argument("--device", default="auto", metavar="X", help="as in stylize")
    parser.epilog = (
        "Gray is the content, red the picture, blue the style: where red lies on blue, the\n"
        "features are aligned. Below, what is left of the error of each moment; cmd matches the\n"
        "first five, other methods two."
    )


def run(arguments: argparse.Namespace) -> int:
    """Draw the figure."""
    from impasto import files
    from impasto.experiments import figures

    suffix = Path(arguments.output).suffix.lower()
    if suffix not in SUFFIXES:
        raise ImpastoError(f"{arguments.output} must end in {' or '.join(SUFFIXES)}")
    figures.check()
    taken = {Path(path).resolve() for path in (arguments.image, arguments.content, arguments.style)}
    for path in filter(None, (arguments.output, arguments.json)):
        files.check_place(path)
        if Path(path).resolve() in taken:
            raise ImpastoError(f"{path} is used twice; name another file")
        taken.add(Path(path).resolve())

    from impasto.experiments import inspection

    data = inspection.inspect(
        arguments.image,
        arguments.content,
        arguments.style,
        size=arguments.size,
        style_size=arguments.style_size,
        weights=arguments.weights,
        device=arguments.device,
    )
    with figures.look():
        drawn = figures.rendered(inspection.draw(data))
    files.write_atomically(arguments.output, drawn[suffix])
    if arguments.json:
        text = json.dumps(data, indent=1) + "\n"
        files.write_atomically(arguments.json, text.encode())
    print(inspection.sentence(data))
    return 0
