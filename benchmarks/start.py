"""Whether a feed-forward start beats the color start at equal time.

python benchmarks/start.py IMAGES [SIZE [STEPS [PAIRS]]]
python benchmarks/start.py IMAGES SIZE default PAIRS

Every start is followed for some steps on the pairs of benchmarks/schedule.py. What a start costs
is measured beside a step, in turn, and counted as steps. Writes benchmarks/data/start.json: the
total loss after as much time as so many steps from the color start take. The second form compares
whole runs that look at the shallow layers first.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from impasto import process

process.tune()

import numpy as np
from paper_trajectories import PAIRS
from plain import DATA, machine

from impasto import api
from impasto.recipe import Recipe

STARTS = ("color", "adain", "ost", "ost+histogram")


def follow(content: Path, style: Path, start: str, size: int, steps: int) -> dict[str, list[float]]:
    """The total losses, and the seconds from the opened pictures to each."""
    recipe = Recipe(start=start, size=size, steps=steps, stop="never", shallow=0)
    began = time.monotonic()
    job = api.open_job(str(content), str(style), recipe)
    losses, seconds = [], []
    for step, _ in api.steps_of(job):
        losses.append(step.best_losses.total)
        seconds.append(time.monotonic() - began)
    return {"losses": losses, "seconds": seconds}


def by_default(folder: Path, size: int, count: int) -> dict[str, dict[str, list[float]]]:
    """The same with the shallow layers first, as is usual: total, content and seconds of a run.

    A run from the color start has more steps, for the time that the other start takes.
    """
    ways = {"color": {"steps": 44}, "ost+histogram": {"steps": 36, "start": "ost+histogram"}}
    found: dict[str, dict[str, list[float]]] = {}
    for photo, painting in PAIRS[:count]:
        content, style = str(folder / "photos" / photo), str(folder / "paintings" / painting)
        row = found[f"{photo} × {painting}"] = {}
        for name, settings in ways.items():
            began = time.monotonic()
            job = api.open_job(content, style, Recipe(size=size, stop="never", **settings))
            *_, (last, _) = api.steps_of(job)
            losses = last.best_losses
            row[name] = [losses.total, losses.content, time.monotonic() - began]
        print(photo, painting, row, flush=True)
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    if sys.argv[3:4] == ["default"]:
        data = json.loads((DATA / "start.json").read_text())
        data["shallow layers first"] = by_default(folder, int(sys.argv[2]), int(sys.argv[4]))
        (DATA / "start.json").write_text(json.dumps(data, indent=1) + "\n")
        return
    size, steps, count = (
        int(sys.argv[n]) if len(sys.argv) > n else usual
        for n, usual in ((2, 256), (3, 30), (4, 10))
    )
    looks = [k for k in (5, 10, 15, 20, 25, 30) if k <= steps]
    table: dict[str, dict[int, list[float]]] = {start: {k: [] for k in looks} for start in STARTS}
    for photo, painting in PAIRS[:count]:
        content, style = folder / "photos" / photo, folder / "paintings" / painting
        found = {start: follow(content, style, start, size, steps) for start in STARTS}
        plain = found["color"]["seconds"]
        pace = (plain[-1] - plain[0]) / (len(plain) - 1)
        for start, run in found.items():
            late = max(0.0, run["seconds"][0] - plain[0]) / pace  # in steps
            for k in looks:
                steps_made = range(len(run["losses"]))
                table[start][k].append(float(np.interp(k - late, steps_made, run["losses"])))
        print(photo, painting, {s: round(table[s][looks[-1]][-1], 4) for s in STARTS}, flush=True)
        data = {
            "machine": machine(),
            "size": size,
            "pairs": [f"{a} × {b}" for a, b in PAIRS[: len(table["color"][looks[0]])]],
            "median total loss after the time of so many steps": {
                start: {k: statistics.median(values) for k, values in row.items()}
                for start, row in table.items()
            },
            "pairs on which it is below the color start": {
                start: {
                    k: sum(a < b for a, b in zip(row[k], table["color"][k], strict=True))
                    for k in looks
                }
                for start, row in table.items()
                if start != "color"
            },
        }
        (DATA / "start.json").write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
