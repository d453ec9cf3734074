"""Files on a disk or in any storage that fsspec knows, by path or by URL."""

from __future__ import annotations

import math
import os
import posixpath
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from impasto import files
from impasto.types import ImpastoError

ABANDONED = 60.0  # seconds after which the draft of a file belongs to a writer that was killed


def read(place: str) -> bytes:
    """The bytes of a file."""
    with _one_sentence(place, "read"):
        system, path = _locate(place)
        return system.cat_file(path)


def write(place: str, data: bytes) -> None:
    """The file with these bytes; on a disk, whole or not at all."""
    with _one_sentence(place, "written"):
        system, path = _locate(place)
        if isinstance(system, LocalFileSystem):
            files.write_atomically(path, data)
        else:
            system.pipe_file(path, data)


def update(place: str, data: bytes) -> None:
    """The file with these bytes, untouched where it has them already."""
    if not exists(place) or read(place) != data:
        write(place, data)


def exists(place: str) -> bool:
    """Whether there is a file or a folder."""
    with _one_sentence(place, "read"):
        system, path = _locate(place)
        return bool(system.exists(path))


def remove(place: str) -> None:
    """No file, whether there was one or not."""
    with _one_sentence(place, "removed"):
        system, path = _locate(place)
        if system.exists(path):
            system.rm_file(path)


def listing(folder: str) -> list[str]:
    """The names of the files in a folder, in order."""
    with _one_sentence(folder, "read"):
        system, path = _locate(folder)
        system.invalidate_cache()
        found = system.ls(path, detail=True)
    return sorted(posixpath.basename(each["name"]) for each in found if each["type"] == "file")


def make_folder(folder: str) -> None:
    """The folder, free of what killed writers left in it."""
    with _one_sentence(folder, "created"):
        system, path = _locate(folder)
        system.makedirs(path, exist_ok=True)
        if isinstance(system, LocalFileSystem):
            for draft in Path(path).glob(".impasto-*.tmp"):
                if time.time() - draft.stat().st_mtime > ABANDONED:
                    draft.unlink(missing_ok=True)


def room(folder: str) -> float:
    """The bytes that can still be written."""
    with _one_sentence(folder, "read"):
        system, path = _locate(folder)
        return shutil.disk_usage(path).free if isinstance(system, LocalFileSystem) else math.inf


def join(folder: str, name: str) -> str:
    """A place in a folder; one that stands by itself stays as it is."""
    if is_url(name) or not folder:
        return name
    return posixpath.join(folder, name) if is_url(folder) else str(Path(folder) / name)


def parent(place: str) -> str:
    """The folder of a file."""
    return posixpath.dirname(place) if is_url(place) else str(Path(place).parent)


def absolute(place: str) -> str:
    """The same place in any working directory; links keep their own names."""
    if is_url(place):
        return place.rstrip("/")
    return os.path.abspath(Path(place).expanduser())  # noqa: PTH100


def is_url(place: str) -> bool:
    """Whether a place is a URL; anything else is a path."""
    return "://" in place


def _locate(place: str) -> tuple[Any, str]:
    system, path = fsspec.url_to_fs(place)
    return system, path


@contextmanager
def _one_sentence(place: str, done: str) -> Iterator[None]:
    """One sentence about a place instead of what the storage raised."""
    try:
        yield
    except ImpastoError:
        raise
    except FileNotFoundError:
        raise ImpastoError(f"{place} does not exist; check the path") from None
    except Exception as problem:  # every storage has errors of its own
        words = getattr(problem, "strerror", None) or problem or type(problem).__name__
        raise ImpastoError(f"{place} could not be {done}: {words}") from problem
