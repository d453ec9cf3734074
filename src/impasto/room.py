"""Memory: what a look at a picture takes, and the blocks that fit into what there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from impasto.blocks import halo_of, keeping, sides, spans, trail_bytes

# Bytes of the program with its network and, per pixel, of a look with its gradient, of a look at
# the style and of terms that look at the pixels themselves (from benchmarks/memory.py). What a
# convolution works in does not grow beyond its bands: a large picture takes less per pixel.
BASE_BYTES, LOOK_BYTES, STYLE_BYTES, SMOOTH_BYTES = 0.66e9, 2500.0, 1500.0, 120.0
BAND_BYTES, LARGE_LOOK_BYTES = 0.75e9, 1250.0
# Of a look at a block, in which the largest map is made some rows at a time: up to a megapixel,
# and beyond. Measured by hand (decision 22), with what many blocks leave unused between them.
SMALL_BLOCK_BYTES, LARGE_BLOCK_BYTES = (0.06e9, 1100.0), (0.45e9, 680.0)
# Per pixel, of the methods that take more than cmd does.
MORE_BYTES = {"gram": 450.0, "mm": 300.0, "gaussian-ot": 1450.0, "cmd-joint": 800.0, "mmd": 6500.0}
# Per pixel, of a step between two looks: where trails are kept, the memory of a look stays with it.
STEP_BYTES = 36.0
RESERVE = 0.12  # of the memory is kept for what cannot be counted
HALO = halo_of(["conv5_1"])  # of a feed-forward pass
AGAIN = 0.45  # of a look is the way there, made twice where no trail is kept
NEW_PAGES = 0.1  # of a look is spent on memory that was given back after the one before


@dataclass(frozen=True)
class Division:
    """The blocks in which to look at a picture."""

    side: int
    trails: float  # bytes for what is kept of them from one pass to the other
    work: float  # of a look, in looks at the same picture as a whole


def look_bytes(pixels: float, more: float = 0.0) -> float:
    """What a look with its gradient takes, by a method that takes more bytes per pixel."""
    large = BAND_BYTES + (LARGE_LOOK_BYTES + more) * pixels
    return min((LOOK_BYTES + more) * pixels, large)


def block_bytes(pixels: float, more: float = 0.0) -> float:
    """The same of a block."""
    return min(
        base + (each + more) * pixels for base, each in (SMALL_BLOCK_BYTES, LARGE_BLOCK_BYTES)
    )


def divide(
    size: tuple[int, int],
    style_size: tuple[int, int],
    memory: float,
    *,
    look: Callable[[float], float] = look_bytes,
    block: Callable[[float], float] = block_bytes,
    taps: Iterable[str] = (),
) -> Division | None:
    """The blocks with the least work within a memory; None where all fits as a whole.

    What a look takes depends on the pixels, of the whole or of a block. A look at the style needs
    memory for all of it. Large blocks have little halo, small ones leave memory for the trails of
    the others, where there are taps to come back from.
    """
    if look(math.prod(size)) <= memory and math.prod(style_size) * STYLE_BYTES <= memory:
        return None
    taps = list(taps)
    halo, bytes_each = (halo_of(taps), trail_bytes(taps)) if taps else (HALO, 0.0)
    found: list[Division] = []
    for side in sides(max(size)):
        rows, columns = (spans(length, side, halo) for length in size)
        parts = [
            (bottom - top) * (right - left)
            for *_, top, bottom in rows
            for *_, left, right in columns
        ]
        left = memory - block(max(parts))
        if found and left < 0:
            continue
        trails = max(0.0, left - STEP_BYTES * math.prod(size)) if taps else 0.0
        kept = zip(parts, keeping(parts[::-1], trails, bytes_each)[::-1], strict=True)
        again = sum(AGAIN * count for count, keeps in kept if not keeps)
        work = (sum(parts) + again) / math.prod(size) * (1 if trails else 1 + NEW_PAGES)
        found.append(Division(side, trails, work))
    return min(found, key=lambda each: each.work)
