"""The objective of an image that does not fit into memory, exactly.

Summaries follow from sums over points. Pass one adds up the sums block by block without a graph;
the objective gives the gradient in the sums; pass two goes through the blocks again and brings
that gradient back to the pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from impasto.blocks import Block, Reader, halo_of
from impasto.discrepancies.styles import style_of
from impasto.networks.vgg import Encoder
from impasto.objective import combine, losses_of
from impasto.recipe import Recipe
from impasto.types import Additive, Image, ImpastoError, Losses


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
