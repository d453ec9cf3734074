"""The peak memory of `impasto stylize` at some sizes, of the whole process.

python benchmarks/memory.py 512 1024 2048 [--memory 3GB]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from impasto.samples import locate


def peak(side: str, extra: list[str]) -> float:
    """GB of a run of three steps at one scale, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "impasto", "stylize", str(locate("astronaut"))]
        words += [str(locate("cypresses")), "-o", str(Path(folder) / "out.png"), "--size", side]
        subprocess.run([*words, "--steps", "3", "--scales", "1", "--quiet", *extra], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


if __name__ == "__main__":
    sizes = [word for word in sys.argv[1:] if word.isdigit()]
    rest = sys.argv[1 + len(sizes) :]
    for size in sorted(sizes, key=int):  # the system keeps the largest of all children
        print(f"{size} × {size}: {peak(size, rest):.2f} GB", flush=True)
