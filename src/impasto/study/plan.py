"""A study on the disk: what is asked, which pictures, in a folder that can be moved."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from impasto import files
from impasto.study.design import Design
from impasto.types import ImpastoError

FILE = "study.json"
PICTURES = "pictures"
KIND = "impasto study 1"
PROTOCOLS = {
    "all": "the results of all methods at once, as in the paper",
    "two": "two results at a time",
}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A content and a style, and what every method made of them: names of files."""

    content: str  # as people call it
    style: str
    content_picture: str
    style_picture: str
    results: tuple[str, ...]  # in the order of the methods


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a study is, except its votes."""

    title: str
    question: str
    methods: tuple[str, ...]
    pairs: tuple[Pair, ...]
    protocol: str = "all"
    ballots: int = 0  # of one participant; 0: one for each pair
    repeats: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ImpastoError(f"unknown protocol '{self.protocol}'; known: {', '.join(PROTOCOLS)}")
        if not self.pairs:
            raise ImpastoError("a study needs at least one pair of a content and a style")
        _ = self.design  # what cannot be dealt is refused at once

    @cached_property
    def design(self) -> Design:
        """Who sees what."""
        return Design(
            pairs=len(self.pairs),
            methods=len(self.methods),
            shown=len(self.methods) if self.protocol == "all" else 2,
            ballots=self.ballots or len(self.pairs),
            repeats=self.repeats,
            seed=self.seed,
        )

    @cached_property
    def identity(self) -> str:
        """What its votes are filed under: another plan is another study."""
        return hashlib.sha256(self._json().encode()).hexdigest()[:32]

    def _json(self) -> str:
        return json.dumps({"kind": KIND, **asdict(self)}, indent=1, ensure_ascii=False)

    def save(self, folder: Path) -> None:
        """Write it into the folder of the study."""
        files.write_atomically(folder / FILE, self._json().encode())


def load(folder: Path) -> Plan:
    """The plan in the folder of a study."""
    try:
        data = json.loads((folder / FILE).read_bytes())
        if data.pop("kind") != KIND:
            raise ValueError("kind")
        pairs = tuple(_pair(each) for each in data.pop("pairs"))
        if set(data) - {field.name for field in fields(Plan)}:
            raise ValueError("unknown names")
        return Plan(**{**data, "methods": tuple(map(str, data["methods"]))}, pairs=pairs)
    except (FileNotFoundError, NotADirectoryError):
        raise ImpastoError(
            f"{folder} holds no study; make one with: impasto study create --grid DIR -o {folder}"
        ) from None
    except ImpastoError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ImpastoError(
            f"{folder / FILE} is damaged or was edited; create the study anew"
        ) from None


def _pair(data: dict[str, Any]) -> Pair:
    pair = Pair(**{**data, "results": tuple(data["results"])})
    names = (pair.content_picture, pair.style_picture, *pair.results)
    if any(
        Path(name).name != name for name in names
    ):  # pictures lie in their folder, not elsewhere
        raise ValueError("a path")
    return pair
