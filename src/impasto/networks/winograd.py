"""Winograd's convolution in compiled loops (``native/winograd.c``), of maps position by position.

A kernel is transformed once and serves both ways. Large tiles need fewer products but a larger
transformed kernel: kernels of many channels are transformed for the smaller tiles.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto import native
from impasto.maths.raster import laid
from impasto.networks.pooling import Choice, halve_back

# The powers 1, p, p² at the points p of the interpolation, in the scales that native/winograd.c
# expects: those at p and at 1/p mirror each other.
EVALUATIONS = {
    6: ((18, 0, 0), (18, 18, 18), (1, -1, 1), (1, 2, 4), (4, 2, 1), (0, 0, 18)),
    8: (
        (90, 0, 0),
        (-20, -20, -20),
        (-20, 20, -20),
        (1, 2, 4),
        (1, -2, 4),
        (4, 2, 1),
        (4, -2, 1),
        (0, 0, 90),
    ),
}
UNITS = {6: 18.0, 8: 90.0}  # of these
MANY = 256 * 512  # channels in times out from which on tiles are small: their kernels fill memory
BLOCK, LARGE_BLOCK = 48, 132  # tiles at a time, fewer and more than so many channels, for the cache
MANY_CHANNELS = 512
TOLERANCE = 1e-4  # of the verification; the error is about 1e-5


class _Job(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ["input", "kernel", "bias", "sign", "passes", "origin", "which", "output"]
        ),
        *(
            (name, ctypes.c_long)
            for name in (
                *("rows", "width", "incoming", "outgoing", "height", "above"),
                *("side", "block", "rectify", "flipped"),
            )
        ),
    ]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel (K, C, 3, 3) transformed."""

    values: Tensor  # (points, K / panel, C, panel)
    outgoing: int
    incoming: int
    side: int  # of the tiles

    @classmethod
    def of(cls, weight: Tensor) -> Kernel:
        """In tiles of the size that suits its channels."""
        outgoing, incoming = weight.shape[:2]
        side = 6 if incoming * outgoing >= MANY else 8
        width = panel()
        steps = torch.tensor(EVALUATIONS[side], dtype=torch.float32) / UNITS[side]
        values = torch.empty(side * side, outgoing // width, incoming, width)
        for k in range(0, outgoing, width):  # a part at a time: the whole is large
            part = weight[k : k + width].permute(2, 3, 1, 0).reshape(3, 3 * incoming * width)
            rows = (steps @ part).view(side, 3, -1).transpose(0, 1).reshape(3, -1)
            points = (steps @ rows).view(side, side, incoming, width).transpose(0, 1)
            values[:, k // width] = points.reshape(-1, incoming, width)
        return cls(values, outgoing, incoming, side)

    def convolve(
        self,
        x: Tensor,
        bias: Tensor | None,
        *,
        edges: tuple[int, int] = (1, 1),
        rectify: bool = False,
    ) -> Tensor:
        """Rows of a map (1, C, H, W), or of relu of it, convolved: (1, K, H + edges - 2, W).

        Left and right of them are zeros, and so many rows of zeros are above and below.
        """
        height, width = x.shape[2] + sum(edges) - 2, x.shape[3]
        out = _map(self.outgoing, (height, width))
        self._run(x, out, height, above=edges[0], bias=bias, rectify=rectify)
        return out

    def halved(
        self,
        x: Tensor,
        bias: Tensor | None,
        *,
        edges: tuple[int, int] = (1, 1),
        rectify: bool = False,
    ) -> tuple[Tensor, Choice]:
        """The same halved, without the whole ever being there."""
        height, width = x.shape[2] + sum(edges) - 2, x.shape[3]
        out = _map(self.outgoing, (height // 2, width // 2))
        which = torch.empty_like(out, dtype=torch.uint8)
        self._run(x, out, height, above=edges[0], bias=bias, rectify=rectify, which=which)
        return out, Choice(which, (height, width))

    def back(
        self,
        gradient: Tensor,
        sign: Tensor | None = None,
        *,
        choice: Choice | None = None,
        rows: tuple[int, int] | None = None,
    ) -> Tensor:
        """The gradient in what was convolved, or in its rows from one to before another.

        From the one in the convolution, or in what it was halved to. It is 0 where the sign of
        those rows, in numbers or bools, is not positive.
        """
        height, width = gradient.shape[2:] if choice is None else choice.size
        top, bottom = rows or (0, height)
        assert choice is None or top % 2 == 0  # a tile begins in the middle of what was halved
        out = _map(self.incoming, (bottom - top, width))
        self._run(
            gradient, out, bottom - top, above=1 - top, sign=sign, choice=choice, flipped=True
        )
        return out

    def _run(
        self,
        x: Tensor,
        out: Tensor,
        height: int,
        *,
        above: int,
        bias: Tensor | None = None,
        sign: Tensor | None = None,
        choice: Choice | None = None,
        which: Tensor | None = None,
        rectify: bool = False,
        flipped: bool = False,
    ) -> None:
        """Make so many rows, the first of them below so many of zeros above the input."""
        if not x.numel() or not out.numel():  # of a row or a column nothing is halved
            out.zero_()
            return
        x = laid(x, True)
        origin = None if choice is None else laid(choice.which, True)
        rows, width = x.shape[2:] if choice is None else choice.size
        sign = None if sign is None else laid(sign, True)
        bools = sign is not None and sign.dtype == torch.bool
        signs = (None, sign) if bools else (sign, None)
        held = x, self.values, bias, *signs, origin, which, out
        job = _Job(
            *map(_address, held),
            *(rows, width, x.shape[1], out.shape[1], height, above),
            *(self.side, self._block(height, width, x.shape[1]), rectify, flipped),
        )
        native.run(_function(), job, *held)

    def _block(self, height: int, width: int, incoming: int) -> int:
        """How many tiles to work on at a time: all workers are to have some."""
        side = self.side - 2
        tiles = -(-height // side) * -(-width // side)
        most = BLOCK if incoming < MANY_CHANNELS else LARGE_BLOCK
        return max(1, min(most, -(-tiles // torch.get_num_threads())))


def suits(weight: Tensor) -> bool:
    """Whether there are loops for a kernel of these numbers of channels."""
    return available() and all(count % panel() == 0 for count in weight.shape[:2])


def _map(channels: int, size: tuple[int, int]) -> Tensor:
    """Memory for one that lies position by position."""
    return torch.empty((1, channels, *size), memory_format=torch.channels_last)


def _address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def _function() -> Any:
    found = native.library()
    assert found is not None
    return found.convolve


@functools.cache
def panel() -> int:
    """Channels that the loops work on at a time: those of a kernel are a multiple of it."""
    found = native.library()
    assert found is not None
    return int(found.panel())


@functools.cache
def available() -> bool:
    """Whether there are compiled loops, and they compute the right thing."""
    if native.library() is None:
        return False
    generator = torch.Generator().manual_seed(0)
    x = laid(torch.randn(1, 64, 11, 19, generator=generator), True)
    weight = torch.randn(64, 64, 3, 3, generator=generator)
    bias = torch.randn(64, generator=generator)
    kernel = Kernel.of(weight)
    there, back = F.conv2d(x, weight, bias, padding=1), F.conv_transpose2d(x, weight, padding=1)
    halves, choice = kernel.halved(x, bias)
    spread = halve_back(halves, choice)
    pairs = (
        (kernel.convolve(x, bias), there),
        (kernel.back(x), back),
        (halves, F.max_pool2d(there, 2)),
        (kernel.back(halves, choice=choice), F.conv_transpose2d(spread, weight, padding=1)),
    )
    return all(bool((ours - theirs).norm() < TOLERANCE * theirs.norm()) for ours, theirs in pairs)
