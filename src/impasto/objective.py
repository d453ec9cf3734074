"""What an image is asked for: the content of one picture, the style of another (eq. 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto import heap
from impasto.discrepancies.styles import style_of
from impasto.maths.raster import crop, picked
from impasto.networks.vgg import Encoder
from impasto.recipe import Recipe
from impasto.types import Discrepancy, Features, Image, Losses, Points, Spreading

CONTENT = "content"  # the part of the objective that no style layer is
LARGE = 2**20  # pixels; up to here there is memory enough, and time counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Objective:
    r"""α·content + (1 − α)·style, and what smooths.

    .. math:: \alpha \, \lVert F_4(o) - F_4(c) \rVert^2 / (n C)
        + (1 - \alpha) \sum_l w_l \, u \, D(F_l(o), F_l(s))

    Every term is a mean over positions, so that values do not depend on the size of an image.
    """

    encoder: Encoder
    recipe: Recipe
    measure: Discrepancy
    content: Image
    content_features: Features
    styles: Mapping[str, Any]  # layer -> summary of the style
    visible: Tensor | None  # (H, W) in [0, 1]: where the content is not transparent

    @heap.kept()
    def __call__(self, image: Image) -> tuple[Losses, Tensor]:
        """The losses at an image and the gradient of the total."""
        lean = image[0].numel() > LARGE
        taps, trail = self.encoder.trace(image, self._taps, lean=lean)
        parts = {name: self._part(name, each) for name, each in self._seen(taps).items()}
        values = {name: part.value.detach().requires_grad_() for name, part in parts.items()}
        whole = image.detach().requires_grad_()
        total, content, layers, style = self._total(whole, values)
        found = torch.autograd.grad(total, [whole, *values.values()], allow_unused=True)
        slopes = dict(zip(values, found[1:], strict=True))
        parts = {name: part for name, part in parts.items() if slopes[name]}  # 0 at α = 0 or 1

        def add(tap: str, total: Tensor | None) -> Tensor | None:
            """Of one part at a time: what was kept for it is free before the next is asked for."""
            if tap not in taps:
                return total
            features = taps.pop(tap)
            total = torch.zeros_like(features) if total is None else total
            del features
            for name in [CONTENT] * (tap == self.recipe.content_layer) + [tap]:
                part = parts.pop(name, None)
                if part is not None:
                    part.add(slopes[name], total)
            return total

        gradient = self.encoder.back(trail, add)
        assert gradient is not None  # there is always a tap
        gradient = gradient if found[0] is None else gradient + found[0]
        return losses_of(total, content, layers, style), gradient

    def of(self, recipe: Recipe) -> Objective:
        """The same pictures under a recipe that looks at some of the layers."""
        with torch.no_grad():
            features = self.encoder(self.content, [recipe.content_layer])[recipe.content_layer]
        return replace(self, recipe=recipe, content_features=features)

    def losses(self, image: Image) -> Losses:
        """The losses at an image."""
        with torch.no_grad():
            parts = self._parts(self._seen(self.encoder(image, self._taps)))
            return losses_of(*self._total(image, parts))

    @property
    def _taps(self) -> set[str]:
        return {*self.recipe.style_layers, self.recipe.content_layer}

    def _seen(self, taps: Mapping[str, Features]) -> dict[str, Seen]:
        """What of the taps the style loss of every layer looks at, and the content loss."""
        recipe = self.recipe
        seen = {
            name: inside(taps[name], self.visible, recipe.margin) for name in recipe.style_layers
        }
        return {**seen, CONTENT: inside(taps[recipe.content_layer], self.visible)}

    def _parts(self, seen: Mapping[str, Seen]) -> dict[str, Tensor]:
        """The style loss of every layer, and the content loss."""
        parts = {
            name: self.measure.compare(self.measure.summarize(seen[name].points), self.styles[name])
            for name in self.recipe.style_layers
        }
        return {**parts, CONTENT: self._content(seen[CONTENT])}

    def _part(self, name: str, seen: Seen) -> Part:
        """The style loss of a layer, or the content loss."""
        if name == CONTENT:
            return _of_graph(self._content, seen)
        return style_part(self.measure, seen, self.styles[name])

    def _total(
        self, image: Image, parts: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor], Tensor]:
        layers = {name: parts[name] for name in self.recipe.style_layers}
        return combine(self.recipe, image, self.content, parts[CONTENT], layers)

    def _content(self, seen: Seen) -> Tensor:
        squares = (seen.features - self.content_features).square()
        return squares.mean() if seen.shares is None else Seen(squares, seen.shares).points.mean()


def summarize_style(
    recipe: Recipe, encoder: Encoder, style: Image, visible: Tensor | None = None
) -> Mapping[str, Any]:
    """The summary of a style at each of its layers."""
    measure = style_of(recipe).build(recipe)
    with torch.no_grad():
        taps = encoder(style, recipe.style_layers)
        return {
            name: measure.summarize(points_of(taps[name], visible, recipe.margin))
            for name in recipe.style_layers
        }


Summarize: TypeAlias = Callable[[Recipe, Encoder, Image, "Tensor | None"], Mapping[str, Any]]


def build(
    recipe: Recipe,
    encoder: Encoder,
    content: Image,
    style: Image,
    *,
    visible: Tensor | None = None,
    visible_style: Tensor | None = None,
    summarize: Summarize = summarize_style,
) -> Objective:
    """The objective of one content and one style at their present sizes."""
    encoder.prepare({*recipe.style_layers, recipe.content_layer})
    with torch.no_grad():
        features = encoder(content, [recipe.content_layer])[recipe.content_layer]
    return Objective(
        encoder=encoder,
        recipe=recipe,
        measure=style_of(recipe).build(recipe),
        content=content,
        content_features=features,
        styles=summarize(recipe, encoder, style, visible_style),
        visible=visible,
    )


class Seen(NamedTuple):
    """The part of a map (1, C, H, W) that counts, and how visible its positions are."""

    features: Features
    shares: Tensor | None  # (H, W), where some are not

    @property
    def points(self) -> Points:
        """The positions as points (n, C), without transparent ones, or (H, W, C) if all count."""
        if self.shares is None:
            return self.features.squeeze(0).permute(1, 2, 0)
        return picked(self.features, self.shares >= min(0.5, float(self.shares.max())))

    @property
    def width(self) -> int:
        """Positions of a row."""
        return self.features.shape[-1]

    def leaf(self) -> Seen:
        """The same as an end of gradients."""
        return Seen(self.features.detach().requires_grad_(), self.shares)


class Part(NamedTuple):
    """A loss of what is seen of a map, and the way back from it."""

    value: Tensor
    width: int  # of what is seen
    ends: tuple[Tensor, ...]  # of the graph of the value
    back: Callable[[tuple[Tensor, ...], Seen], object]  # from slopes in them; added to a map

    def add(self, slope: Tensor, total: Features) -> None:
        """Add the gradient in a map of which this saw all but a margin."""
        with torch.enable_grad():  # multiplied, as torch imports all of sympy for given slopes
            value = self.value * slope
        slopes = torch.autograd.grad(value, self.ends)
        self.back(slopes, Seen(crop(total, (total.shape[-1] - self.width) // 2), None))


def style_part(measure: Discrepancy, seen: Seen, style: Any) -> Part:
    """The style loss of a layer.

    Where the gradient of the sums behind it is known it is added without a graph over the points.
    """
    if not isinstance(measure, Spreading) or seen.shares is not None:
        return _of_graph(lambda leaf: measure.compare(measure.summarize(leaf.points), style), seen)
    points = seen.points.detach()
    pivot = measure.pivot(points)
    ends = tuple(part.requires_grad_() for part in measure.gather(points, pivot))
    value = measure.compare(measure.settle(ends, math.prod(points.shape[:-1]), pivot), style)
    return Part(
        value,
        seen.width,
        ends,
        lambda slopes, onto: measure.spread(points, pivot, slopes, onto.points),
    )


def _of_graph(value_of: Callable[[Seen], Tensor], seen: Seen) -> Part:
    leaf = seen.leaf()
    return Part(
        value_of(leaf),
        seen.width,
        (leaf.features,),
        lambda slopes, onto: onto.features.add_(slopes[0]),
    )


def inside(features: Features, visible: Tensor | None = None, margin: int = 0) -> Seen:
    """A map without a margin at its border, where the zero padding of the network shows.

    Matching it paints a frame (docs/decisions). Small maps, of which nothing would remain, are
    taken whole.
    """
    shares = None
    if visible is not None:
        shares = F.interpolate(visible[None, None], features.shape[2:], mode="area")[0, 0]
    if margin and min(features.shape[2:]) >= 4 * margin:
        inner = None if shares is None else shares[margin:-margin, margin:-margin]
        if inner is None or inner.any():
            return Seen(crop(features, margin), inner)
    return Seen(features, shares)


def points_of(features: Features, visible: Tensor | None = None, margin: int = 0) -> Points:
    """The positions of a map (1, C, H, W) that count, as points (n, C) or (H, W, C)."""
    return inside(features, visible, margin).points


def total_variation(image: Image) -> Tensor:
    """The mean absolute difference of neighboring pixels."""
    return image.diff(dim=1).abs().mean() + image.diff(dim=2).abs().mean()


def laplacian_loss(image: Image, content: Image) -> Tensor:
    """The mean squared difference of Laplacians after 4 × 4 pooling (Li et al. 2017)."""
    kernel = image.new_tensor([[0.0, -1.0, 0.0], [-1.0, 4.0, -1.0], [0.0, -1.0, 0.0]])
    pooled = F.avg_pool2d((image - content)[:, None], 4)
    return F.conv2d(pooled, kernel[None, None]).square().mean()


def combine(
    recipe: Recipe, image: Image, original: Image | None, content: Tensor, layers: dict[str, Tensor]
) -> tuple[Tensor, Tensor, dict[str, Tensor], Tensor]:
    """The total of eq. 1 from its parts, which follow it: content, layers, style."""
    weights = style_of(recipe).weights(recipe)
    style = torch.stack([weight * layers[name].float() for name, weight in weights.items()]).sum()
    total = recipe.alpha * content.float() + (1 - recipe.alpha) * style
    if recipe.tv:
        total = total + recipe.tv * total_variation(image)
    if recipe.laplacian:
        assert original is not None
        total = total + recipe.laplacian * laplacian_loss(image, original)
    return total, content, layers, style


def losses_of(total: Tensor, content: Tensor, layers: dict[str, Tensor], style: Tensor) -> Losses:
    """The numbers behind the terms."""
    return Losses(
        total=total.item(),
        content=content.item(),
        style=style.item(),
        layers={name: value.item() for name, value in layers.items()},
    )
