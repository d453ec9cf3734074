"""The way back from features to an image.

Ours is a linear map of 3×3 features per level, found in closed form (``impasto.training``). The
original one of AdaIN (Huang and Belongie 2017) is the mirrored encoder, for relu4_1 alone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch.nn.functional as F
from torch import Tensor

from impasto.networks.convolution import Frozen, placed
from impasto.recipe import CHANNELS
from impasto.types import Features

LEVELS = (1, 2, 3, 4, 5)  # of relu1_1 … relu5_1
GRID = 4  # a position tells at most 4 × 4 colors; finer ones it cannot know
ORIGINAL_LEVEL = 4
ORIGINAL_KERNELS = ("1", "5", "8", "11", "14", "18", "21", "25", "28")  # as its file names them
ORIGINAL_RISES = ("1", "14", "21")  # after which it doubles the size


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear:
    """Our decoder."""

    name: str
    sha256: str
    kernels: Mapping[str, Tensor]  # 'relu5_1.weight', 'relu5_1.bias', …
    levels: tuple[int, ...] = LEVELS
    halo: int = 20  # relu5_1: 16 pixels, and the next of its colors

    def __call__(self, features: Features, level: int) -> Tensor:
        """The image of features."""
        bias = self.kernels[f"relu{level}_1.bias"][:, None, None]
        return _spread(self._maps[level](features) + bias, level)

    def repaint(self, image: Tensor, before: Features, after: Features, level: int) -> Tensor:
        """An image (1, 3, H, W) changed as its features are; what these do not tell stays."""
        return image + _spread(self._maps[level](after - before), level)

    @functools.cached_property
    def _maps(self) -> dict[int, Frozen]:
        weights = {level: self.kernels[f"relu{level}_1.weight"] for level in LEVELS}
        return {
            level: Frozen(placed(kernel), kernel.new_zeros(len(kernel)))
            for level, kernel in weights.items()
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Original:
    """The decoder of AdaIN, its first kernel in the units of our encoder."""

    name: str
    sha256: str
    kernels: Mapping[str, Tensor]
    levels: tuple[int, ...] = (ORIGINAL_LEVEL,)
    halo: int = 32  # 8 + 4 · 4 + 2 · 2 + 2 · 1 pixels

    def __call__(self, features: Features, level: int) -> Tensor:
        """The image of features; borders are mirrored, as in its training."""
        x = features
        for name, layer in self._layers.items():
            # The convolution pads with zeros, on which nothing that is kept depends.
            x = layer(F.pad(x, (1, 1, 1, 1), mode="reflect"))[..., 1:-1, 1:-1]
            if name != ORIGINAL_KERNELS[-1]:
                x = F.relu(x)
            if name in ORIGINAL_RISES:
                x = F.interpolate(x, scale_factor=2)
        return x

    def repaint(self, image: Tensor, before: Features, after: Features, level: int) -> Tensor:
        """An image of its own: to the one before nothing is added, it would show through."""
        return self(after, level)

    @functools.cached_property
    def _layers(self) -> dict[str, Frozen]:
        return {
            name: Frozen(placed(self.kernels[f"{name}.weight"]), self.kernels[f"{name}.bias"])
            for name in ORIGINAL_KERNELS
        }


Decoder: TypeAlias = Linear | Original
"""Features of one of its levels (1, C, H / s, W / s) in, an image (1, 3, H, W) out, in [0, 1] or a
little beyond. A feature shows no further than ``halo`` pixels beyond its own."""


def shapes() -> dict[str, tuple[int, int, int, int]]:
    """The kernels of our decoder by name: channels out and in, height and width."""
    return {
        f"relu{level}_1": (3 * grid(level) ** 2, CHANNELS[f"conv{level}_1"], 3, 3)
        for level in LEVELS
    }


def grid(level: int) -> int:
    """The colors per position and axis that a level tells."""
    return min(2 ** (level - 1), GRID)


def _spread(colors: Tensor, level: int) -> Tensor:
    """The image of the colors of every position."""
    image = F.pixel_shuffle(colors, grid(level))
    scale = 2 ** (level - 1) // grid(level)
    if scale == 1:
        return image
    return F.interpolate(image, scale_factor=scale, mode="bilinear", align_corners=False)
