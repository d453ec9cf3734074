"""What the studio keeps: pictures in a folder under random names, and what is known of them.

The database is SQLite's, held by one process at a time. A finished picture is on the disk before
the database says so, and at the start the disk is believed: nothing finished is ever lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from PIL import Image

from impasto import files, imagefile, samples
from impasto.recipe import Recipe
from impasto.types import ImpastoError

VERSION = 1  # of the tables
MAX_RUNS = 1000  # in the history: nothing finished is deleted unasked, so new ones are refused
OURS = re.compile(r"[0-9a-f]{32}(\.webp)?")  # names of files that were made here
SPARE_UPLOADS = 100  # pictures that no run uses: the newest of them
SPARE_SECONDS = 24 * 3600.0  # and none that is older
TABLES = """
CREATE TABLE IF NOT EXISTS uploads (
    id TEXT PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, created REAL NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, style TEXT NOT NULL, start TEXT NOT NULL,
    recipe TEXT NOT NULL,
    state TEXT NOT NULL, created REAL NOT NULL, error TEXT NOT NULL DEFAULT '',
    width INTEGER NOT NULL DEFAULT 0, height INTEGER NOT NULL DEFAULT 0,
    record TEXT NOT NULL DEFAULT 'null', history TEXT NOT NULL DEFAULT '[]');
CREATE INDEX IF NOT EXISTS runs_by_time ON runs (created);
"""
LISTED = (
    "id, content, style, start, recipe, state, created, error, width, height, record, "
    "'[]' AS history"
)
History: TypeAlias = tuple[tuple[float, float, int], ...]
"""Per step: style loss, content loss, and the number of style layers they are of."""
OPEN = ("waiting", "painting")  # states of a run that is not over


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A picture that was given, or a sample, whose id is its name."""

    id: str
    name: str  # what people call it; never a path
    width: int
    height: int
    created: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Run:
    """A painting: wanted, at work or finished."""

    id: str
    content: str  # ids of uploads
    style: str
    start: str  # empty where it is no picture
    recipe: dict[str, Any]  # as it was then: another version may know other settings
    state: str  # waiting, painting, done, failed, interrupted
    created: float
    error: str = ""
    width: int = 0  # of the finished picture
    height: int = 0
    record: dict[str, Any] | None = None  # of the finished picture
    history: History = ()


def data_folder() -> Path:
    """The folder of what users made: $IMPASTO_DATA, else where the system keeps such data."""
    if chosen := os.environ.get("IMPASTO_DATA"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        parent = "~/Library/Application Support"
    else:
        parent = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(parent).expanduser() / "impasto"


class Store:
    """The folder and its database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        try:
            for name in ("uploads", "thumbs", "results", "checkpoints"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            self._base = _connect(folder / "studio.sqlite3")
        except (OSError, sqlite3.Error) as problem:
            busy = "locked" in str(problem)
            reason = "another studio is at work there" if busy else problem
            raise ImpastoError(
                f"{folder} cannot hold the studio's pictures: {reason}; name another with --data"
            ) from None
        self._recover()
        self.tidy()

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._base.close()

    # Places: made of ids that the database or the table of samples holds, never of a request.

    def upload_path(self, upload: Upload) -> Path:
        """The file of a picture as it was given."""
        if upload.id in samples.SAMPLES:
            return samples.locate(upload.id)
        return self.folder / "uploads" / upload.id

    def thumb_path(self, of: Upload | Run) -> Path:
        """A small picture of it."""
        return self.folder / "thumbs" / f"{of.id}.webp"

    def result_path(self, run: Run) -> Path:
        """The finished picture."""
        return self.folder / "results" / f"{run.id}.png"

    def checkpoint_path(self, run: Run) -> Path:
        """Where an interrupted run goes on from."""
        return self.folder / "checkpoints" / run.id

    # Uploads.

    def add_upload(self, data: bytes, *, name: str, size: tuple[int, int], thumb: bytes) -> Upload:
        """Keep a picture; the same bytes are kept once."""
        digest = hashlib.sha256(data).hexdigest()
        with self._changing() as base:
            if known := base.execute(
                "SELECT id FROM uploads WHERE sha256 = ?", [digest]
            ).fetchone():
                base.execute("UPDATE uploads SET created = ? WHERE id = ?", [time.time(), known[0]])
                return self.upload(known[0])
            upload = Upload(
                id=secrets.token_hex(16),
                name=name,
                width=size[0],
                height=size[1],
                created=time.time(),
            )
            files.write_atomically(self.upload_path(upload), data)
            files.write_atomically(self.thumb_path(upload), thumb)
            row = (upload.id, digest, upload.name, upload.width, upload.height, upload.created)
            base.execute("INSERT INTO uploads VALUES (?, ?, ?, ?, ?, ?)", row)
        self.tidy()
        return upload

    def upload(self, id: str) -> Upload:
        """The upload or the sample of an id."""
        if id in samples.SAMPLES:
            return sample(id)
        columns = "id, name, width, height, created"
        with self._lock:
            row = self._base.execute(f"SELECT {columns} FROM uploads WHERE id = ?", [id]).fetchone()
        if row is None:
            raise KeyError(id)
        return Upload(**dict(row))

    # Runs.

    def add_run(
        self, content: Upload, style: Upload, recipe: Recipe, start: Upload | None = None
    ) -> Run:
        """A new run that waits."""
        with self._changing() as base:
            if base.execute("SELECT count(*) FROM runs").fetchone()[0] >= MAX_RUNS:
                raise ImpastoError(
                    f"the history is full ({MAX_RUNS} pictures); delete some that you do not need"
                )
            run = Run(
                id=secrets.token_hex(16),
                content=content.id,
                style=style.id,
                start=start.id if start else "",
                recipe=recipe.to_dict(),
                state="waiting",
                created=time.time(),
            )
            base.execute(
                "INSERT INTO runs (id, content, style, start, recipe, state, created) "
                "VALUES (:id, :content, :style, :start, :recipe, :state, :created)",
                {**vars(run), "recipe": _json(run.recipe)},
            )
        return run

    def run(self, id: str) -> Run:
        """The run of an id."""
        with self._lock:
            row = self._base.execute("SELECT * FROM runs WHERE id = ?", [id]).fetchone()
        if row is None:
            raise KeyError(id)
        return _run(row)

    def runs(self, *, limit: int = 100, before: float | None = None) -> list[Run]:
        """The newest runs without their losses, those made before a time if one is given."""
        bound = sys.float_info.max if before is None else before
        query = f"SELECT {LISTED} FROM runs WHERE created < ? ORDER BY created DESC LIMIT ?"
        with self._lock:
            return [_run(row) for row in self._base.execute(query, [bound, limit])]

    def mark(self, run: Run, state: str, *, error: str = "") -> None:
        """Note what a run is doing now."""
        with self._changing() as base:
            base.execute(
                "UPDATE runs SET state = ?, error = ? WHERE id = ?", [state, error, run.id]
            )

    def complete(self, run: Run, history: History = ()) -> None:
        """Note that the picture of a run is on the disk; what it is stands in the file."""
        path = self.result_path(run)
        record = imagefile.read_record(path)
        with Image.open(path) as image:
            width, height = image.size
        with self._changing() as base:
            base.execute(
                "UPDATE runs SET state = 'done', error = '', width = ?, height = ?, record = ?, "
                "history = ? WHERE id = ?",
                [width, height, _json(record), _json(history), run.id],
            )
        self.checkpoint_path(run).unlink(missing_ok=True)

    def remove(self, run: Run) -> None:
        """Forget a run and delete its files."""
        with self._changing() as base:
            base.execute("DELETE FROM runs WHERE id = ?", [run.id])
        for path in (self.result_path(run), self.thumb_path(run), self.checkpoint_path(run)):
            path.unlink(missing_ok=True)

    # Order.

    def tidy(self) -> None:
        """Drop uploads that no run uses, the old ones and those beyond the limit."""
        query = (
            "SELECT id, created FROM uploads WHERE id NOT IN (SELECT content FROM runs) "
            "AND id NOT IN (SELECT style FROM runs) AND id NOT IN (SELECT start FROM runs) "
            "ORDER BY created DESC"
        )
        with self._changing() as base:
            oldest = time.time() - SPARE_SECONDS
            for number, (id, created) in enumerate(base.execute(query).fetchall()):
                if number >= SPARE_UPLOADS or created < oldest:
                    base.execute("DELETE FROM uploads WHERE id = ?", [id])
                    (self.folder / "uploads" / id).unlink(missing_ok=True)
                    (self.folder / "thumbs" / f"{id}.webp").unlink(missing_ok=True)

    def _recover(self) -> None:
        """After a crash: what is on the disk is finished, what was at work was interrupted."""
        with self._lock:
            query = "SELECT * FROM runs WHERE state IN ('waiting', 'painting')"
            for run in [_run(row) for row in self._base.execute(query)]:
                if self.result_path(run).exists():  # written whole, then the end came
                    self.complete(run)
                else:
                    self.mark(run, "interrupted")
            known = {row[0] for row in self._base.execute("SELECT id FROM uploads")}
            known |= {row[0] for row in self._base.execute("SELECT id FROM runs")}
        # Cut off before it was noted. A finished picture stays, whatever the database knows.
        for folder in ("uploads", "thumbs", "checkpoints"):
            for path in (self.folder / folder).iterdir():
                if OURS.fullmatch(path.name) and path.name.partition(".")[0] not in known:
                    path.unlink(missing_ok=True)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A change that is on the disk when this ends, or has not been."""
        with self._lock, self._base:
            yield self._base


def sample(name: str) -> Upload:
    """A picture that comes along."""
    return Upload(id=name, name=samples.SAMPLES[name].file, width=0, height=0)


def _connect(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path, check_same_thread=False, timeout=1.0)
    base.row_factory = sqlite3.Row
    try:
        base.execute("PRAGMA locking_mode = EXCLUSIVE")  # one studio per folder
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
        version = base.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise ImpastoError(f"{path} was made by a newer Impasto; update this one")
        base.executescript(TABLES)
        base.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        base.close()
        raise
    return base


def _run(row: sqlite3.Row) -> Run:
    packed = {name: json.loads(row[name]) for name in ("recipe", "record", "history")}
    # Folders of old have no number of layers.
    packed["history"] = tuple((*each, 0)[:3] for each in packed["history"])
    return Run(**{**dict(row), **packed})


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
