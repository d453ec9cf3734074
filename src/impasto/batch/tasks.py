"""What is to be made: a grid of pictures and methods, or a table of jobs."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Any

from impasto.batch import storage
from impasto.recipe import PRESETS, Recipe
from impasto.types import ImpastoError

# Of what counts as a picture in a folder; other files are passed over.
SUFFIXES = (".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
LONGEST_NAME = 200  # bytes: file systems end at 255, and a suffix follows
SETTINGS = tuple(each.name for each in fields(Recipe))
COLUMNS = ("content", "style", "name", "preset", *SETTINGS)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One picture to make."""

    name: str  # of its file: depends on the task alone, never on its neighbors
    label: str  # what it is among those of the same content and style
    content: str
    style: str
    recipe: Recipe

    def to_dict(self) -> dict[str, Any]:
        """The task as a row of a table."""
        usual = Recipe().to_dict()
        told = {key: value for key, value in self.recipe.to_dict().items() if value != usual[key]}
        inputs = {"content": self.content, "style": self.style}
        return {"name": self.name, **inputs, "method": self.recipe.method, **told}


def grid(
    contents: str, styles: str, methods: Iterable[str], *, preset: str = "", **common: Any
) -> list[Task]:
    """Every content in every style by every method."""
    common, style_files = _placed(common, ""), pictures(styles)
    return _distinct(
        _task({"content": content, "style": style, "method": method}, preset, common)
        for content in pictures(contents)
        for style in style_files
        for method in methods
    )


def table(place: str, *, preset: str = "", **common: Any) -> list[Task]:
    """The jobs of a CSV or JSON file; relative paths begin at its folder."""
    common, folder = _placed(common, ""), storage.parent(place)

    def read(number: int, row: dict[str, Any]) -> Task:
        try:
            return _task(_placed(row, folder), preset, common)
        except ImpastoError as error:
            raise ImpastoError(f"{place}, job {number}: {error}") from None

    tasks = _distinct(read(number, row) for number, row in enumerate(_rows(place), start=1))
    if not tasks:
        raise ImpastoError(f"{place} lists no jobs")
    return tasks


def pictures(folder: str) -> list[str]:
    """The pictures in a folder, by name; a single picture is one too."""
    folder = storage.absolute(folder)
    if PurePosixPath(folder).suffix.lower() in SUFFIXES:
        return [folder]
    names = [
        name
        for name in storage.listing(folder)
        if PurePosixPath(name).suffix.lower() in SUFFIXES and not name.startswith(".")
    ]
    if not names:
        raise ImpastoError(f"there is no picture in {folder} ({', '.join(SUFFIXES)})")
    return [storage.join(folder, name) for name in names]


def _task(row: Mapping[str, Any], preset: str, common: Mapping[str, Any]) -> Task:
    """A task from what its row says, on top of what all have in common."""
    for column in row:
        if column not in COLUMNS:
            raise ImpastoError(f"unknown column '{column}'; known: {', '.join(COLUMNS)}")
    for column in ("content", "style"):
        if not isinstance(row.get(column), str):
            raise ImpastoError(f"the {column} is missing")
    own = {name: row[name] for name in SETTINGS if name in row}
    named = str(row.get("preset") or "")
    if named in PRESETS:  # what a row says, also by a preset, wins over the flags
        recipe = Recipe.from_dict({**common, **PRESETS[named], **own})
    else:
        recipe = Recipe.of(named or preset, **{**common, **own})
    label = _label(recipe.method, named, own)
    words = f"{stem(row['content'])}--{stem(row['style'])}--{label}"
    return Task(
        name=_file_name(str(row.get("name") or words)),
        label=label,
        content=row["content"],
        style=row["style"],
        recipe=recipe,
    )


def _label(method: str, preset: str, settings: Mapping[str, Any]) -> str:
    """What a row says beside its pictures."""
    told = [
        f"{key.replace('_', '-')}-{stem(value) if key in ('start', 'weights') else value}"
        for key, value in settings.items()
        if key != "method"
    ]
    return "--".join([method, *([preset] if preset else []), *told])


def stem(place: str) -> str:
    """The name of a picture without folder and suffix."""
    return PurePosixPath(place.replace("\\", "/")).stem


def _file_name(words: str) -> str:
    """A name for a file on any system."""
    name = re.sub(r"[^\w.+=-]+", "_", words).strip("._") or "_"
    if len(name.encode()) <= LONGEST_NAME:
        return name
    cut = name.encode()[: LONGEST_NAME - 9].decode(errors="ignore")
    return f"{cut}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


def _distinct(tasks: Iterable[Task]) -> list[Task]:
    """The tasks, if each has a name of its own, also where upper and lower case are the same."""
    known: dict[str, Task] = {}
    for task in tasks:
        other = known.setdefault(task.name.casefold(), task)
        if other is not task:
            raise ImpastoError(
                f"two jobs would both be called {task.name}: {other.content} × {other.style} and "
                f"{task.content} × {task.style}; rename a picture, or list the jobs in a table "
                f"with a column 'name'"
            )
    return list(known.values())


def _rows(place: str) -> list[dict[str, Any]]:
    text = storage.read(place)
    try:
        if place.lower().endswith(".json"):
            rows = json.loads(text)
            if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
                raise ValueError("not a list of objects")
            return rows
        lines = csv.DictReader(io.StringIO(text.decode("utf-8-sig")), strict=True)
        rows = [{k: v for k, v in row.items() if v not in ("", None)} for row in lines]
        if any(None in row for row in rows):  # where DictReader puts what has no column
            raise ValueError("a row has more cells than the first line names")
        return rows
    except (ValueError, RecursionError, csv.Error) as problem:
        raise ImpastoError(f"{place} is no table of jobs ({problem}); see docs/batch.md") from None


def _placed(row: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The row with paths that mean the same in any working directory, on any machine."""
    placed = dict(row)
    for key in ("content", "style", "start", "weights"):
        value = row.get(key)
        if not isinstance(value, str) or not value:
            continue
        # The starts 'color' and 'noise' and the weights 'oxford' are names, not files.
        if key in ("content", "style") or re.search(r"[./\\]", value):
            placed[key] = storage.absolute(storage.join(folder, value))
    return placed
