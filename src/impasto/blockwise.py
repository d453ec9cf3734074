"""The objective of an image that does not fit into memory, exactly.

Summaries follow from sums over points. Pass one adds up the sums block by block without a graph;
the objective gives the gradient in the sums; pass two goes through the blocks again and brings
that gradient back to the pixels. Where there is memory for it, the trails of blocks are kept from
one pass to the other, and the network needs not run forward twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from impasto import heap
from impasto.blocks import Block, Reader, halo_of, keeping, stride_of, trail_bytes
from impasto.discrepancies.styles import style_of
from impasto.maths.raster import blank
from impasto.networks.vgg import Encoder, Trail
from impasto.objective import combine, losses_of
from impasto.recipe import Recipe
from impasto.types import Additive, Features, Image, ImpastoError, Losses, Spreading

Kept: TypeAlias = dict[Block, tuple[dict[str, Features], Trail]]


@heap.kept()
def summarize(
    reader: Reader, measure: Additive, image: Image, taps: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summaries of an image of any size, and the pivots they were computed about."""
    pivots: dict[str, Any] = {}
    sums: dict[str, tuple[Tensor, ...]] = {}

    def gather(block: Block, tap: str, features: Features) -> None:
        points = reader.points(features, block, tap)
        if points.numel():
            if tap not in pivots:
                pivots[tap] = measure.pivot(points)
            sums[tap] = add(sums.get(tap), measure.gather(points, pivots[tap]))

    with torch.no_grad():
        for block in reader:
            rows = partial(_of_rows, gather, block)
            for tap, features in reader.encoder(block.cut(image), taps, watch=rows).items():
                gather(block, tap, features)
    summaries = {tap: measure.settle(sums[tap], reader.count(tap), pivots[tap]) for tap in taps}
    return summaries, pivots


def add(total: tuple[Tensor, ...] | None, part: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Sums of one more part, in double precision where the parts are."""
    return part if total is None else tuple(a + b for a, b in zip(total, part, strict=True))


def _of_rows(
    gather: Callable[[Block, str, Features], None],
    block: Block,
    tap: str,
    top: int,
    features: Features,
) -> None:
    """What is gathered of a block, of some rows of it."""
    gather(block.rows(top, features.shape[2]), tap, features)


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockObjective:
    """What :class:`impasto.objective.Objective` is, in bounded memory."""

    recipe: Recipe
    measure: Additive
    reader: Reader
    content_reader: Reader  # of the same places without a margin: the content counts to the border
    content: Image | None  # where a term looks at it
    content_features: Features
    styles: Mapping[str, Any]
    pivots: Mapping[str, Any]
    trails: float = 0.0  # bytes for those that are kept from one pass to the other

    def __call__(self, image: Image) -> tuple[Losses, Tensor]:
        """The losses at an image and the gradient of the total."""
        kept: Kept = {}
        sums, squares = self._first_pass(image, kept)
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
        self._trim()
        self._second_pass(image, gradient, slopes[0], by_tap, kept)
        self._trim()
        return losses_of(total, content, layers, style), gradient

    def losses(self, image: Image) -> Losses:
        """The losses at an image."""
        with torch.no_grad():
            return losses_of(*self._terms(*self._first_pass(image), image))

    def _trim(self) -> None:
        """Where memory is scarce, what blocks took is room for more of them, or for images."""
        if not self.trails:
            heap.trim()

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
        channels = self.content_features.shape[1]
        if self.reader.visible is None:
            height, width = self.reader.map_size(self.recipe.content_layer)
            return channels * height * width
        return channels * self.content_reader.count(self.recipe.content_layer)

    def _gather(self, block: Block, tap: str, window: Features) -> tuple[Tensor, ...]:
        """The sums of one tap of a block: nothing where no point of it belongs to the style."""
        points = self.reader.shown(window, block, tap)
        return self.measure.gather(points, self.pivots[tap]) if points.numel() else ()

    def _squares(self, block: Block, window: Features) -> tuple[Tensor]:
        """The sum of squares of the content in one block."""
        layer, reader = self.recipe.content_layer, self.content_reader
        theirs = reader.window_of_whole(self.content_features, block, layer)
        return (reader.shown(window - theirs, block, layer).square().sum(),)

    @heap.kept()
    def _first_pass(
        self, image: Image, kept: Kept | None = None
    ) -> tuple[dict[str, tuple[Tensor, ...]], Tensor]:
        """The sums of all blocks; what there is room for is kept for the way back."""
        total: dict[str, tuple[Tensor, ...]] = {}
        squares = image.new_zeros((), dtype=torch.float64 if image.device.type != "mps" else None)

        def gather(block: Block, tap: str, features: Features) -> None:
            if tap == self.recipe.content_layer:
                window = self.content_reader.window(features, block, tap)
                squares.add_(self._squares(block, window)[0])
            if tap in self.recipe.style_layers:
                window = self.reader.window(features, block, tap)
                if sums := self._gather(block, tap, window):
                    total[tap] = add(total.get(tap), sums)

        encoder = self.reader.encoder
        blocks = list(self.reader)[::-1]  # so that the last one is as large as any
        keeps = keeping([block.pixels for block in blocks], self.trails, trail_bytes(self._taps))
        with torch.no_grad():
            for block, stays in zip(blocks, keeps, strict=True):
                part, trail = block.cut(image), None
                watch = partial(_of_rows, gather, block)
                if kept is not None and stays:
                    taps, trail = encoder.trace(part, self._taps, watch=watch)
                else:
                    taps = encoder(part, self._taps, watch=watch)
                for tap, features in taps.items():
                    gather(block, tap, features)
                    del features
                if kept is not None and trail is not None:
                    kept[block] = taps, trail
                del taps, trail
        return {tap: total[tap] for tap in self.recipe.style_layers}, squares

    @heap.kept()
    def _second_pass(
        self,
        image: Image,
        gradient: Image,
        of_squares: Tensor,
        slopes: Mapping[str, tuple[Tensor, ...]],
        kept: Kept,
    ) -> None:
        """Add to the gradient what every block brings back to the pixels it looks at."""
        encoder = self.reader.encoder
        for block in self.reader:
            if block in kept:
                taps, trail = kept.pop(block)
            else:
                taps, trail = encoder.trace(block.cut(image), self._taps, watch=_look_away)
            back = partial(self._back, of_squares, slopes)
            block.cut(gradient).add_(_come_back(encoder, block, taps, trail, back))

    def _back(
        self,
        of_squares: Tensor,
        slopes: Mapping[str, tuple[Tensor, ...]],
        block: Block,
        tap: str,
        features: Features,
        total: Tensor | None,
    ) -> Tensor:
        """The gradient in one tap, and what has come back to it."""
        total = torch.zeros_like(features) if total is None else total
        if tap in slopes:
            self._add(slopes[tap], block, tap, features, total)
        if tap == self.recipe.content_layer:
            reader = self.content_reader
            window = reader.window(features, block, tap)
            gradient = _slope(partial(self._squares, block), window, (of_squares,))
            reader.window(total, block, tap).add_(gradient)
        return total

    def _add(
        self,
        slopes: tuple[Tensor, ...],
        block: Block,
        tap: str,
        features: Features,
        total: Tensor,
    ) -> None:
        """Add the gradient of the sums of one tap to what has come back to it."""
        window, onto = (self.reader.window(x, block, tap) for x in (features, total))
        if window.numel():
            # Of points that were picked by their visibility only autograd knows where they were.
            if isinstance(self.measure, Spreading) and self.reader.visible is None:
                points, others = (self.reader.shown(x, block, tap) for x in (window, onto))
                self.measure.spread(points, self.pivots[tap], slopes, others)
            else:
                onto += _slope(partial(self._gather, block, tap), window, slopes)

    @property
    def _taps(self) -> set[str]:
        return {*self.recipe.style_layers, self.recipe.content_layer}


def _come_back(
    encoder: Encoder,
    block: Block,
    taps: dict[str, Features],
    trail: Trail,
    back: Callable[[Block, str, Features, Tensor | None], Tensor],
) -> Tensor:
    """The gradient in the pixels of a block; its taps and its trail are used up."""

    def add(tap: str, total: Tensor | None) -> Tensor | None:
        return back(block, tap, taps.pop(tap), total) if tap in taps else total

    def add_rows(tap: str, top: int, features: Features, total: Tensor) -> Tensor:
        return back(block.rows(top, features.shape[2]), tap, features, total)

    found = encoder.back(trail, add, add_rows)
    assert found is not None  # there is always a tap
    return found


def _look_away(tap: str, top: int, features: Features) -> None:
    """For those who have seen it before."""


def _slope(
    sums_of: Callable[[Features], tuple[Tensor, ...]], window: Features, slopes: tuple[Tensor, ...]
) -> Tensor:
    """The gradient in a part of a map of some sums of it times slopes."""
    end = window.detach().requires_grad_()
    with torch.enable_grad():
        sums = sums_of(end)
    if not sums:
        return torch.zeros_like(window)
    slopes = tuple(each.to(part.dtype) for each, part in zip(slopes, sums, strict=True))
    return torch.autograd.grad(sums, end, slopes)[0]


def build(
    recipe: Recipe,
    encoder: Encoder,
    content: Image,
    style: Image,
    *,
    side: int,
    trails: float = 0.0,
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
    encoder.prepare({*recipe.style_layers, recipe.content_layer})
    halo = halo_of({*recipe.style_layers, recipe.content_layer})
    common: dict[str, Any] = {"encoder": encoder, "side": side, "halo": halo}
    styles, pivots = summarize(
        Reader(size=_size(style), visible=visible_style, margin=recipe.margin, **common),
        measure,
        style,
        list(recipe.style_layers),
    )
    plain = Reader(size=_size(content), visible=visible, **common)
    return BlockObjective(
        recipe=recipe,
        measure=measure,
        reader=Reader(size=_size(content), visible=visible, margin=recipe.margin, **common),
        content_reader=plain,
        content=content if recipe.laplacian else None,
        content_features=_features(plain, content, recipe.content_layer),
        styles=styles,
        pivots=pivots,
        trails=trails,
    )


def _features(reader: Reader, image: Image, tap: str) -> Features:
    """A whole tap, in one piece: parts would lie in the way of all that comes and goes."""
    whole: Tensor | None = None
    stride = stride_of(tap)
    with torch.no_grad(), heap.kept():
        for block in reader:
            rows, columns = reader.place(block, tap)
            top, left = block.outer[0] // stride, block.outer[2] // stride
            part = reader.encoder(block.cut(image), [tap])[tap]
            whole = blank(part, reader.map_size(tap)) if whole is None else whole
            whole[..., rows, columns] = part[
                ...,
                rows.start - top : rows.stop - top,
                columns.start - left : columns.stop - left,
            ]
            del part
    assert whole is not None
    return whole


def _size(image: Image) -> tuple[int, int]:
    return image.shape[1], image.shape[2]
