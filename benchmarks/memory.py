"""The peak memory of `impasto stylize` at some sizes, of the whole process.

    python benchmarks/memory.py SIZE[:MEMORY] …

    python benchmarks/memory.py 512 1024 2048:3GB 6000x4000:4GB

Each is a run at one scale: the default one of sixty steps up to half a megapixel, beyond it of
three steps, or of two beyond four megapixels, where a step takes minutes. A SIZE is WIDTHxHEIGHT
or the side of a square. Writes `benchmarks/data/memory.json`, in which sizes that are not measured
again stay. Where the heap puts things differs from run to run: up to a megapixel the median of
three runs counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageOps
from plain import machine

from impasto import files
from impasto.samples import locate

DATA = Path(__file__).parent / "data" / "memory.json"
TARGETS = {(512, 512): 1.2, (2048, 2048): 3.0, (6000, 4000): 4.0}  # GB
WHOLE, FEW = 2**19, 2048 * 2048  # pixels up to which all steps are made, and three
QUICK = 1024 * 1024  # pixels up to which three runs are made


def steps_at(size: tuple[int, int]) -> int:
    """The steps of a run."""
    pixels = size[0] * size[1]
    return 60 if pixels <= WHOLE else 3 if pixels <= FEW else 2


def peak(size: tuple[int, int], memory: str) -> float:
    """GB of a run in a process of its own, on a file of just this size."""
    with tempfile.TemporaryDirectory() as folder:
        content, out = (str(Path(folder) / name) for name in ("content.png", "out.png"))
        ImageOps.fit(Image.open(locate("astronaut")), size).save(content, compress_level=1)
        words = [sys.executable, "-m", "impasto", "stylize", content, str(locate("cypresses"))]
        words += ["-o", out, "--size", str(max(size)), "--steps", str(steps_at(size))]
        words += ["--scales", "1", "--quiet", *(["--memory", memory] if memory else [])]
        child = subprocess.Popen(words)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            sys.exit(f"{size} {memory}: exit code {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    known = json.loads(DATA.read_text())["rows"] if DATA.exists() else []
    rows = {(row["pixels"], row["memory"], row["machine"]): row for row in known}
    for word in sys.argv[1:]:
        sides, _, limit = word.partition(":")
        width, _, height = sides.partition("x")
        size = int(width), int(height or width)
        name = f"{size[0]} × {size[1]}"
        runs = [peak(size, limit) for _ in range(3 if size[0] * size[1] <= QUICK else 1)]
        rows[name, limit, machine()] = row = {
            "pixels": name,
            "memory": limit,
            "machine": machine(),
            "steps": steps_at(size),
            "runs": [round(run, 2) for run in runs],
            "gigabytes": round(statistics.median(runs), 2),
            "target": TARGETS.get(size),
        }
        print(row, flush=True)
        text = json.dumps({"rows": list(rows.values())}, indent=1)
        files.write_atomically(DATA, (text + "\n").encode())
