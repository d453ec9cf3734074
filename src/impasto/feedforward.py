"""The feed-forward family: features of the content moved to those of the style, then decoded.

One pass per level, coarse to fine (Li et al. 2017): encode, transfer, decode, and on with the
result. What our decoders cannot tell of an image stays as it was: they are linear, so

.. math:: o' = o + D(T(F(o)) - F(o))

A map is fitted to points of the whole image and applied block by block where the image is too
large, so that no seam shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.blocks import STRIDE, Block, Reader, halo_of
from impasto.maths.linalg import flat
from impasto.networks.decoder import Decoder
from impasto.networks.vgg import Encoder
from impasto.objective import losses_of, points_of
from impasto.recipe import CHANNELS, Recipe, convolution
from impasto.transfers import Map, transfers
from impasto.types import Features, Image, Losses, Points

# A deep level of a small picture has fewer points than channels: what they seem to say of
# correlations is chance, and whitened it paints blotches.
FITS = transfers(doubt=1.0)
SAMPLE = 2**23  # numbers that a map is fitted to; of more points a random part
BORDER = 2  # of the mirrored frame: positions of the level
BYTES = 2500.0  # per pixel of a pass over the whole image (benchmarks/memory.py)


@dataclass(frozen=True, kw_only=True, eq=False)
class Passes:
    """A feed-forward method and its style, ready for any content; the style is read once."""

    recipe: Recipe
    encoder: Encoder
    decoders: Mapping[int, Decoder]  # by level
    style: Image
    visible_style: Tensor | None = None
    side: int | None = None  # of the blocks; None where a picture fits as a whole

    def __call__(
        self,
        content: Image,
        *,
        visible: Tensor | None = None,
        done: int = 0,
    ) -> Iterator[Image]:
        """The image after each pass; the first ones may be done already."""
        height, width = content.shape[1:]
        image = content
        with torch.no_grad():
            for level in self.recipe.passes[done:]:
                border = _border((height, width), level)
                framed = _framed(image, border)
                mask = None if visible is None else _framed(visible[None], border)[0]
                framed = self._rebuilt(self._reader(framed, [level], mask), framed, level)
                image = framed[:, border : border + height, border : border + width]
                yield image

    @cached_property
    def _targets(self) -> dict[str, Points]:
        """The points of the style at every level, by one look."""
        read = self._reader(self.style, self.recipe.passes, self.visible_style)
        with torch.no_grad():
            return self._sample(
                read, self.style, [f"relu{level}_1" for level in self.recipe.passes]
            )

    def _reader(self, image: Image, levels: Sequence[int], visible: Tensor | None) -> Reader:
        size = (image.shape[1], image.shape[2])
        reach = max(halo_of([f"relu{level}_1"]) + self.decoders[level].halo for level in levels)
        return Reader(
            encoder=self.encoder,
            size=size,
            side=self.side or max(size),
            halo=-(-reach // STRIDE) * STRIDE,  # blocks begin where the deepest level does
            visible=visible,
            margin=self.recipe.margin,
        )

    def _rebuilt(self, read: Reader, image: Image, level: int) -> Image:
        """The image with the features of a level moved to those of the style."""
        blocks, tap, known = list(read), f"relu{level}_1", {}
        if len(blocks) == 1:  # one look serves both, the fit and the move
            known[blocks[0]] = self.encoder(image, [tap])
        source = self._sample(read, image, [tap], known)[tap]
        move = FITS[self.recipe.method](source, self._targets[tap])
        result = torch.empty_like(image)
        for block in blocks:
            seen = block.cut(image)
            features = (known.get(block) or self.encoder(seen, [tap]))[tap]
            decoded = self._decoded(seen, features, move, level)
            top, bottom, left, right = block.inner
            rows = slice(top - block.outer[0], bottom - block.outer[0])
            columns = slice(left - block.outer[2], right - block.outer[2])
            result[:, top:bottom, left:right] = decoded[:, rows, columns].clamp(0, 1)
        return result

    def _decoded(self, seen: Image, features: Features, move: Map, level: int) -> Image:
        after = moved(features, move, self.recipe.strength)
        return self.decoders[level].repaint(seen[None], features, after, level)[0]

    def _sample(
        self,
        read: Reader,
        image: Image,
        taps: Sequence[str],
        known: Mapping[Block, Mapping[str, Features]] | None = None,
    ) -> dict[str, Points]:
        """Points of some levels from all over an image, as many as a map can be fitted to."""
        generator = torch.Generator().manual_seed(self.recipe.seed)
        found: dict[str, list[Points]] = {tap: [] for tap in taps}
        for block in read:
            features = (known or {}).get(block) or self.encoder(block.cut(image), taps)
            for tap in taps:
                share = SAMPLE / (read.count(tap) * CHANNELS[convolution(tap)])
                points = flat(read.points(features[tap], block, tap))
                if share < 1 and len(points):
                    count = max(1, round(share * len(points)))
                    points = points[torch.randperm(len(points), generator=generator)[:count]]
                found[tap].append(points)
        return {tap: torch.cat(parts) for tap, parts in found.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Approach:
    r"""How far an image is from features that were transferred: decoding without a decoder.

    .. math:: \sum_l \lVert F_l(o) - T_l \rVert^2 / \lVert T_l - \bar T_l \rVert^2

    Its minimum is the honest reference for what a transfer can do.
    """

    recipe: Recipe
    encoder: Encoder
    targets: Mapping[str, Features]
    content_features: Features

    def __call__(self, image: Image) -> tuple[Losses, Tensor]:
        """The losses at an image and the gradient of the total."""
        image = image.detach().requires_grad_()
        taps = self.encoder(image, {*self.targets, self.recipe.content_layer})
        layers = {
            name: (taps[name] - target).square().sum() / _spread(target)
            for name, target in self.targets.items()
        }
        style = torch.stack(list(layers.values())).mean()
        content = (taps[self.recipe.content_layer] - self.content_features).square().mean()
        (gradient,) = torch.autograd.grad(style, image)
        return losses_of(style, content, layers, style), gradient


def build(
    recipe: Recipe,
    encoder: Encoder,
    content: Image,
    style: Image,
    *,
    visible: Tensor | None = None,
    visible_style: Tensor | None = None,
) -> Approach:
    """The distance to the content's features, transferred at every layer of the recipe."""
    taps = [*recipe.style_layers]
    with torch.no_grad():
        ours = encoder(content, {*taps, recipe.content_layer})
        theirs = encoder(style, taps)
        targets = {}
        for tap in taps:
            move = FITS[recipe.method](
                flat(points_of(ours[tap], visible, recipe.margin)),
                flat(points_of(theirs[tap], visible_style, recipe.margin)),
            )
            targets[tap] = moved(ours[tap], move, recipe.strength)
    return Approach(
        recipe=recipe,
        encoder=encoder,
        targets=targets,
        content_features=ours[recipe.content_layer],
    )


def moved(features: Features, move: Map, strength: float) -> Features:
    """The features of a whole map at new places; some may be below zero, where ReLU has none."""
    points = features[0].flatten(1).T
    found = move(points)
    if strength != 1:
        found = points.lerp(found, strength)
    return found.T.reshape(features.shape)


def _spread(target: Features) -> Tensor:
    """The squared distance of all points from their mean, never 0."""
    return (target - target.mean((2, 3), keepdim=True)).square().sum().clamp_min(1e-6)


def _framed(image: Image, border: int) -> Image:
    """The image in a mirrored frame, its sides whole strides of the deepest level."""
    height, width = image.shape[1:]
    right, bottom = (border + -(side + 2 * border) % STRIDE for side in (width, height))
    return F.pad(image[None], (border, right, border, bottom), mode="reflect")[0]


def _border(size: tuple[int, int], level: int) -> int:
    """The width of the frame: zeros that the encoder pads with would paint one of their own."""
    border = BORDER * 2 ** (level - 1)
    return border if min(size) >= 2 * border else STRIDE
