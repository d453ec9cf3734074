"""Results in a folder as a grid: pairs of a content and a style, each painted by all methods.

What a picture is follows from the record inside it, so any folder of Impasto's results will do.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from impasto import imagefile
from impasto.types import ImpastoError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")
MAX_FILES = 100_000  # in a folder: more are not looked through
# Settings that say how a picture was computed and not how it looks.
ELSEWHERE = ("device", "memory")


class Origin(NamedTuple):
    """A picture that went into others: its hash, and its path as it was then."""

    sha256: str
    path: str


class Result(NamedTuple):
    """A picture that Impasto made."""

    file: Path
    content: Origin
    style: Origin
    recipe: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A pair for which every method has a result."""

    content: Path
    style: Path
    results: tuple[Path, ...]  # in the order of the grid's methods


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What a folder holds for a study."""

    methods: tuple[str, ...]
    cells: tuple[Cell, ...]
    incomplete: tuple[str, ...]  # sentences on pairs that were left out


def read(folder: Path, *, methods: tuple[str, ...] = (), images: Path | None = None) -> Grid:
    """The grid in a folder, of all its methods or those named; inputs may be in ``images``."""
    results = list(_results(folder))
    if not results:
        raise ImpastoError(f"{folder} holds no pictures made by Impasto; make some: impasto batch")
    labels = _labels([result.recipe for result in results])
    known = tuple(dict.fromkeys(sorted(labels)))
    if unknown := [name for name in methods if name not in known]:
        raise ImpastoError(f"no results of {', '.join(unknown)}; {folder} has: {', '.join(known)}")
    return _arranged(results, labels, methods or known, [folder, *([images] if images else [])])


def _arranged(
    results: list[Result], labels: list[str], methods: tuple[str, ...], folders: list[Path]
) -> Grid:
    """The complete pairs in the order of their names, the others told."""
    found: dict[tuple[str, str], dict[str, Result]] = {}
    for result, label in zip(results, labels, strict=True):
        pair = found.setdefault((result.content.sha256, result.style.sha256), {})
        if label in methods:
            pair.setdefault(label, result)
    cells, incomplete = [], []
    for made in found.values():
        missing = [name for name in methods if name not in made]
        if missing:
            name = " × ".join(_words(next(iter(made.values())))) if made else "a pair"
            incomplete.append(f"{name} has no {', '.join(missing)}")
            continue
        one = made[methods[0]]
        content, style = (_input(origin, one, folders) for origin in (one.content, one.style))
        files = tuple(made[name].file for name in methods)
        cells.append(Cell(content=content, style=style, results=files))
    if not cells:
        raise ImpastoError(f"no pair has a result of every method: {'; '.join(incomplete[:3])}")
    cells.sort(key=lambda cell: (cell.content.name, cell.style.name, cell.results))
    return Grid(methods=methods, cells=tuple(cells), incomplete=tuple(incomplete))


def _words(result: Result) -> tuple[str, str]:
    return Path(result.content.path).stem, Path(result.style.path).stem


def _pictures(folder: Path) -> Iterator[Path]:
    """Files that may be pictures, in the order of their names, not through symbolic links."""
    if not folder.is_dir():
        raise ImpastoError(f"there is no folder {folder}")
    seen = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(place) / name
            seen += 1
            if seen > MAX_FILES:
                raise ImpastoError(
                    f"{folder} has more than {MAX_FILES:,} files; name a smaller one"
                )


def _results(folder: Path) -> Iterator[Result]:
    """All pictures with a record; those without are inputs, or another tool's."""
    for file in _pictures(folder):
        try:
            record = imagefile.read_record(file)
            recipe, inputs = record["recipe"], record["inputs"]
            content, style = (
                Origin(str(inputs[name]["sha256"]), str(inputs[name]["path"]))
                for name in ("content", "style")
            )
            str(recipe["method"]), recipe.items()
        except (ImpastoError, KeyError, TypeError, AttributeError):
            continue
        yield Result(file, content, style, recipe)


def _labels(recipes: list[Mapping[str, Any]]) -> list[str]:
    """The method of each recipe, with the settings in which it differs from its like."""
    values: dict[str, dict[str, set[str]]] = {}
    for recipe in recipes:
        of_method = values.setdefault(str(recipe["method"]), {})
        for name, value in recipe.items():
            of_method.setdefault(name, set()).add(_text(value))
    labels = []
    for recipe in recipes:
        varying = values[str(recipe["method"])]
        told = [
            f"{name}={_text(value)}"
            for name, value in recipe.items()
            if len(varying[name]) > 1 and name not in ELSEWHERE
        ]
        labels.append(" ".join([str(recipe["method"]), *told]))
    return labels


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _input(origin: Origin, result: Result, folders: list[Path]) -> Path:
    """The file of an input: where it was, beside its result, or anywhere in the folders."""
    named = Path(origin.path)
    near = [result.file.parent, *folders, *(folder.resolve().parent for folder in folders)]
    places = [
        named,
        *(folder / named for folder in near),
        *(folder / named.name for folder in near),
    ]
    for place in places:
        if origin.path and place.is_file() and _sha256(place) == origin.sha256:
            return place
    for folder in folders:
        for place in _pictures(folder):
            if _sha256(place) == origin.sha256:
                return place
    raise ImpastoError(
        f"{origin.path or 'an input'}, from which {result.file} was made, is not here or has "
        "changed; say where with --images DIR"
    )


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
