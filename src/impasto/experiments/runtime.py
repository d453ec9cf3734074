"""Appendix A: seconds of each method, and their ratios to Gatys."""

from __future__ import annotations

import time
from collections.abc import Generator
from itertools import pairwise
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

from impasto import api
from impasto.experiments import Caption, Data, Row, figures, listed
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import Order, Plan, extensions, missing, systems, title_of
from impasto.recipe import FEED_FORWARD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {"AdaIN": 0.58, "Gatys": 30.51, "MM": 35.49, "OST": 2.40, "WCT": 1.93, "CMD": 33.59}
BUSY = 0.1  # a relative deviation that a quiet machine does not show
STEPS = 500  # of the paper's table


def orders(plan: Plan) -> list[Order]:
    """None: what is timed must be painted when it is timed."""
    return []


def measure(plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
    """Seconds of 500 steps: of the set-up and, many times, of a step.

    The methods take turns, so that a busy minute of the machine hits all of them.
    """
    methods = [*systems().values(), *extensions()]
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    for turn in range(plan.timed_runs):
        for number, method in enumerate(methods):
            seconds[method].append(timed(method, plan))
            yield (turn + (number + 1) / len(methods)) / plan.timed_runs
    return {
        "size": plan.timed_size,
        "timed": plan.timed_steps,
        "runs": plan.timed_runs,
        "seconds": seconds,
        "missing": missing(),
    }


def timed(method: str, plan: Plan) -> float:
    """The seconds of 500 steps of Adam, from some of them, or of all passes of a method."""
    pair = plan.pairs[0]
    recipe = plan.recipe("paper", method=method, size=plan.timed_size, steps=plan.timed_steps)
    began = time.perf_counter()
    job = api.open_job(pair.content.path, pair.style.path, recipe)
    marks = [time.perf_counter() for _ in api.steps_of(job)]
    if recipe.passes:  # feed-forward
        return marks[-1] - began
    # The first look also sets up; a median, because a moment of another program is not ours.
    pace = median(after - before for before, after in pairwise(marks))
    return marks[0] - began + STEPS * pace


def rows(data: Data) -> list[Row]:
    """A line per method."""
    gatys = mean(data["seconds"]["gram"])
    return [
        {
            "method": title_of(method),
            "seconds": mean(runs),
            "deviation": stdev(runs) if len(runs) > 1 else None,
            "ratio to Gatys": mean(runs) / gatys,
            "paper: seconds (GPU)": PAPER.get(title_of(method)),
            "paper: ratio to Gatys": _ratio(title_of(method)),
        }
        for method, runs in data["seconds"].items()
    ]


def caption(data: Data) -> Caption:
    """Ratios beside the paper's."""
    ratios = {row["method"]: row["ratio to Gatys"] for row in rows(data)}
    both = {name: ratio for name, ratio in ratios.items() if name in PAPER and name != "Gatys"}
    told = listed([f"{name} {ratio:.2g} ({_ratio(name):.2g})" for name, ratio in both.items()])
    spread = max(  # of feed-forward methods, seconds long, the first run is the slowest
        stdev(runs) / mean(runs) if len(runs) > 1 else 0
        for method, runs in data["seconds"].items()
        if method not in FEED_FORWARD
    )
    over, theirs = ratios["CMD"] - 1, PAPER["CMD"] / PAPER["Gatys"] - 1
    faster = ratios["CMD"] < ratios["MM"]
    busy = ": the machine was busy, read it with care" if spread > BUSY else ""
    absent = f" Not here yet: {listed(data['missing'])}." if data["missing"] else ""
    return Caption(
        paper="512², 500 iterations, mean of 15 runs on a GTX 1080 Ti: "
        + listed([f"{name} {value} s" for name, value in PAPER.items()])
        + ". CMD adds less than 10 % to Gatys and is faster than MM.",
        seen=f"{data['size']}² pixels on this machine, mean of {data['runs']} runs, 500 steps "
        f"computed from {data['timed']} timed ones; ratios to Gatys, the paper's in brackets: "
        f"{told}.",
        differs=f"CMD takes {abs(over):.0%} {'more' if over > 0 else 'less'} than Gatys (paper: "
        f"{theirs:.0%} more) and is "
        f"{'faster' if faster else 'slower'} than MM (paper: faster). Seconds of a GPU and of "
        f"other implementations do not compare; ratios do, to a point. Runs of one method "
        f"that descends deviate by up to {spread:.0%}{busy}.{absent}",
    )


def draw(data: Data, gallery: Gallery) -> Figure:
    """Ratios as bars, the paper's beside ours."""
    table = rows(data)[::-1]
    figure = figures.blank(9, 0.42 * len(table) + 0.9)
    axes = figure.subplots()
    for place, row in enumerate(table):
        ratio, paper = row["ratio to Gatys"], row["paper: ratio to Gatys"]
        axes.barh(place + 0.18, ratio, 0.34, color=figures.AFTER)
        axes.text(ratio, place + 0.18, f"  {ratio:.2g} ({row['seconds']:.0f} s)", va="center")
        if paper is not None:
            axes.barh(place - 0.18, paper, 0.34, color=figures.BEFORE)
            axes.text(paper, place - 0.18, f"  {paper:.2g}", va="center", color=figures.QUIET)
    axes.set_yticks(range(len(table)), [row["method"] for row in table])
    axes.set_title("seconds, as a ratio to Gatys: here (red), in the paper (gray)")
    axes.margins(x=0.15)
    return figure


def _ratio(name: str) -> float | None:
    return PAPER[name] / PAPER["Gatys"] if name in PAPER else None
