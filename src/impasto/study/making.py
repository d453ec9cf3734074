"""A study from a grid: pictures under random names, without the records that name the method."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from impasto import imagefile
from impasto.maths.raster import fit
from impasto.study import plan
from impasto.study.grid import Cell, Grid
from impasto.types import ImpastoError

QUESTION = "Which picture transfers the style best?"
LONG_SIDE = 1024  # of the pictures as they are shown


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a study should be like."""

    title: str = "A study of style transfer"
    question: str = QUESTION
    protocol: str = "all"
    ballots: int = 0
    repeats: int = 0
    seed: int = 0
    size: int = LONG_SIDE


@dataclass(kw_only=True)
class Maker:
    """Writes the pictures of a study one by one, each of them once."""

    folder: Path
    size: int
    names: dict[Path, str] = field(default_factory=dict)

    def show(self, file: Path) -> str:
        """The name under which a picture is shown."""
        if file not in self.names:
            name = f"{secrets.token_hex(12)}.jpg"  # 4:4:4; WebP would blur the colors
            picture = imagefile.read(file)
            alpha = None if picture.alpha is None else self._shown(picture.alpha[..., None])[..., 0]
            rgb = self._shown(picture.rgb)
            imagefile.write(self.folder / plan.PICTURES / name, rgb, alpha=alpha)
            self.names[file] = name
        return self.names[file]

    def _shown(self, layer: Any) -> Any:
        """A layer (H, W, C), made smaller where it is too large; never larger."""
        if max(layer.shape[:2]) <= self.size:
            return layer
        return fit(torch.from_numpy(layer).permute(2, 0, 1), self.size).permute(1, 2, 0).numpy()


def create(folder: Path, grid: Grid, wish: Wish) -> Iterator[tuple[float, plan.Plan | None]]:
    """Make the folder of a study, telling how much is done; the plan comes last.

    Until the plan is written there is no study, so an interrupted one can be made anew.
    """
    check(folder)
    _plan(grid, wish, ())  # what cannot be is refused before the first picture
    (folder / plan.PICTURES).mkdir(parents=True, exist_ok=True)
    maker = Maker(folder=folder, size=wish.size)
    names = titles([file for cell in grid.cells for file in (cell.content, cell.style)])
    pairs = []
    for index, cell in enumerate(grid.cells):
        pairs.append(_pair(cell, maker, names))
        yield (index + 1) / len(grid.cells), None
    made = _plan(grid, wish, tuple(pairs))
    made.save(folder)
    yield 1.0, made


def check(folder: Path) -> None:
    """An early refusal of a folder that holds something already."""
    if (folder / plan.FILE).exists():
        raise ImpastoError(f"{folder} holds a study already; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ImpastoError(f"{folder} cannot be made: {problem.strerror}") from None


def titles(files: list[Path]) -> dict[Path, str]:
    """What people call each file: its name without suffix, and a number where two have the same."""
    named: dict[Path, str] = {}
    for file in dict.fromkeys(files):
        before = sum(other.stem == file.stem for other in named)
        named[file] = f"{file.stem} ({before + 1})" if before else file.stem
    return named


def _pair(cell: Cell, maker: Maker, names: dict[Path, str]) -> plan.Pair:
    return plan.Pair(
        content=names[cell.content],
        style=names[cell.style],
        content_picture=maker.show(cell.content),
        style_picture=maker.show(cell.style),
        results=tuple(maker.show(file) for file in cell.results),
    )


def _plan(grid: Grid, wish: Wish, pairs: tuple[plan.Pair, ...]) -> plan.Plan:
    blank = plan.Pair(content="", style="", content_picture="", style_picture="", results=())
    return plan.Plan(
        title=wish.title,
        question=wish.question,
        methods=grid.methods,
        pairs=pairs or (blank,) * len(grid.cells),
        protocol=wish.protocol,
        ballots=wish.ballots,
        repeats=wish.repeats,
        seed=wish.seed,
    )
