"""The peak memory of `impasto stylize` at some sizes, of the whole process.

    python benchmarks/memory.py SIZE[:MEMORY] …

    python benchmarks/memory.py 512 1024 2048:3GB

Each is a run of three steps at one scale on a square picture. Writes `benchmarks/data/memory.json`,
in which sizes that are not measured again stay.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from impasto import files
from impasto.samples import locate

DATA = Path(__file__).parent / "data" / "memory.json"
TARGETS = {512: 1.2, 2048: 3.0}  # GB


def peak(side: str, memory: str) -> float:
    """GB of a run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "impasto", "stylize", str(locate("astronaut"))]
        words += [str(locate("cypresses")), "-o", str(Path(folder) / "out.png"), "--size", side]
        words += ["--steps", "3", "--scales", "1", "--quiet"]
        child = subprocess.Popen([*words, *(["--memory", memory] if memory else [])])
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            sys.exit(f"{side} {memory}: exit code {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss / 1e6


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    known = json.loads(DATA.read_text())["rows"] if DATA.exists() else []
    rows = {(row["pixels"], row["memory"]): row for row in known}
    for word in sys.argv[1:]:
        size, _, limit = word.partition(":")
        name = f"{size} × {size}"
        rows[name, limit] = {
            "pixels": name,
            "memory": limit,
            "gigabytes": round(peak(size, limit), 2),
            "target": TARGETS.get(int(size)),
        }
        print(rows[name, limit], flush=True)
        text = json.dumps({"rows": list(rows.values())}, indent=1)
        files.write_atomically(DATA, (text + "\n").encode())
