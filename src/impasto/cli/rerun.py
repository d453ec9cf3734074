"""``impasto rerun``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from impasto.types import ImpastoError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("picture", metavar="PICTURE", help="a picture that Impasto made")
    parser.add_argument("-o", "--output", metavar="OUT", help="[PICTURE-again.png]")
    add_inputs(parser)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Where the pictures are now, if they have moved."""
    for name in ("content", "style", "start"):
        parser.add_argument(f"--{name}", metavar="FILE", help=f"the {name}, if it has moved")
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")


def run(arguments: argparse.Namespace) -> int:
    """Make the picture again and say whether every pixel is the same."""
    from impasto import imagefile

    record = imagefile.read_record(arguments.picture)
    picture = Path(arguments.picture)
    output = arguments.output or str(picture.with_name(f"{picture.stem}-again.png"))
    imagefile.check_writable(output)

    from impasto import api
    from impasto.cli.painting import paint

    recipe = api.repeatable(record)
    job = api.open_job(**inputs_of(record, arguments, picture.parent), recipe=recipe)
    check_inputs(record, job)
    result, code = paint(
        job, output=output, quiet=arguments.quiet, until=int(record["steps"]["done"])
    )
    if result is not None and code == 0 and not arguments.quiet:
        same = result.record["pixels"] == record.get("pixels")
        print("every pixel is the same" if same else _differences(record, result.record))
    return code


def inputs_of(
    record: dict[str, Any], arguments: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """The paths of the pictures: as given now, or as they were."""
    found = {}
    for name, source in record["inputs"].items():
        path = getattr(arguments, name) or source["path"]
        if not path:
            raise ImpastoError(f"the {name} was not a file; name one with --{name}")
        # As it was named then, or beside the file that names it.
        places = [Path(path), folder / path, folder / Path(path).name]
        found[name] = next((str(place) for place in places if place.is_file()), "")
        if not found[name]:
            raise ImpastoError(f"the {name} {path} is not here; say where with --{name} FILE")
    return found


def check_inputs(record: dict[str, Any], job: Any) -> None:
    """Warn where a picture is not the one that the record tells of."""
    for name, source in job.sources.items():
        if source.sha256 != record["inputs"][name]["sha256"]:
            print(f"impasto: {source.path} is not the same {name} as then", file=sys.stderr)


def _differences(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What may explain that pixels differ."""
    changed = [
        f"{key} {before['machine'].get(key)} → {after['machine'][key]}"
        for key in after["machine"]
        if before["machine"].get(key) != after["machine"][key]
    ]
    if before.get("impasto") != after["impasto"]:
        changed.append(f"impasto {before.get('impasto')} → {after['impasto']}")
    if before.get("network") != after["network"]:
        changed.append("another network")
    if before.get("decoders") != after.get("decoders"):
        changed.append("another decoder")
    return "pixels differ" + (f": {', '.join(changed)}" if changed else "")
