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
BLOCK, LARGE_BLOCK = 48, 132  # tiles at a time of few and of many channels, for the cache
FEW_CHANNELS = 256
TOLERANCE = 1e-4  # of the verification; the error is about 1e-5


class _Job(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ("input", "kernel", "bias", "sign", "passes", "output")
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
        panel = _panel()
        steps = torch.tensor(EVALUATIONS[side], dtype=torch.float32) / UNITS[side]
        values = torch.empty(side * side, outgoing // panel, incoming, panel)
        for k in range(0, outgoing, panel):  # a part at a time: the whole is large
            part = weight[k : k + panel].permute(2, 3, 1, 0).reshape(3, 3 * incoming * panel)
            rows = (steps @ part).view(side, 3, -1).transpose(0, 1).reshape(3, -1)
            points = (steps @ rows).view(side, side, incoming, panel).transpose(0, 1)
            values[:, k // panel] = points.reshape(-1, incoming, panel)
        return cls(values, outgoing, incoming, side)

    def convolve(
        self,
        x: Tensor,
        bias: Tensor | None,
        *,
        edges: tuple[int, int] = (1, 1),
        rectify: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Rows of a map (1, C, H, W), or of relu of it, convolved: (1, K, H + edges - 2, W).

        Left and right of them are zeros, and so many rows of zeros are above and below.
        """
        return self._run(x, self.outgoing, edges, out, bias=bias, rectify=rectify)

    def back(
        self,
        gradient: Tensor,
        sign: Tensor | None = None,
        *,
        edges: tuple[int, int] = (1, 1),
        out: Tensor | None = None,
    ) -> Tensor:
        """The same by the flipped kernel: the gradient in what was convolved.

        It is 0 where a sign, of numbers or bools, is not positive.
        """
        return self._run(gradient, self.incoming, edges, out, sign=sign, flipped=True)

    def _run(
        self,
        x: Tensor,
        outgoing: int,
        edges: tuple[int, int],
        out: Tensor | None,
        *,
        bias: Tensor | None = None,
        sign: Tensor | None = None,
        rectify: bool = False,
        flipped: bool = False,
    ) -> Tensor:
        x = laid(x, True)
        _, incoming, rows, width = x.shape
        height = rows + sum(edges) - 2
        if out is None:
            out = torch.empty((1, outgoing, height, width), memory_format=torch.channels_last)
        sign = None if sign is None else laid(sign, True)
        bools = sign is not None and sign.dtype == torch.bool
        job = _Job(
            *map(
                _address, (x, self.values, bias, None if bools else sign, sign if bools else None)
            ),
            _address(out),
            *(rows, width, incoming, outgoing, height, edges[0]),
            *(self.side, self._block(height, width, incoming), rectify, flipped),
        )
        native.run(_function(), job, x, self.values, bias, sign, out)
        return out

    def _block(self, height: int, width: int, incoming: int) -> int:
        """How many tiles to work on at a time: all workers are to have some."""
        side = self.side - 2
        tiles = -(-height // side) * -(-width // side)
        most = BLOCK if incoming < FEW_CHANNELS else LARGE_BLOCK
        return max(1, min(most, -(-tiles // torch.get_num_threads())))


def suits(weight: Tensor) -> bool:
    """Whether there are loops for a kernel of these numbers of channels."""
    return available() and all(count % _panel() == 0 for count in weight.shape[:2])


def _address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def _function() -> Any:
    found = native.library()
    assert found is not None
    return found.convolve


@functools.cache
def _panel() -> int:
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
    pairs = (kernel.convolve(x, bias), there), (kernel.back(x), back)
    return all(bool((ours - theirs).norm() < TOLERANCE * theirs.norm()) for ours, theirs in pairs)
