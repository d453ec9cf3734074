"""The objective of an image that does not fit into memory, exactly.

Summaries follow from sums over points. Pass one adds up the sums block by block without a graph;
the objective gives the gradient in the sums; pass two goes through the blocks again and brings
that gradient back to the pixels. A block is read with a halo as wide as the network sees, and
only the features whose surroundings are complete are counted, each in one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.discrepancies.styles import style_of
from impasto.networks.vgg import Encoder
from impasto.objective import combine, losses_of
from impasto.recipe import CHANNELS, Recipe, convolution
from impasto.types import Additive, Features, Image, ImpastoError, Losses, Points

STRIDE = 16  # of the deepest layers: blocks begin at multiples of it
SMALLEST_BLOCK = 128


@dataclass(frozen=True)
class Block:
    """Part of an image, as top, bottom, left, right: what belongs to it, and what it looks at."""

    inner: tuple[int, int, int, int]
    outer: tuple[int, int, int, int]

    def cut(self, image: Image) -> Image:
        """The part of an image (C, H, W) that the block looks at."""
        top, bottom, left, right = self.outer
        return image[:, top:bottom, left:right]


def stride_of(tap: str) -> int:
    """Pixels from one position of a layer to the next."""
    return 2 ** (int(convolution(tap)[4]) - 1)


def halo_of(taps: Iterable[str]) -> int:
    """How far beyond its own pixels the deepest of some layers sees, in whole strides."""
    names = list(CHANNELS)
    deepest = max(names.index(convolution(tap)) for tap in taps)
    radius = sum(stride_of(name) for name in names[: deepest + 1])
    return -(-radius // STRIDE) * STRIDE


def blocks_of(size: tuple[int, int], side: int, halo: int) -> list[Block]:
    """Blocks that cover an image, each with its halo."""
    side = max(SMALLEST_BLOCK, side // STRIDE * STRIDE)

    def spans(length: int) -> list[tuple[int, int, int, int]]:
        return [
            (
                first,
                min(first + side, length),
                max(0, first - halo),
                min(length, first + side + halo),
            )
            for first in range(0, length, side)
        ]

    return [
        Block((y0, y1, x0, x1), (top, bottom, left, right))
        for y0, y1, top, bottom in spans(size[0])
        for x0, x1, left, right in spans(size[1])
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reader:
    """Feature maps of an image of a given size, in blocks."""

    encoder: Encoder
    size: tuple[int, int]
    side: int
    halo: int
    visible: Tensor | None = None
    margin: int = 0

    def __iter__(self) -> Iterator[Block]:
        return iter(blocks_of(self.size, self.side, self.halo))

    def window(self, block: Block, tap: str, *, margin: int = 0) -> tuple[slice, slice]:
        """The rows and columns of a tap, within what the block sees, that belong to it."""
        stride = stride_of(tap)
        found = []
        for first, last, begin, length in (
            (block.inner[0], block.inner[1], block.outer[0], self.size[0]),
            (block.inner[2], block.inner[3], block.outer[2], self.size[1]),
        ):
            whole = length // stride
            end = whole if last == length else last // stride
            start = max(first // stride, margin) - begin // stride
            found.append(slice(start, max(start, min(end, whole - margin) - begin // stride)))
        return found[0], found[1]

    def map_size(self, tap: str) -> tuple[int, int]:
        """Height and width of a whole tap."""
        stride = stride_of(tap)
        return self.size[0] // stride, self.size[1] // stride

    def margin_of(self, tap: str) -> int:
        """Positions left out at the border, as in the whole image."""
        margin = self.margin
        if not margin or min(self.map_size(tap)) < 4 * margin:
            return 0
        if self.visible is not None:
            inside = self._shares(tap)[margin:-margin, margin:-margin]
            return margin if inside.any() else 0
        return margin

    def points(self, features: Features, block: Block, tap: str) -> Points:
        """The points of a tap that belong to a block."""
        margin = self.margin_of(tap)
        rows, columns = self.window(block, tap, margin=margin)
        part = features[0, :, rows, columns].flatten(1)
        if self.visible is None:
            return part.T
        stride = stride_of(tap)
        top, left = block.outer[0] // stride, block.outer[2] // stride
        shown = self._shown(tap)[
            top + rows.start : top + rows.stop, left + columns.start : left + columns.stop
        ]
        return part[:, shown.flatten()].T

    def count(self, tap: str) -> int:
        """The number of points of a whole tap."""
        margin = self.margin_of(tap)
        height, width = self.map_size(tap)
        if self.visible is None:
            return (height - 2 * margin) * (width - 2 * margin)
        shown = self._shown(tap)
        return int(shown[margin : height - margin, margin : width - margin].sum())

    def _shares(self, tap: str) -> Tensor:
        assert self.visible is not None
        return F.interpolate(self.visible[None, None], self.map_size(tap), mode="area")[0, 0]

    def _shown(self, tap: str) -> Tensor:
        shares = self._shares(tap)
        margin = self.margin_of(tap)
        inside = shares[margin : shares.shape[0] - margin, margin : shares.shape[1] - margin]
        return shares >= min(0.5, float(inside.max()))


def summarize(
    reader: Reader, measure: Additive, image: Image, taps: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summaries of an image of any size, and the pivots they were computed about."""
    pivots: dict[str, Any] = {}
    sums: dict[str, tuple[Tensor, ...]] = {}
    with torch.no_grad():
        for block in reader:
            for tap, features in reader.encoder(block.cut(image), taps).items():
                points = reader.points(features, block, tap)
                if not len(points):
                    continue
                if tap not in pivots:
                    pivots[tap] = measure.pivot(points)
                sums[tap] = add(sums.get(tap), measure.gather(points, pivots[tap]))
    summaries = {tap: measure.settle(sums[tap], reader.count(tap), pivots[tap]) for tap in taps}
    return summaries, pivots


def add(total: tuple[Tensor, ...] | None, part: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Sums of one more part, in double precision where the parts are."""
    return part if total is None else tuple(a + b for a, b in zip(total, part, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockObjective:
    """What :class:`impasto.objective.Objective` is, in bounded memory."""

    recipe: Recipe
    measure: Additive
    reader: Reader
    content: Image
    content_features: Mapping[Block, Tensor]  # of the content layer, the part of each block
    styles: Mapping[str, Any]
    pivots: Mapping[str, Any]

    def __call__(self, image: Image) -> tuple[Losses, Tensor]:
        """The losses at an image and the gradient of the total."""
        sums, squares = self._first_pass(image)
        leaves = {
            tap: tuple(part.detach().requires_grad_() for part in parts)
            for tap, parts in sums.items()
        }
        square = squares.detach().requires_grad_()
        whole = image.detach().requires_grad_()
        total, content, layers, style = self._terms(leaves, square, whole)
        flat = [part for parts in leaves.values() for part in parts]
        slopes = torch.autograd.grad(total, [square, whole, *flat], allow_unused=True)
        of_pixels, rest = slopes[1], iter(slopes[2:])
        gradient = torch.zeros_like(image) if of_pixels is None else of_pixels
        by_tap = {tap: tuple(next(rest) for _ in parts) for tap, parts in leaves.items()}
        self._second_pass(image, gradient, slopes[0], by_tap)
        return losses_of(total, content, layers, style), gradient

    def losses(self, image: Image) -> Losses:
        """The losses at an image."""
        with torch.no_grad():
            return losses_of(*self._terms(*self._first_pass(image), image))

    def _terms(
        self, sums: Mapping[str, tuple[Tensor, ...]], squares: Tensor, image: Image
    ) -> tuple[Tensor, Tensor, dict[str, Tensor], Tensor]:
        recipe = self.recipe
        content = squares / self._content_count()
        layers = {
            tap: self.measure.compare(
                self.measure.settle(sums[tap], self.reader.count(tap), self.pivots[tap]),
                self.styles[tap],
            )
            for tap in recipe.style_layers
        }
        return combine(recipe, image, self.content, content, layers)

    def _content_count(self) -> int:
        channels = next(iter(self.content_features.values())).shape[0]
        if self.reader.visible is None:
            height, width = self.reader.map_size(self.recipe.content_layer)
            return channels * height * width
        return channels * self._content_reader().count(self.recipe.content_layer)

    def _content_reader(self) -> Reader:
        """The same places, but no margin: the content counts up to the border."""
        return Reader(
            encoder=self.reader.encoder,
            size=self.reader.size,
            side=self.reader.side,
            halo=self.reader.halo,
            visible=self.reader.visible,
        )

    def _gather(self, block: Block, part: Image) -> tuple[dict[str, tuple[Tensor, ...]], Tensor]:
        """The sums of one block and its sum of squares of the content."""
        layer = self.recipe.content_layer
        taps = self.reader.encoder(part, {*self.recipe.style_layers, layer})
        sums = {}
        for tap in self.recipe.style_layers:
            points = self.reader.points(taps[tap], block, tap)
            if len(points):
                sums[tap] = self.measure.gather(points, self.pivots[tap])
        shown = self._content_reader().points(taps[layer], block, layer)
        return sums, (shown - self.content_features[block].T).square().sum()

    def _first_pass(self, image: Image) -> tuple[dict[str, tuple[Tensor, ...]], Tensor]:
        total: dict[str, tuple[Tensor, ...]] = {}
        squares = image.new_zeros((), dtype=torch.float64 if image.device.type != "mps" else None)
        with torch.no_grad():
            for block in self.reader:
                sums, square = self._gather(block, block.cut(image))
                squares = squares + square
                for tap, part in sums.items():
                    total[tap] = add(total.get(tap), part)
        return {tap: total[tap] for tap in self.recipe.style_layers}, squares

    def _second_pass(
        self,
        image: Image,
        gradient: Image,
        of_squares: Tensor,
        slopes: Mapping[str, tuple[Tensor, ...]],
    ) -> None:
        """Add to the gradient what every block brings back to the pixels it looks at."""
        for block in self.reader:
            part = block.cut(image).detach().requires_grad_()
            sums, square = self._gather(block, part)
            outputs, weights = [square], [of_squares.to(square.dtype)]
            for tap, parts in sums.items():
                outputs += parts
                weights += slopes[tap]
            block.cut(gradient).add_(torch.autograd.grad(outputs, part, weights)[0])


def build(
    recipe: Recipe,
    encoder: Encoder,
    content: Image,
    style: Image,
    *,
    side: int,
    visible: Tensor | None = None,
    visible_style: Tensor | None = None,
) -> BlockObjective:
    """The objective of one content and one style in blocks of a given side."""
    measure = style_of(recipe).build(recipe)
    if not isinstance(measure, Additive):
        raise ImpastoError(
            f"method '{recipe.method}' needs the whole image in memory; choose a smaller size or "
            f"another method"
        )
    halo = halo_of({*recipe.style_layers, recipe.content_layer})
    common: dict[str, Any] = {"encoder": encoder, "side": side, "halo": halo}
    styles, pivots = summarize(
        Reader(size=_size(style), visible=visible_style, margin=recipe.margin, **common),
        measure,
        style,
        list(recipe.style_layers),
    )
    plain = Reader(size=_size(content), visible=visible, **common)
    layer, features = recipe.content_layer, {}
    with torch.no_grad():
        for block in plain:
            taps = encoder(block.cut(content), [layer])
            features[block] = plain.points(taps[layer], block, layer).T.contiguous()
    return BlockObjective(
        recipe=recipe,
        measure=measure,
        reader=Reader(size=_size(content), visible=visible, margin=recipe.margin, **common),
        content=content,
        content_features=features,
        styles=styles,
        pivots=pivots,
    )


def _size(image: Image) -> tuple[int, int]:
    return image.shape[1], image.shape[2]
