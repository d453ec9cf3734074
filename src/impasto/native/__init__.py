"""Loops over maps that are compiled: what torch has no operation for, or a slower one.

They are compiled when the package is installed (``hatch_build.py``), once for every kind of
processor; where that was not possible there are none, and whoever asks takes another route.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch

KINDS = {"AVX512": "avx512", "AVX2": "avx2"}  # what torch says of a processor
MULTIPLE = 16  # of channels: the widest vectors have so many numbers
LAYOUT = 2  # of the jobs, as in vectors.h: another one is of other sources than these
PLAIN = ("arm64", "aarch64")  # processors whose vectors every program may use


@functools.cache
def library() -> ctypes.CDLL | None:
    """What was compiled for this processor, if anything."""
    kind = KINDS.get(torch.backends.cpu.get_cpu_capability())
    if kind is None and platform.machine() in PLAIN:
        kind = "plain"
    path = Path(__file__).with_name(f"{kind}.so")
    try:
        found = ctypes.CDLL(str(path)) if kind and path.exists() else None
        return found if found is not None and found.layout() == LAYOUT else None
    except (OSError, AttributeError):  # it was made elsewhere, for another system, or long ago
        return None


def run(function: Callable[..., int], job: ctypes.Structure, *held: Any) -> None:
    """Let as many workers as torch has threads share a job.

    What is held is what the job points to: it stays where it is until the last worker has ended,
    also where an interrupt ends the wait for it.
    """
    counter = ctypes.c_long(0)

    def work(_: tuple[Any, ...] = held) -> int:
        return function(ctypes.byref(job), ctypes.byref(counter))

    others: list[Future[int]] = []
    try:
        others = [_workers().submit(work) for _ in range(torch.get_num_threads() - 1)]
        statuses = [work()]
    finally:
        wait(others)
    if any(statuses + [each.result() for each in others]):
        raise MemoryError("there is no memory left to work in; try a smaller --memory")


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1)), thread_name_prefix="impasto")


if hasattr(os, "register_at_fork"):  # threads do not come along
    os.register_at_fork(after_in_child=_workers.cache_clear)
