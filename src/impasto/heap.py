"""The heap of the C library: what is kept for the next step, and what is given back.

Only a program that has called :func:`manage` is affected, and only where the library is glibc.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # of glibc's mallopt
NEVER = -1  # the threshold at which nothing is given back
LARGE = 32 * 2**20  # bytes; glibc takes no larger threshold
MANY = 65_536  # blocks with pages of their own at a time; glibc's default


@dataclass
class _Heap:
    library: ctypes.CDLL | None = None  # once it is managed
    blocks: int = 0  # how many large blocks may have pages of their own

    def allow(self, blocks: int) -> int:
        """Another number of blocks; the one before."""
        before, self.blocks = self.blocks, blocks
        if self.library is not None and blocks != before:
            self.library.mallopt(M_MMAP_MAX, blocks)
        return before


_heap = _Heap()


def manage() -> ctypes.CDLL | None:
    """Keep all memory from now on; the library, where it is glibc."""
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_MMAP_THRESHOLD, LARGE)
        library.mallopt(M_TRIM_THRESHOLD, NEVER)
        library.mallopt(M_MMAP_MAX, 0)
    except (OSError, AttributeError):
        return None  # another C library: it has its own ways
    _heap.library = library
    return library


@contextmanager
def apart() -> Iterator[None]:
    """Large blocks get pages of their own, which are given back at once: nothing lies between.

    For images of which a few are all that there is room for. In the heap they would leave holes
    that the next one of them does not fit into, because something small has settled there.
    """
    with _allowing(MANY):
        trim()
        yield


@contextmanager
def kept() -> Iterator[None]:
    """All blocks come from the heap: for what comes and goes many times a second."""
    with _allowing(0):
        yield


def trim() -> None:
    """Give back what is free."""
    if _heap.library is not None:
        _heap.library.malloc_trim(0)


@contextmanager
def _allowing(blocks: int) -> Iterator[None]:
    before = _heap.allow(blocks)
    try:
        yield
    finally:
        _heap.allow(before)
