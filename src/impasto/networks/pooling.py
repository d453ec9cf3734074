"""Halving a map by the maximum of 2 × 2 positions, with what the way back needs in two bits.

torch's own keeps an index of eight bytes per position and is several times slower.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


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


def halve_back(gradient: Tensor, choice: Choice) -> Tensor:
    """The gradient in the map."""
    height, width = choice.size
    new = torch.zeros if height % 2 or width % 2 else torch.empty
    whole = new((*gradient.shape[:2], height, width), dtype=gradient.dtype, device=gradient.device)
    even = whole[..., : height // 2 * 2, : width // 2 * 2]
    rows = torch.empty_like(choice.lower, dtype=gradient.dtype)
    rows[..., 1::2] = gradient * choice.right
    rows[..., 0::2] = gradient - rows[..., 1::2]
    even[..., 1::2, :] = rows * choice.lower
    even[..., 0::2, :] = rows - even[..., 1::2, :]
    return whole
