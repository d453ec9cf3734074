"""Halving a map by the maximum of 2 × 2 positions, with what the way back needs in two bits.

torch's own keeps an index of eight bytes per position and is several times slower.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from impasto import native
from impasto.maths.raster import blank, is_interleaved, laid

NEARLY = 1e-4  # in single precision, or of larger numbers: more than Winograd's algorithm rounds by


class Choice(NamedTuple):
    """Where the maxima came from."""

    which: Tensor  # (1, C, H/2, W/2), 8 bits: of the four, row by row
    size: tuple[int, int]


class _Job(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("whole", "halved", "which")),
        *((name, ctypes.c_long) for name in ("rows", "width", "channels")),
    ]


def halve(x: Tensor) -> tuple[Tensor, Choice]:
    """The maxima of a map (1, C, H, W); an odd last row or column is left out.

    They came from the first of those that are nearly as large: in flat parts of a picture rounding
    would choose otherwise, and differently in a block than in the whole.
    """
    height, width = x.shape[2:]
    if loops := _loops(x):
        x = laid(x, True)
        halved = blank(x, (height // 2, width // 2))
        which = torch.empty_like(halved, dtype=torch.uint8)
        job = _Job(*(each.data_ptr() for each in (x, halved, which)), height, width, x.shape[1])
        native.run(loops.halve, job, x, halved, which)
        return halved, Choice(which, (height, width))
    even = x[..., : height // 2 * 2, : width // 2 * 2]
    four = [even[..., k // 2 :: 2, k % 2 :: 2] for k in range(4)]
    most = torch.maximum(torch.maximum(*four[:2]), torch.maximum(*four[2:]))
    exact = x.dtype != torch.float32
    nearly = most if exact else most - NEARLY * most.abs().clamp_min(1)
    which = torch.zeros_like(most, dtype=torch.uint8)
    passed = torch.ones_like(most, dtype=torch.bool)
    for each in four[:3]:
        which += passed.logical_and_(each < nearly)
    return most, Choice(which, (height, width))


def join(parts: Sequence[tuple[Tensor, Choice]]) -> tuple[Tensor, Choice]:
    """The same of a map from those of its bands, each but the last of an even height."""
    height = sum(choice.size[0] for _, choice in parts)
    # Of a last row alone nothing remains, and nothing lies in memory in no particular way.
    parts = [part for part in parts if part[0].numel()] or parts[:1]
    halves, choices = zip(*parts, strict=True)
    which = _above_each_other([choice.which for choice in choices])
    return _above_each_other(halves), Choice(which, (height, choices[0].size[1]))


def _above_each_other(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), 2)


def halve_back(gradient: Tensor, choice: Choice, rows: tuple[int, int] | None = None) -> Tensor:
    """The gradient in the map, or in its rows from one to before another."""
    height, width = choice.size
    top, bottom = rows or (0, height)
    first, last = top // 2, -(-bottom // 2)  # of what was halved
    gradient, which = (x[:, :, first:last] for x in (gradient, choice.which))
    height = min(2 * last, height) - 2 * first
    whole = blank(gradient, (height, width))
    if height % 2 or width % 2:
        whole.zero_()
    if (loops := _loops(gradient)) and is_interleaved(whole):
        held = whole, laid(gradient, True), laid(which, True)
        job = _Job(*(each.data_ptr() for each in held), height, width, gradient.shape[1])
        native.run(loops.halve_back, job, *held)
    else:
        for k in range(4):
            place = whole[..., k // 2 : height // 2 * 2 : 2, k % 2 : width // 2 * 2 : 2]
            torch.mul(gradient, which == k, out=place)
    return whole[:, :, top - 2 * first : bottom - 2 * first]


def _loops(x: Tensor) -> ctypes.CDLL | None:
    """Compiled ones, where they suit a map."""
    suits = x.device.type == "cpu" and x.dtype == torch.float32 and is_interleaved(x)
    return (
        native.library()
        if suits and x.shape[0] == 1 and x.shape[1] % native.MULTIPLE == 0
        else None
    )
