"""The command line: every command is a module of this package."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from types import ModuleType

from impasto import __version__, process
from impasto.types import ImpastoError

COMMANDS: dict[str, str] = {
    "stylize": "paint a picture in the style of another",
    "batch": "paint many pictures: a grid or a table of jobs, here or on a cluster",
    "score": "measure how well any picture has the style and the content",
    "inspect": "draw the features of a picture before, after and in its style",
    "rerun": "make a picture again from the record inside it",
    "resume": "continue an interrupted run from its checkpoint",
    "methods": "list the ways to measure style",
    "weights": "list, verify or fetch the networks",
    "train-decoders": "teach the decoders of the feed-forward methods on your own pictures",
    "doctor": "check this machine: versions, device, weights, speed",
    "studio": "paint in the browser",
    "study": "let people vote on results, and report what they chose",
    "paper": "reproduce the experiments of the paper as one report",
    "demo": "paint a first picture from images that come along",
}
EPILOG = """examples:
  impasto demo
  impasto studio
  impasto stylize photo.jpg painting.jpg -o out.png
  impasto stylize photo.jpg painting.jpg -o out.png --size 1024 --alpha 0.01 --budget 2m
  impasto score out.png --content photo.jpg --style painting.jpg

`impasto COMMAND --help` tells more about a command."""


def main(words: list[str] | None = None) -> int:
    """Run a command: its exit code.

    0 done, 1 a problem with the input, 2 wrong usage, 3 some jobs failed, 130 interrupted.
    """
    words = sys.argv[1:] if words is None else words
    process.tune()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no ² shows a ?
            stream.reconfigure(errors="replace")
    arguments = _parser(words[:1]).parse_args(words)
    if not arguments.command:
        _parser([]).print_help()
        return 2
    module = _module(arguments.command)
    try:
        return module.run(arguments)
    except ImpastoError as error:
        print(f"impasto: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise  # torch has no error of its own for a CPU without memory
        print("impasto: not enough memory; try a smaller --size", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has left
        return 1
    except KeyboardInterrupt:
        print("impasto: interrupted", file=sys.stderr)
        return 130


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"impasto.cli.{command.replace('-', '_')}")


def _parser(chosen: list[str]) -> argparse.ArgumentParser:
    """The parser of the chosen command alone, so that no other module is imported."""
    parser = argparse.ArgumentParser(
        prog="impasto",
        description="Paint the content of one picture in the style of another.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"impasto {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in chosen:
            _module(name).configure(command)
    return parser
