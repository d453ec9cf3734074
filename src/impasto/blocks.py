"""Reading the features of an image that does not fit into memory, block by block.

A block is read with a halo as wide as the network sees, and only the features whose surroundings
are complete are counted, each in one block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from impasto.maths.raster import picked
from impasto.networks.vgg import Encoder
from impasto.recipe import CHANNELS, convolution
from impasto.types import Features, Image, Points

STRIDE = 16  # of the deepest layers: blocks begin at multiples of it
SMALLEST_BLOCK = 128  # smaller ones would be all halo
# Pixels after which the tiles of convolutions begin together at every depth: in blocks that look
# from multiples of it on they are those of the whole picture, and round as they do.
ALIGNED = 192


@dataclass(frozen=True)
class Block:
    """Part of an image, as top, bottom, left, right: what belongs to it, and what it looks at."""

    inner: tuple[int, int, int, int]
    outer: tuple[int, int, int, int]

    def cut(self, image: Image) -> Image:
        """The part of an image (C, H, W) that the block looks at."""
        top, bottom, left, right = self.outer
        return image[:, top:bottom, left:right]

    @property
    def pixels(self) -> int:
        """How many it looks at."""
        top, bottom, left, right = self.outer
        return (bottom - top) * (right - left)

    def rows(self, top: int, count: int) -> Block:
        """The part of it that looks at some of the rows, counted from the first it looks at."""
        top, bottom = self.outer[0] + top, self.outer[0] + top + count
        first, last = max(self.inner[0], top), min(self.inner[1], bottom)
        return Block((first, max(first, last), *self.inner[2:]), (top, bottom, *self.outer[2:]))


def stride_of(tap: str) -> int:
    """Pixels from one position of a layer to the next."""
    return 2 ** (int(convolution(tap)[4]) - 1)


def halo_of(taps: Iterable[str]) -> int:
    """How far beyond its own pixels the deepest of some layers sees, in whole strides."""
    names = list(CHANNELS)
    deepest = max(names.index(convolution(tap)) for tap in taps)
    radius = sum(stride_of(name) for name in names[: deepest + 1])
    return -(-radius // STRIDE) * STRIDE


def trail_bytes(taps: Iterable[str]) -> float:
    """What is kept of a trail per pixel: taps in 4 bytes, signs and choices in bits."""
    names, wanted = list(CHANNELS), set(taps)
    deepest = max(names.index(convolution(tap)) for tap in wanted)
    total = 0.0
    for number in range(min(1, deepest), deepest + 1):  # the first is made again if it can be
        name = names[number]
        count = len(wanted & {name, name.replace("conv", "relu")})
        halved = number < deepest and names[number + 1].endswith("_1")
        # Of four positions that were halved to one, two bits say which, and one its sign.
        bits = 3 / 4 if halved else float(not count)
        total += (4 * count + bits / 8) * CHANNELS[name] / stride_of(name) ** 2
    return total


def keeping(pixels: Sequence[int], trails: float, each: float) -> list[bool]:
    """Which of some blocks keep their trails, so many bytes each pixel, within a number of bytes.

    The last does anyway: nothing else is looked at before the way back from it begins.
    """
    kept = []
    for count in pixels[:-1]:
        kept.append(each * count <= trails)
        trails -= each * count * kept[-1]
    return [*kept, True]


def blocks_of(size: tuple[int, int], side: int, halo: int) -> list[Block]:
    """Blocks that cover an image, each with its halo."""
    rows, columns = (spans(length, side, halo) for length in size)
    return [
        Block((y0, y1, x0, x1), (top, bottom, left, right))
        for y0, y1, top, bottom in rows
        for x0, x1, left, right in columns
    ]


def spans(length: int, side: int, halo: int) -> list[tuple[int, int, int, int]]:
    """The blocks of one dimension: from where to where, without and with a halo.

    Large ones look from multiples of ``ALIGNED`` on; the first is longer by a halo that it lacks.
    """
    if side >= ALIGNED:
        side = side // ALIGNED * ALIGNED
        bounds = [0, *range(side + halo, length, side), length]
    else:
        side = max(SMALLEST_BLOCK, side // STRIDE * STRIDE)
        bounds = [*range(0, length, side), length]
    return [
        (first, last, max(0, first - halo), min(length, last + halo))
        for first, last in itertools.pairwise(bounds)
    ]


def sides(longest: int) -> list[int]:
    """The sides that blocks of a picture may have."""
    last = max(longest, ALIGNED) + ALIGNED
    return [*range(SMALLEST_BLOCK, ALIGNED, STRIDE), *range(ALIGNED, last, ALIGNED)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reader:
    """Feature maps of an image of a given size, in blocks."""

    encoder: Encoder
    size: tuple[int, int]
    side: int
    halo: int
    visible: Tensor | None = None
    margin: int = 0
    _known: dict[str, _Seen] = field(default_factory=dict)  # by tap

    def __iter__(self) -> Iterator[Block]:
        return iter(blocks_of(self.size, self.side, self.halo))

    def place(self, block: Block, tap: str, *, margin: int = 0) -> tuple[slice, slice]:
        """The rows and columns of a whole tap that belong to a block."""
        stride = stride_of(tap)
        found = []
        for first, last, length in (
            (block.inner[0], block.inner[1], self.size[0]),
            (block.inner[2], block.inner[3], self.size[1]),
        ):
            whole = length // stride
            end = whole if last == length else last // stride
            start = max(first // stride, margin)
            found.append(slice(start, max(start, min(end, whole - margin))))
        return found[0], found[1]

    def map_size(self, tap: str) -> tuple[int, int]:
        """Height and width of a whole tap."""
        stride = stride_of(tap)
        return self.size[0] // stride, self.size[1] // stride

    def margin_of(self, tap: str) -> int:
        """Positions left out at the border, as in the whole image."""
        if self.visible is not None:
            return self._seen(tap).margin
        return self.margin if min(self.map_size(tap)) >= 4 * self.margin else 0

    def points(self, features: Features, block: Block, tap: str) -> Points:
        """The points of a tap that belong to a block: (n, C), or (H, W, C) where all count."""
        return self.shown(self.window(features, block, tap), block, tap)

    def window(self, features: Features, block: Block, tap: str) -> Features:
        """What belongs to a block of the map that it gives of a tap, as a view."""
        stride = stride_of(tap)
        return self._window(
            features, block, tap, block.outer[0] // stride, block.outer[2] // stride
        )

    def window_of_whole(self, features: Features, block: Block, tap: str) -> Features:
        """The same of a map of the whole image."""
        return self._window(features, block, tap, 0, 0)

    def _window(self, features: Features, block: Block, tap: str, top: int, left: int) -> Features:
        """What belongs to a block of a map that begins somewhere in the whole one."""
        rows, columns = self.place(block, tap, margin=self.margin_of(tap))
        return features[
            ..., rows.start - top : rows.stop - top, columns.start - left : columns.stop - left
        ]

    def shown(self, window: Features, block: Block, tap: str) -> Points:
        """The points of what belongs to a block: (n, C), or (H, W, C) where all count."""
        if self.visible is None:
            return window.squeeze(0).permute(1, 2, 0)
        place = self.place(block, tap, margin=self.margin_of(tap))
        return picked(window, self._seen(tap).shown[place])

    def count(self, tap: str) -> int:
        """The number of points of a whole tap."""
        margin = self.margin_of(tap)
        height, width = self.map_size(tap)
        if self.visible is None:
            return (height - 2 * margin) * (width - 2 * margin)
        shown = self._seen(tap).shown
        return int(shown[margin : height - margin, margin : width - margin].sum())

    def _seen(self, tap: str) -> _Seen:
        """Looked at once per tap: that takes a while in a large picture."""
        if tap not in self._known:
            assert self.visible is not None
            shares = F.interpolate(self.visible[None, None], self.map_size(tap), mode="area")[0, 0]
            margin = self.margin if min(shares.shape) >= 4 * self.margin else 0
            inside = shares[margin : shares.shape[0] - margin, margin : shares.shape[1] - margin]
            if not inside.any():
                margin, inside = 0, shares
            self._known[tap] = _Seen(shares >= min(0.5, float(inside.max())), margin)
        return self._known[tap]


class _Seen(NamedTuple):
    """Of a tap of a picture that is transparent in part."""

    shown: Tensor  # (H, W), bool: the positions that count
    margin: int
