"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from impasto.types import ImpastoError


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """The file with these bytes, whole or not at all: until it is on the disk the old one stays."""
    with _writing(path):
        target = Path(os.path.realpath(path))  # through a symbolic link, as open() would
        _check(target)
        draft = target.with_name(f".impasto-{secrets.token_hex(8)}.tmp")
        try:
            with draft.open("xb") as file:  # not tempfile, whose 0600 knows nothing of the umask
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():  # a file that is written anew keeps its permissions
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


def check_place(path: str | os.PathLike[str]) -> None:
    """An early refusal of a path that could not be written after hours of work."""
    with _writing(path):
        _check(Path(path))


def _check(path: Path) -> None:
    parent = path.parent
    if not parent.exists():
        raise ImpastoError(f"{path} cannot be written: {parent} does not exist; create it first")
    if not parent.is_dir():
        raise ImpastoError(f"{path} cannot be written: {parent} is not a directory")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ImpastoError(f"{path} cannot be written: the directory {parent} is not writable")
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ImpastoError(f"{path} is a directory; add a file name")
        if not stat.S_ISREG(mode):  # to replace a device would harm the machine
            raise ImpastoError(f"{path} is not an ordinary file; choose another path")


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """One sentence about the output file in place of what the system raised."""
    try:
        yield
    except ImpastoError:  # already a sentence
        raise
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ImpastoError(f"{path} could not be written: {reason}") from problem
