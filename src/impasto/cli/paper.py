"""``impasto paper``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from impasto.cli.progress import Progress
from impasto.experiments import EXPERIMENTS
from impasto.types import ImpastoError

if TYPE_CHECKING:
    from impasto.experiments.plan import Plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of the report")
    parser.add_argument(
        "--only", default="", metavar="NAME,…", help="these experiments (below); others stay"
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller and shorter: about ten minutes on two cores"
    )
    parser.add_argument(
        "--size", type=int, metavar="X", help="long side of the pictures [256; quick: 128]"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="of a picture [60; quick: 30]")
    parser.add_argument(
        "--contents", default="", metavar="DIR", help="photos of your own [those that come along]"
    )
    parser.add_argument("--styles", default="", metavar="DIR", help="paintings of your own")
    parser.add_argument("--weights", default="oxford", metavar="X", help="as in stylize")
    parser.add_argument("--decoder", default="auto", metavar="X", help="as in stylize")
    parser.add_argument("--device", default="auto", metavar="X", help="as in stylize")
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")
    lines = [f"  {name:14} {text}" for name, text in EXPERIMENTS.items()]
    parser.epilog = "\n".join(
        [
            "experiments:",
            *lines,
            "",
            "Data (JSON, CSV), figures (PNG, SVG) and report.html appear in the folder one by one.",
            "Ctrl-C loses only the picture at hand: the same command goes on, and does nothing",
            "where all is done. Delete NAME.json to have an experiment measured again.",
        ]
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the experiments and the report."""
    from impasto.experiments import figures
    from impasto.experiments.reproduction import REPORT, Reproduction, chosen

    names = chosen(arguments.only)
    figures.check()
    made = Reproduction(plan=plan_of(arguments), folder=folder_of(arguments.output))
    progress = Progress(arguments.quiet)
    try:
        for tick in made.run(names):
            progress.show(tick.share, tick.text)
    except KeyboardInterrupt:
        progress.break_line()
        print("impasto: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    progress.break_line()
    if not arguments.quiet:
        print(f"the report is {(made.folder / REPORT).resolve()}")
    return 0


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan that the flags tell."""
    from impasto.experiments.plan import QUICK, Plan, checked, folder_pairs, sample_pairs

    if bool(arguments.contents) != bool(arguments.styles):
        raise ImpastoError("--contents and --styles come together: a folder of each")
    own = {name: getattr(arguments, name) for name in ("size", "steps")}
    settings = {**(QUICK if arguments.quick else {}), **{k: v for k, v in own.items() if v}}
    pairs = (
        folder_pairs(arguments.contents, arguments.styles) if arguments.contents else sample_pairs()
    )
    machine = {name: getattr(arguments, name) for name in ("weights", "decoder", "device")}
    return Plan(pairs=pairs, settings=tuple(machine.items()), **checked(settings))


def folder_of(path: str) -> Path:
    """The folder to write into, made if it is not there."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ImpastoError(f"{path} cannot be a folder: {problem.strerror}") from None
    return folder
