"""What to paint and how large: the pairs, the sizes, the numbers of steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from impasto.recipe import EVERY_METHOD, PRESETS, Recipe
from impasto.samples import PAINTINGS, PHOTOS, locate
from impasto.types import ImpastoError

SYSTEMS: dict[str, str] = {  # of the paper, in the order of its figure, and our names
    "AdaIN": "adain",
    "Gatys": "gram",
    "MM": "mm",
    "OST": "ost",
    "WCT": "wct",
    "CMD": "cmd",
}
STARRED = ("AdaIN", "OST", "WCT")  # feed-forward, in the paper's tables
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff")
UNITS = 0.225  # of the learning rate: an ImageNet-normalized unit in RGB [0, 1]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A picture in a file."""

    name: str
    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path, name: str = "") -> Source:
        """The picture of a path."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return cls(name=name or path.stem, path=str(path), sha256=digest)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A content and a style."""

    content: Source
    style: Source

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.content.name}-{self.style.name}"


@dataclass(frozen=True, kw_only=True)
class Order:
    """A picture to paint; what is asked for twice is painted once."""

    pair: Pair
    recipe: Recipe

    @property
    def name(self) -> str:
        """The same for the same pixels: from the pictures and from what differs from the defaults.

        A setting that a later version adds does not rename what has been painted.
        """
        usual = Recipe().to_dict()
        told = {
            name: value for name, value in self.recipe.to_dict().items() if value != usual[name]
        }
        facts = [self.pair.content.sha256, self.pair.style.sha256, told]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        method = self.recipe.method.replace("+", "-")
        return f"{self.pair.name}-{method}-{digest[:12]}"

    @property
    def work(self) -> float:
        """What it costs, in steps of a megapixel."""
        steps = len(self.recipe.passes) or self.recipe.steps
        return (steps + 3) * int(self.recipe.size) ** 2 / 1e6


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that the data depend on."""

    pairs: tuple[Pair, ...]
    size: int = 256
    steps: int = 60  # of our own procedure
    paper_steps: int = 500  # of the paper's
    shown: int = 7  # pairs of the comparison
    measured: int = 12  # pairs of the alignment
    toy_steps: int = 3000
    timed_size: int = 512
    timed_steps: int = 20
    timed_runs: int = 3
    settings: tuple[tuple[str, str], ...] = ()  # of every recipe: weights, device

    def recipe(self, preset: str = "", **settings: Any) -> Recipe:
        """A recipe at the size of the plan.

        All start from the content, as in the paper: the transport of colors with which we begin
        otherwise is a transfer of its own, that no loss should be given credit for. And every
        step looks at all layers.
        """
        own: dict[str, Any] = {"size": self.size, "steps": self.steps, "start": "content"}
        own["shallow"] = 0
        if preset == "paper":  # and no end before the last step: all are to be compared
            own |= {"steps": self.paper_steps, "stop": "never"}
        return Recipe.from_dict(
            {**PRESETS.get(preset, {}), **own, **dict(self.settings), **settings}
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON data."""
        return asdict(self)


QUICK: Mapping[str, Any] = {
    "size": 128,
    "steps": 30,
    "paper_steps": 60,
    "shown": 4,
    "measured": 4,
    "toy_steps": 1000,
    "timed_size": 256,
    "timed_steps": 5,
    "timed_runs": 2,
}


def systems() -> dict[str, str]:
    """The systems of the paper that are here."""
    return {title: name for title, name in SYSTEMS.items() if name in EVERY_METHOD}


def missing() -> list[str]:
    """The systems of the paper that are not."""
    return [title for title, name in SYSTEMS.items() if name not in EVERY_METHOD]


def extensions() -> list[str]:
    """Methods that the paper does not have."""
    return [name for name in EVERY_METHOD if name not in SYSTEMS.values()]


def title_of(method: str) -> str:
    """The name of a method as the paper has it."""
    return {name: title for title, name in SYSTEMS.items()}.get(method, method)


def sample_pairs() -> tuple[Pair, ...]:
    """Pairs of the photos and paintings that install with ``impasto[demo]``."""
    contents, styles = (
        [Source.of(locate(name), name) for name in table] for table in (PHOTOS, PAINTINGS)
    )
    return combined(contents, styles)


def folder_pairs(contents: str, styles: str) -> tuple[Pair, ...]:
    """Pairs of the pictures in two folders."""
    return combined(_pictures(contents), _pictures(styles))


def combined(contents: list[Source], styles: list[Source]) -> tuple[Pair, ...]:
    """All pairs, ordered so that the first ones differ in both pictures."""
    return tuple(
        Pair(content=content, style=styles[(number + shift) % len(styles)])
        for shift in range(len(styles))
        for number, content in enumerate(contents)
    )


def checked(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Numbers of a plan, or one sentence on what is wrong with them."""
    known = {each.name for each in fields(Plan)}
    for name, value in settings.items():
        if name in known and isinstance(value, int) and value < (64 if "size" in name else 1):
            least = 64 if "size" in name else 1
            raise ImpastoError(f"{name} is {value}; it must be at least {least}")
    return settings


def _pictures(folder: str) -> list[Source]:
    place = Path(folder)
    if not place.is_dir():
        raise ImpastoError(f"{folder} is not a folder")
    paths = sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise ImpastoError(f"{folder} holds no pictures ({', '.join(SUFFIXES)})")
    return [Source.of(path) for path in paths]
