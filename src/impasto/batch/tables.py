"""What a batch leaves beside its pictures: records, scores, failures, contact sheets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

from PIL import Image, ImageDraw, ImageFont, ImageOps

from impasto import imagefile
from impasto.batch import storage
from impasto.batch.folder import Folder
from impasto.batch.tasks import Task, stem
from impasto.batch.worker import Outcome
from impasto.types import ImpastoError

THUMBNAIL, CAPTION, GAP = 160, 16, 8  # pixels
CELLS, ROWS = 8, 12  # of a contact sheet
SHEET = "contact-sheet-"


def write_jobs(folder: Folder, tasks: list[Task]) -> None:
    """`jobs.json`: what the batch was asked for, as a table that can be asked for again."""
    data = json.dumps([task.to_dict() for task in tasks], indent=1)
    storage.update(folder.jobs, f"{data}\n".encode())


def write_failures(folder: Folder, tasks: list[Task], failures: list[Outcome]) -> None:
    """`failures.csv`: every job that failed and why; no file where none did."""
    place = storage.join(folder.place, "failures.csv")
    if not failures:
        storage.remove(place)
        return
    by_name = {task.name: task for task in tasks}
    rows = [
        {
            "name": each.name,
            "content": by_name[each.name].content,
            "style": by_name[each.name].style,
            "method": by_name[each.name].recipe.method,
            "reason": each.reason,
        }
        for each in sorted(failures, key=lambda each: each.name)
    ]
    storage.update(place, _csv(rows))


def write_records(
    folder: Folder, tasks: list[Task], records: Mapping[str, Mapping[str, Any]]
) -> None:
    """`records.jsonl` and the contact sheets, untouched where all is as it was.

    The records are written last: where they are complete and up to date, so are the sheets.
    """
    rows = [{"name": task.name, **records[task.name]} for task in tasks if task.name in records]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    place = storage.join(folder.place, "records.jsonl")
    if len(rows) == len(tasks) and storage.exists(place) and storage.read(place) == data:
        return
    write_sheets(folder, tasks, made=records)
    storage.update(place, data)


def write_scores(
    folder: Folder,
    tasks: list[Task],
    records: Mapping[str, Mapping[str, Any]],
    scores: Mapping[str, Mapping[str, Any]],
) -> bool:
    """`scores.csv`, and `scores.parquet` if pyarrow is here: whether it is."""
    scored = [task for task in tasks if task.name in scores and task.name in records]
    rows = [
        {**told, **_measures(records[task.name], scores[task.name])}
        for task, told in zip(scored, _told(scored), strict=True)
    ]
    storage.update(storage.join(folder.place, "scores.csv"), _csv(rows))
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return False
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    storage.update(storage.join(folder.place, "scores.parquet"), sink.getvalue())
    return True


def _told(tasks: list[Task]) -> list[dict[str, Any]]:
    """The tasks as rows with the same columns: all settings that any of them changes."""
    columns = _columns(task.to_dict() for task in tasks)
    rows = [{**task.recipe.to_dict(), **task.to_dict()} for task in tasks]
    for column in columns:
        if len({type(row[column]) for row in rows}) > 1:  # 512 beside 'original'
            for row in rows:
                row[column] = str(row[column])
    return [
        {c: ",".join(map(str, row[c])) if isinstance(row[c], list) else row[c] for c in columns}
        for row in rows
    ]


def _measures(record: Mapping[str, Any], score: Mapping[str, Any]) -> dict[str, float]:
    """A score as one flat row."""
    held_out = score["held_out"]
    return {
        "width": score["size"][0],
        "height": score["size"][1],
        "steps_done": record["steps"]["done"],
        "seconds": record["seconds"],
        **{f"style_{method}": value for method, value in score["style"].items()},
        "content_loss": score["content"],
        "ssim": score["ssim"],
        "held_out": sum(held_out.values()) / len(held_out),
        **{f"held_out_{layer}": value for layer, value in held_out.items()},
    }


def write_sheets(folder: Folder, tasks: list[Task], *, made: Container[str]) -> None:
    """Contact sheets: content, style and what became of them, pair by pair."""
    rows: list[list[tuple[str, str]]] = []  # of places ("" where there is no picture) and captions
    ordered = sorted(tasks, key=lambda task: (task.content, task.style))  # stable: as they came
    for (content, style), pair in groupby(ordered, lambda task: (task.content, task.style)):
        cells = [(content, stem(content)), (style, stem(style))]
        cells += [(folder.picture(t) if t.name in made else "", t.label) for t in pair]
        rows += [cells[first : first + CELLS] for first in range(0, len(cells), CELLS)]
    pages = [rows[first : first + ROWS] for first in range(0, len(rows), ROWS)]
    thumbnail = lru_cache(256)(_thumbnail)
    written = set()
    for number, page in enumerate(pages, start=1):
        name = f"{SHEET}{number:0{len(str(len(pages)))}}.jpg"
        sink = io.BytesIO()
        _sheet([[(thumbnail(p), text) for p, text in row] for row in page]).save(
            sink, "JPEG", quality=88
        )
        storage.update(storage.join(folder.place, name), sink.getvalue())
        written.add(name)
    for name in storage.listing(folder.place):
        if re.fullmatch(rf"{SHEET}\d+\.jpg", name) and name not in written:
            storage.remove(storage.join(folder.place, name))  # of an earlier, larger batch


def _sheet(rows: list[list[tuple[Image.Image | None, str]]]) -> Image.Image:
    """A page of captioned thumbnails."""
    side, height = THUMBNAIL + GAP, THUMBNAIL + CAPTION + GAP
    columns = max(len(row) for row in rows)
    page = Image.new("RGB", (GAP + columns * side, GAP + len(rows) * height), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(11)
    for y, row in enumerate(rows):
        for x, (picture, caption) in enumerate(row):
            left, top = GAP + x * side, GAP + y * height
            if picture is None:
                frame = (left, top, left + THUMBNAIL - 1, top + THUMBNAIL - 1)
                draw.rectangle(frame, fill="#eeeeee")
                draw.text((left + 8, top + 8), "no picture", fill="#666666", font=font)
            else:
                page.paste(picture, (left, top))
            while draw.textlength(caption, font=font) > THUMBNAIL:
                caption = caption[:-2] + "…"
            draw.text((left, top + THUMBNAIL + 2), caption, fill="black", font=font)
    return page


def _thumbnail(place: str) -> Image.Image | None:
    """A small square of a picture; None where there is none."""
    try:
        picture = imagefile.read(storage.read(place)) if place else None
    except ImpastoError:
        picture = None
    if picture is None:
        return None
    rgb = picture.rgb if picture.alpha is None else 1 - (1 - picture.rgb) * picture.alpha[..., None]
    image = ImageOps.contain(Image.fromarray(imagefile.to_8bit(rgb)), (THUMBNAIL, THUMBNAIL))
    square = Image.new("RGB", (THUMBNAIL, THUMBNAIL), "white")
    square.paste(image, ((THUMBNAIL - image.width) // 2, (THUMBNAIL - image.height) // 2))
    return square


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))
