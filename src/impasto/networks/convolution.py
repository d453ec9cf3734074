"""A frozen 3×3 convolution and its gradient in the input, each on the fastest route.

On a CPU there are three. NNPACK inside torch computes by Winograd's algorithm, 2 to 3 times faster
than the default for large maps; it is reached by a private name, so it is looked up once, verified
against the ordinary convolution, and left alone where it is absent. Small maps of many channels
go by the same algorithm with the kernel transformed beforehand (:mod:`impasto.networks.tiles`).
The rest takes torch's own. The route depends on the shape alone, never on a measurement: same
input, same bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.networks import tiles

SMALLEST_MAP = 40 * 40  # of NNPACK: below, it spends its time on transforming the kernel
SMALLEST_TILED_MAP, FEWEST_TILED_CHANNELS = 16 * 16, 256  # all measured: benchmarks/layers.py
LARGEST_BAND, TILE = 256 * 256, 6  # positions that NNPACK gets at a time; rows of its tiles
TOLERANCE = 1e-3  # of the verification; the error of Winograd's algorithm is about 1e-5

Before = Callable[[Tensor], Tensor]  # what is done to the input, part by part
Convolution = Callable[[Tensor, Tensor, Tensor | None, Before], Tensor]


@dataclass(frozen=True, eq=False)
class Frozen:
    """A convolution of images (1, C, H, W), zero-padded to their own size, that never learns."""

    weight: Tensor  # (K, C, 3, 3)
    bias: Tensor  # (K,)

    def __call__(self, x: Tensor) -> Tensor:
        """The convolution."""
        return self._of(x, torch.Tensor.contiguous)

    def of_rectified(self, x: Tensor) -> Tensor:
        """The convolution of relu(x), which is not made as a whole where x is large."""
        return self._of(x, F.relu)

    def _of(self, x: Tensor, before: Before) -> Tensor:
        if self._suits_tiles(x):
            return tiles.convolve(before(x), self._tiled) + self.bias[:, None, None]
        return _route(x, self.weight)(x, self.weight, self.bias, before)

    def back(self, gradient: Tensor) -> Tensor:
        """The gradient in the input: a convolution with the flipped kernel."""
        if self._suits_tiles(gradient):
            return tiles.convolve_back(gradient, self._tiled)
        convolve = _route(gradient, self._flipped)
        return convolve(gradient, self._flipped, None, torch.Tensor.contiguous)

    def prepare(self) -> None:
        """Make the kernel of the way back."""
        _ = self._flipped

    @functools.cached_property
    def _flipped(self) -> Tensor:
        return self.weight.flip(2, 3).transpose(0, 1).contiguous()

    @functools.cached_property
    def _tiled(self) -> Tensor:
        return tiles.transform(self.weight)

    def _suits_tiles(self, x: Tensor) -> bool:
        return (
            _plain(x)
            and SMALLEST_TILED_MAP <= x.shape[2] * x.shape[3] < SMALLEST_MAP
            and min(self.weight.shape[:2]) >= FEWEST_TILED_CHANNELS
        )


def _plain(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.shape[0] == 1


def _ordinary(x: Tensor, weight: Tensor, bias: Tensor | None, before: Before) -> Tensor:
    return F.conv2d(before(x), weight, bias, padding=1)


def _route(x: Tensor, weight: Tensor) -> Convolution:
    suits = _plain(x) and x.shape[2] * x.shape[3] >= SMALLEST_MAP and min(weight.shape[:2]) > 3
    return (winograd() if suits else None) or _ordinary


@functools.cache
def winograd() -> Convolution | None:
    """NNPACK's convolution where this build of torch has it and it computes the right thing."""
    try:
        if not torch.backends.nnpack.is_available():
            return None
        native = torch._nnpack_spatial_convolution

        def whole(x: Tensor, weight: Tensor, bias: Tensor | None, before: Before) -> Tensor:
            return native(before(x).contiguous(), weight, bias, [1, 1], [1, 1])

        def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, before: Before) -> Tensor:
            if x.shape[2] * x.shape[3] <= LARGEST_BAND:
                return whole(x, weight, bias, before)
            # Its workspace is twice the size of what goes in and out: a band at a time.
            height = max(TILE, LARGEST_BAND // x.shape[3] // TILE * TILE)
            out = x.new_empty((1, weight.shape[0], *x.shape[2:]))
            for top in range(0, x.shape[2], height):
                above = min(top, 1)
                band = x[:, :, top - above : top + height + 1]
                bottom = min(top + height, x.shape[2])
                out[:, :, top:bottom] = whole(band, weight, bias, before)[
                    :, :, above : above + bottom - top
                ]
            return out

        generator = torch.Generator().manual_seed(0)
        x = torch.randn(1, 8, 24, 19, generator=generator)
        weight = torch.randn(5, 8, 3, 3, generator=generator)
        bias = torch.randn(5, generator=generator)
        for offset in (bias, None):
            inputs = x, weight, offset, torch.Tensor.contiguous
            error = (convolution(*inputs) - _ordinary(*inputs)).abs().max()
            if not error < TOLERANCE:
                return None
    except (AttributeError, RuntimeError, TypeError):
        return None
    return convolution
