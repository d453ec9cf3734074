"""What a batch costs: two workers of one thread against one process of two, and one picture.

    python benchmarks/batch.py engines [SIZE [STEPS [ROUNDS]]]
    python benchmarks/batch.py cost [SIZE [METHOD …]]
    python benchmarks/batch.py report

`engines` runs the same grid alternately by `impasto batch` with Ray and without, start-up included.
`cost` paints by the methods of the paper's study with few steps and with more, in one worker of one
thread, and takes its processor time, which other programs do not lengthen much: the slope is the
cost of a step. Methods that are not named stay as they were.
Both write their part of `benchmarks/data/batch.json`; `report` brings it into `docs/batch.md`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # of the worker whose processor time is taken

from impasto import files, imagefile
from impasto.batch import tasks
from impasto.batch.worker import Order, Worker
from impasto.course import plan
from impasto.optimize import SHALLOW
from impasto.recipe import Recipe
from impasto.samples import locate

OUTPUT = Path(__file__).parent / "data" / "batch.json"
PAGE = Path(__file__).parent.parent / "docs" / "batch.md"
METHOD = next(each for each in fields(Recipe) if each.name == "method")
STUDY, PAIRS = ("adain", "gram", "mm", "ost", "wct", "cmd"), 620  # of the paper's user study
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


def engines(size: int = 256, steps: int = 30, rounds: int = 3) -> dict:
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


def extra(task: tasks.Task, order: Order) -> float:
    """Processor seconds for a picture that is there: to find it whole, or also to score it."""
    worker = Worker(order)
    worker.supplies.encoder("oxford", "auto")
    began = time.process_time()
    *_, outcome = worker.perform(task)
    assert outcome is not None
    assert not outcome.reason, outcome
    return round(time.process_time() - began, 3)


def cost(size: int = 512, *methods: str) -> dict:
    """Processor seconds of a picture: what it takes before the first step, and per step."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            {"content": str(locate("astronaut")), "style": str(locate("cypresses")), "steps": steps}
            | {"method": method, "stop": "never", "size": size, "shallow": 0}
            for method in methods or STUDY
            if method in METHOD.metadata["choices"]
            for steps in (FEW, MORE)
        ]
        table = Path(folder) / "jobs.json"
        table.write_text(json.dumps(rows))
        (Path(folder) / "scores").mkdir()
        worker, scored = Worker(Order(folder=folder, threads=1)), Order(folder=folder, score=True)
        listed = tasks.table(str(table))
        warm_up = replace(listed[-1], name="warm-up", recipe=listed[-1].recipe.but(steps=1))
        list(worker.perform(warm_up))  # the network is loaded once per worker, not per picture
        seconds: dict[str, dict[int, float]] = {}
        for task in listed:
            began = time.process_time()
            *_, outcome = worker.perform(task)
            assert outcome is not None, task
            if outcome.record is None:
                print(task.name, outcome.reason, flush=True)
                continue
            taken = seconds.setdefault(task.recipe.method, {})
            taken[outcome.record["steps"]["done"]] = time.process_time() - began
            print(task.name, round(time.process_time() - began, 1), flush=True)
        extras = {}
        if not methods:
            extras = {"look": extra(task, Order(folder=folder)), "score": extra(task, scored)}
    for method, taken in seconds.items():
        few, more = min(taken), max(taken)
        # A method that is done in one step has no slope.
        step = (taken[more] - taken[few]) / (more - few) if more > few else 0.0
        found[method] = {"before": round(taken[few] - few * step, 2), "step": round(step, 3)}
    return {"size": size, "processor seconds": found, "of a picture that is there": extras}


def report() -> None:
    """The figures, between the marks in the page."""
    data = json.loads(OUTPUT.read_text())
    text = PAGE.read_text()
    for part, lines in (("engines", engine_lines(data)), ("cost", cost_lines(data))):
        head, rest = text.split(f"<!-- {part} -->\n")
        tail = rest.split(f"<!-- end of {part} -->\n")[1]
        body = "\n".join(lines)
        text = f"{head}<!-- {part} -->\n{body}\n<!-- end of {part} -->\n{tail}"
    files.write_atomically(PAGE, text.encode())


def engine_lines(data: dict) -> list[str]:
    found = data["engines"]
    verdict = "at least as fast" if found["median"] >= 1 else "**slower**"
    one, two = (", ".join(map(str, found["seconds"][name])) for name in ("one process", "Ray"))
    loads = found["load average before each run"]
    return [
        f"On {found['cores']} cores, {found['jobs']} jobs of {found['size']} pixels and "
        f"{found['steps']} steps, run alternately: one process of two threads took {one} s, two",
        f"Ray workers of one thread took {two} s, the start of Ray included. Ratios, run by run: "
        f"{', '.join(map(str, found['one process ÷ Ray']))}; the median is {found['median']}: the",
        f"workers were {verdict}. The load average before the runs was {min(loads)} to "
        f"{max(loads)}; a run alone makes 2 of it.",
    ]


def cost_lines(data: dict) -> list[str]:
    found = data["cost"]
    size = found["size"]
    lines = [
        f"| method | before the first step | a step | a picture | {PAIRS} pictures |",
        "|---|---|---|---|---|",
    ]
    total, extras, pictures = 0.0, found["of a picture that is there"], PAIRS * len(STUDY)
    missing = [name for name in STUDY if name not in found["processor seconds"]]
    for method, taken in found["processor seconds"].items():
        looks = sum(
            stage.steps * stage.work / size**2
            for stage in plan((size, size), Recipe(method=method))
        )
        picture = taken["before"] + taken["step"] * looks
        hours = picture * PAIRS / 3600
        total += hours if method in STUDY else 0
        before, step = f"{taken['before']:.1f} s", f"{taken['step']:.2f} s"
        if not taken["step"]:  # feed-forward
            before = step = "–"
        lines.append(f"| `{method}` | {before} | {step} | {picture:.0f} s | {hours:.1f} h |")
    known = ", ".join(f"`{name}`" for name in STUDY if name not in missing)
    lines += [
        "",
        f"Processor time of one thread at {size}², the default of {Recipe().steps} steps, of which "
        f"{Recipe().shallow} look at the shallow layers alone and count {SHALLOW} each; "
        f"torch {found['torch']}. Together for {known}: **{total:.0f} core hours**,",
        f"{total / 64 * 60:.0f} minutes on 64 cores. A score takes {extras['score']:.1f} s more, "
        f"for all {pictures:,} {extras['score'] * pictures / 3600:.0f} core hours,",
        f"and to find that a picture is there and whole takes {1000 * extras['look']:.0f} ms.",
    ]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        lines.append(f"Not in the table, because not there when it was measured: {names}.")
    return lines


def main(part: str, *words: int | str) -> None:
    import torch

    if part == "report":
        report()
        return
    data = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    known, found = data.get(part, {}), {"engines": engines, "cost": cost}[part](*words)
    if part == "cost" and len(words) > 1:
        seconds = {**known["processor seconds"], **found["processor seconds"]}
        found = {**known, "processor seconds": seconds}
    data[part] = found
    data[part]["torch"] = torch.__version__
    files.write_atomically(OUTPUT, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) if word.isdigit() else word for word in sys.argv[2:]))
