"""The heap of the C library: what is kept for the next step, and what is given back.

Only a program that has called :func:`manage` is affected, and only where the library is glibc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # of glibc's mallopt
NEVER = -1  # the threshold at which nothing is given back
LARGE = 32 * 2**20  # bytes; glibc takes no larger threshold
MANY = 65_536  # blocks with pages of their own at a time; glibc's default
MADV_HUGEPAGE, HUGE_PAGE = 14, 2**21
NOOKS, NOOK, WALL = 256, 2**16, 1100  # places for what is small; their bytes, and between them


@dataclass
class _Heap:
    library: ctypes.CDLL | None = None  # once it is managed
    room: int = 0  # bytes to grow into, by huge pages
    blocks: int = 0  # how many large blocks may have pages of their own

    def allow(self, blocks: int) -> int:
        """Another number of blocks; the one before."""
        before, self.blocks = self.blocks, blocks
        if self.library is not None and blocks != before:
            self.library.mallopt(M_MMAP_MAX, blocks)
        return before

    def prefer_huge_pages(self) -> None:
        """Ask for pages of 2 MB for the memory that the heap will grow into; none is used yet."""
        if self.library is None:
            return
        if address := self.library.malloc(self.room):
            first = -(-address // HUGE_PAGE) * HUGE_PAGE
            self.library.madvise(first, address + self.room - first, MADV_HUGEPAGE)
            self.library.free(address)


_heap = _Heap()


def manage(room: int) -> None:
    """Keep all memory from now on, and prepare to grow by so many bytes; no-op beyond glibc."""
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_MMAP_THRESHOLD, LARGE)
        library.mallopt(M_TRIM_THRESHOLD, NEVER)
        library.mallopt(M_MMAP_MAX, 0)
        library.malloc.restype = ctypes.c_void_p
        library.malloc.argtypes = [ctypes.c_size_t]
        library.free.argtypes = [ctypes.c_void_p]
        library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    except (OSError, AttributeError):
        return  # another C library: it has its own ways
    _heap.library, _heap.room = library, room
    # What is small takes the smallest place it fits into. Without these it would settle in the
    # holes that large maps leave, which would then be too small for the next one by a few bytes.
    nooks = [(library.malloc(NOOK), library.malloc(WALL))[0] for _ in range(NOOKS)]
    for address in nooks:
        library.free(address)
    _heap.prefer_huge_pages()


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
    with _allowing(0) as before:
        if before:  # what the heap grows by anew
            _heap.prefer_huge_pages()
        yield


def trim() -> None:
    """Give back what is free."""
    if _heap.library is not None:
        _heap.library.malloc_trim(0)
        if not _heap.blocks:  # what has room in the heap gets no pages of its own
            _heap.prefer_huge_pages()


@contextmanager
def _allowing(blocks: int) -> Iterator[int]:
    """Another number of blocks for a while; the one before is told."""
    before = _heap.allow(blocks)
    try:
        yield before
    finally:
        _heap.allow(before)
