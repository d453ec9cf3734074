"""``impasto methods``."""

from __future__ import annotations

import argparse
import json

from impasto.recipe import EVERY_METHOD, default_layers


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--json", action="store_true", help="for programs")


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    if arguments.json:
        table = {
            name: {"description": method.description, "layers": default_layers(name)}
            for name, method in EVERY_METHOD.items()
        }
        print(json.dumps(table, indent=1))
    else:
        for name, method in EVERY_METHOD.items():
            print(f"{name:14} {method.description}")
    return 0
