"""Settings of the whole process that make it fast; for programs, not for libraries to decide."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from impasto import heap

UNKNOWN = 8e9  # bytes to assume free where the system does not tell


def tune() -> None:
    """Make this process good at what we do; call it before torch is loaded.

    Threads that wait by spinning make a step several times slower as soon as another program
    uses a core. And glibc returns every large block to the system, which clears its pages anew
    at each step: kept, a step takes about two thirds of the time (``benchmarks/process.py``).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        heap.manage(int(min(free_memory(), _address_space()) / 2))


def _address_space() -> float:
    """The bytes that this process may address: others than the heap need some of them too."""
    import resource  # not everywhere

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def free_memory() -> float:
    """The bytes that this process may still use without pushing others out."""
    found = [_meminfo(), *_limits_of_group()]
    if known := [each for each in found if each is not None]:
        return min(known)
    try:  # half of all there is, where the system does not tell what is free
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def _meminfo() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    except (OSError, ValueError, StopIteration, IndexError):
        return None


def _limits_of_group() -> list[float]:
    """What a container leaves, by its control group."""
    try:
        folder = Path("/sys/fs/cgroup")
        limit = (folder / "memory.max").read_text().strip()
        used = float((folder / "memory.current").read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        used -= float(counts.get("inactive_file", 0))  # a cache that gives way
        return [] if limit == "max" else [float(limit) - used]
    except (OSError, ValueError):
        return []
