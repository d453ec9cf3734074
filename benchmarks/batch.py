"""What a batch costs: two workers of one thread against one process of two, and one picture.

    python benchmarks/batch.py engines [SIZE [STEPS [ROUNDS]]]
    python benchmarks/batch.py cost [SIZE]

`engines` runs the same grid alternately by `impasto batch` with Ray and without, start-up included.
`cost` paints by every method with few steps and with more, in one worker of one thread, and takes
its processor time, which other programs do not lengthen much: the slope is the cost of a step.
Writes `benchmarks/data/batch.json`; the part that is not named stays as it was.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # of the worker whose processor time is taken

from impasto import files, imagefile
from impasto.batch import tasks
from impasto.batch.worker import Order, Worker
from impasto.recipe import METHODS
from impasto.samples import locate

OUTPUT = Path(__file__).parent / "data" / "batch.json"
PHOTOS, PAINTINGS = ("astronaut", "chelsea", "coffee"), ("cypresses", "irises", "jatte", "apples")
FEW, MORE = 3, 9  # steps
HALVES = {"one process": ["--threads", "2"], "Ray": ["--engine", "ray", "--threads", "1"]}


def copy_samples(folder: Path) -> list[str]:
    for kind, names in {"photos": PHOTOS, "paintings": PAINTINGS}.items():
        (folder / kind).mkdir()
        for name in names:
            imagefile.write(folder / kind / f"{name}.png", imagefile.read(locate(name)).rgb)
    return ["--contents", str(folder / "photos"), "--styles", str(folder / "paintings")]


def grid_seconds(words: list[str]) -> float:
    """The seconds of a whole run, from the start of the command to its end."""
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        command = [sys.executable, "-m", "impasto", "batch", *words, "-o", out, "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


def engines(size: int = 256, steps: int = 10, rounds: int = 3) -> dict:
    """The same grid by both, alternately, in the order a-b b-a a-b …"""
    taken: dict[str, list[float]] = {name: [] for name in HALVES}
    loads = []
    with tempfile.TemporaryDirectory() as folder:
        words = [*copy_samples(Path(folder)), "--size", str(size), "--steps", str(steps)]
        words += ["--methods", "cmd", "--stop", "never"]
        for number in range(rounds):
            for name in list(HALVES)[:: 1 if number % 2 == 0 else -1]:
                loads.append(round(os.getloadavg()[0], 1))
                taken[name].append(round(grid_seconds([*words, *HALVES[name]]), 1))
                print(name, taken[name][-1], "load before", loads[-1], flush=True)
    ratios = [one / two for one, two in zip(taken["one process"], taken["Ray"], strict=True)]
    return {
        "size": size,
        "steps": steps,
        "jobs": len(PHOTOS) * len(PAINTINGS),
        "seconds": taken,
        "one process ÷ Ray": [round(ratio, 3) for ratio in ratios],
        "median": round(statistics.median(ratios), 3),
        "load average before each run": loads,
        "cores": os.cpu_count(),
    }


def cost(size: int = 512) -> dict:
    """Processor seconds of a picture: what it takes before the first step, and per step."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            {"content": str(locate("astronaut")), "style": str(locate("cypresses")), "steps": steps}
            | {"method": method, "stop": "never", "size": size}
            for method in METHODS
            for steps in (1, FEW, MORE)  # the first one warms up
        ]
        table = Path(folder) / "jobs.json"
        table.write_text(json.dumps(rows))
        worker = Worker(Order(folder=folder, threads=1))
        seconds: dict[str, dict[int, float]] = {}
        for task in tasks.table(str(table)):
            began = time.process_time()
            *_, outcome = worker.perform(task)
            assert outcome is not None, task
            if outcome.reason:
                print(task.name, outcome.reason, flush=True)
                continue
            taken = seconds.setdefault(task.recipe.method, {})
            taken[task.recipe.steps] = time.process_time() - began
            print(task.name, round(taken[task.recipe.steps], 1), flush=True)
    for method, taken in seconds.items():
        step = (taken[MORE] - taken[FEW]) / (MORE - FEW)
        found[method] = {"before": round(taken[FEW] - FEW * step, 2), "step": round(step, 3)}
    return {"size": size, "width and height": [size, size], "processor seconds": found}


def main(part: str, *numbers: int) -> None:
    import torch

    data = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    data[part] = {"engines": engines, "cost": cost}[part](*numbers)
    data[part]["torch"] = torch.__version__
    files.write_atomically(OUTPUT, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
