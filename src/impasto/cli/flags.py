"""Flags made from the recipe: a new field is a new flag."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from impasto.recipe import PRESETS, Recipe


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """A flag for every setting; those that were not given are left out of the result."""
    parser.add_argument(
        "--preset",
        choices=list(PRESETS),
        default="",
        help="settings to begin with; flags change them. fast: 27 steps, in less than half the "
        "time; balanced: 60, the default; best: up to 200; paper: the procedure of the paper, 500 "
        "steps of Adam",
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for each in fields(Recipe):
        meta = each.metadata
        if meta["group"] not in groups:
            groups[meta["group"]] = parser.add_argument_group(meta["group"])
        many = isinstance(each.default, tuple)
        default = f" [{each.default}]" if each.default not in ((), 0.0) else ""
        groups[meta["group"]].add_argument(
            flag(each.name),
            dest=each.name,
            default=argparse.SUPPRESS,
            metavar=meta["placeholder"] or (None if meta["choices"] else "X"),
            choices=None if many or meta["placeholder"] else meta["choices"] or None,
            help=meta["help"].replace("%", "%%") + default,
        )


def flag(name: str) -> str:
    """The flag of a setting."""
    return f"--{name.replace('_', '-')}"


def listed(names: Iterable[str]) -> str:
    """The flags of some settings, for a sentence."""
    return ", ".join(flag(name) for name in sorted(names))


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given, as they were written."""
    return {
        each.name: getattr(arguments, each.name)
        for each in fields(Recipe)
        if hasattr(arguments, each.name)
    }
