"""Halving a map by the maximum of 2 × 2 positions, with what the way back needs in two bits.

torch's own keeps an index of eight bytes per position and is several times slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from impasto.maths.raster import blank


class Choice(NamedTuple):
    """Where the maxima came from."""

    lower: Tensor  # (1, C, H/2, W/2·2), bool: of two rows
    right: Tensor  # (1, C, H/2, W/2), bool: of two columns, after the rows
    size: tuple[int, int]


def halve(x: Tensor) -> tuple[Tensor, Choice]:
    """The maxima of a map (1, C, H, W); an odd last row or column is left out."""
    height, width = x.shape[2:]
    even = x[..., : height // 2 * 2, : width // 2 * 2]
    top, bottom = even[..., 0::2, :], even[..., 1::2, :]
    rows = torch.maximum(top, bottom)
    left, right = rows[..., 0::2], rows[..., 1::2]
    return torch.maximum(left, right), Choice(bottom > top, right > left, (height, width))


def join(parts: Sequence[tuple[Tensor, Choice]]) -> tuple[Tensor, Choice]:
    """The same of a map from those of its bands, each but the last of an even height."""
    height = sum(choice.size[0] for _, choice in parts)
    # Of a last row alone nothing remains, and nothing lies in memory in no particular way.
    parts = [part for part in parts if part[0].numel()] or parts[:1]
    halves, choices = zip(*parts, strict=True)
    lower, right = (_above_each_other([each[k] for each in choices]) for k in (0, 1))
    return _above_each_other(halves), Choice(lower, right, (height, choices[0].size[1]))


def _above_each_other(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), 2)


def halve_back(gradient: Tensor, choice: Choice, rows: tuple[int, int] | None = None) -> Tensor:
    """The gradient in the map, or in its rows from one to before another."""
    height, width = choice.size
    top, bottom = rows or (0, height)
    first, last = top // 2, -(-bottom // 2)  # of what was halved
    gradient, lower, right = (x[:, :, first:last] for x in (gradient, *choice[:2]))
    height = min(2 * last, height) - 2 * first
    whole = blank(gradient, (height, width))
    if height % 2 or width % 2:
        whole.zero_()
    even = whole[..., : height // 2 * 2, : width // 2 * 2]
    both = torch.empty_like(lower, dtype=gradient.dtype)
    _split(gradient, right, both[..., 0::2], both[..., 1::2])
    _split(both, lower, even[..., 0::2, :], even[..., 1::2, :])
    return whole[:, :, top - 2 * first : bottom - 2 * first]


def _split(gradient: Tensor, second: Tensor, one: Tensor, other: Tensor) -> None:
    """Write a gradient to the place it came from and 0 to the other, without a map between."""
    torch.mul(gradient, second, out=other)
    torch.sub(gradient, other, out=one)
