"""Maps of bools with eight of them in a byte, packed and unpacked by products of whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.maths.raster import is_interleaved

# Eight bools are the bytes of a number b_0 + 2^8 b_1 + …; times Σ 2^(7j), j = 1 … 8, its highest
# byte is b_0 + 2 b_1 + 4 b_2 + …, and nothing is carried into it.
GATHER, HIGHEST = 0x0102040810204080, 56
SPREAD = 0x0101010101010101  # a byte to all eight
SELECT = 0x8040201008040201 - 2**64  # bit k of byte k, as a signed number


class Bits(NamedTuple):
    """A packed map."""

    packed: Tensor  # uint8
    shape: torch.Size  # as it lies in memory
    interleaved: bool


def pack(bools: Tensor) -> Bits:
    """A map of bools in an eighth of its memory."""
    interleaved = bools.ndim == 4 and is_interleaved(bools)
    bools = bools.movedim(1, -1) if interleaved else bools
    flat = bools.contiguous().view(torch.uint8).flatten()
    if len(flat) % 8 or flat.storage_offset() % 8:  # not whole numbers as it lies there
        flat = F.pad(flat, (0, -len(flat) % 8)).clone()
    numbers = flat.view(torch.int64) * GATHER
    packed = numbers.bitwise_right_shift_(HIGHEST).to(torch.uint8)
    return Bits(packed, bools.shape, interleaved)


def unpack(bits: Bits) -> Tensor:
    """The map of bools."""
    numbers = bits.packed.to(torch.int64).mul_(SPREAD).bitwise_and_(SELECT)
    bools = numbers.view(torch.uint8)[: bits.shape.numel()].ne(0).view(bits.shape)
    return bools.movedim(-1, 1) if bits.interleaved else bools
