"""The way back from features to an image.

Ours is one network with a door for each of five levels. What a linear map of the features can
tell of the image is found in closed form, by least squares over 3×3 positions (``skip``); a small
network adds what it cannot. The features of relu5_1 … relu2_1 enter it by a door of their own and
share all that lies between the door and the image; relu1_1 needs the linear map alone.

The original one of AdaIN (Huang and Belongie 2017) is the mirrored encoder, for relu4_1 alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch.nn.functional as F
from torch import Tensor

from impasto.networks.convolution import Frozen
from impasto.recipe import CHANNELS
from impasto.types import Features

LEVELS = (1, 2, 3, 4, 5)  # of relu1_1 … relu5_1
WIDTHS = {2: 64, 3: 128, 4: 256, 5: 256}  # channels inside, at the size of the level
LINEAR = tuple(f"skip{level}" for level in LEVELS)  # the kernels of the linear maps
SKIP_GRID = 4  # the linear map tells at most 4 × 4 colors per position; finer ones it cannot know
ORIGINAL_LEVEL = 4
ORIGINAL_KERNELS = ("1", "5", "8", "11", "14", "18", "21", "25", "28")  # as its file names them
ORIGINAL_RISES = ("1", "14", "21")  # after which it doubles the size

Convolve = Callable[[str, Tensor], Tensor]  # by the name of the kernel


@dataclass(frozen=True, kw_only=True, eq=False)
class Doors:
    """Our decoder."""

    name: str
    sha256: str
    kernels: Mapping[str, Tensor]  # 'skip5.weight', 'skip5.bias', …; of the network all or none
    levels: tuple[int, ...] = LEVELS
    halo: int = 64  # relu5_1: 16 + 16 + 8 + 8 + 4 + 4 + 2 + 2 + 2 pixels
    adds_rest: bool = True  # it is near the image, so that what it leaves may be added

    def __call__(self, features: Features, level: int) -> Tensor:
        """The image of features."""
        whole = "paint.weight" in self.kernels
        network = decode if whole else decode_linearly
        return network(lambda name, x: self._layers[name](x), features, level)

    @functools.cached_property
    def _layers(self) -> dict[str, Callable[[Tensor], Tensor]]:
        layers: dict[str, Callable[[Tensor], Tensor]] = {}
        for name in shapes() if "paint.weight" in self.kernels else LINEAR:
            weight, bias = self.kernels[f"{name}.weight"], self.kernels[f"{name}.bias"]
            single = weight.shape[2:] == (1, 1)
            layers[name] = (
                partial(F.conv2d, weight=weight, bias=bias) if single else Frozen(weight, bias)
            )
        return layers


@dataclass(frozen=True, kw_only=True, eq=False)
class Original:
    """The decoder of AdaIN, its first kernel in the units of our encoder."""

    name: str
    sha256: str
    kernels: Mapping[str, Tensor]
    levels: tuple[int, ...] = (ORIGINAL_LEVEL,)
    halo: int = 32  # 8 + 4 · 4 + 2 · 2 + 2 · 1 pixels
    adds_rest: bool = False  # it paints an image of its own

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

    @functools.cached_property
    def _layers(self) -> dict[str, Frozen]:
        return {
            name: Frozen(self.kernels[f"{name}.weight"], self.kernels[f"{name}.bias"])
            for name in ORIGINAL_KERNELS
        }


Decoder: TypeAlias = Doors | Original
"""Features of one of its levels (1, C, H / s, W / s) in, an image (1, 3, H, W) out, in [0, 1] or a
little beyond. A feature shows no further than ``halo`` pixels beyond its own."""


def shapes() -> dict[str, tuple[int, int, int, int]]:
    """The kernels of our decoder by name: channels out and in, height and width."""
    kernels = {}
    for level in LEVELS:
        channels = CHANNELS[f"conv{level}_1"]
        kernels[f"skip{level}"] = (3 * grid(level) ** 2, channels, 3, 3)
        if level in WIDTHS:
            kernels[f"door{level}"] = (WIDTHS[level], channels, 1, 1)
            kernels[f"mix{level}"] = (WIDTHS[level], WIDTHS[level], 3, 3)
        if level - 1 in WIDTHS:
            kernels[f"rise{level}"] = (WIDTHS[level - 1], WIDTHS[level], 3, 3)
    return {**kernels, "paint": (3 * 2**2, WIDTHS[2], 3, 3)}


def grid(level: int) -> int:
    """The colors per position and axis that the linear map of a level tells."""
    return min(2 ** (level - 1), SKIP_GRID)


def decode_linearly(convolve: Convolve, features: Features, level: int) -> Tensor:
    """The image as far as a linear map can tell it."""
    image = F.pixel_shuffle(convolve(f"skip{level}", features), grid(level))
    scale = 2 ** (level - 1) // grid(level)
    if scale == 1:
        return image
    return F.interpolate(image, scale_factor=scale, mode="bilinear", align_corners=False)


def enter(convolve: Convolve, features: Features, level: int) -> Tensor:
    """The state of the network behind a door."""
    return F.relu(convolve(f"door{level}", features))


def rise(convolve: Convolve, state: Tensor, level: int) -> Tensor:
    """The state at the next finer level, twice as large."""
    mixed = F.relu(convolve(f"mix{level}", state))
    return F.relu(convolve(f"rise{level}", F.interpolate(mixed, scale_factor=2)))


def paint(convolve: Convolve, state: Tensor) -> Tensor:
    """What the network adds to the linear image, from its state at level 2."""
    return F.pixel_shuffle(convolve("paint", F.relu(convolve("mix2", state))), 2)


def decode(convolve: Convolve, features: Features, level: int) -> Tensor:
    """Images (n, 3, H, W) of features (n, C, H / s, W / s)."""
    image = decode_linearly(convolve, features, level)
    if level not in WIDTHS:
        return image
    state = enter(convolve, features, level)
    for coarse in range(level, 2, -1):
        state = rise(convolve, state, coarse)
    return image + paint(convolve, state)
