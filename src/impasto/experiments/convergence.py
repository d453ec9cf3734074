"""Section 4.1: how the losses fall, and when the rules would stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from impasto.experiments import Caption, Data, Row, figures
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import UNITS, Order, Plan
from impasto.optimize import PAPER_AVERAGE, PAPER_DIFFERENCE, is_flat, is_settled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 1e-5  # of what is drawn on a logarithmic scale
RULES = {"settled": "o", "flat": "s"}  # their marks
EVERY = 25  # steps between the lines of the table


def orders(plan: Plan) -> list[Order]:
    """The first pair by the paper's procedure and by ours, neither stopping early."""
    own = plan.recipe(stop="never")
    paper = plan.recipe("paper", learning_rate=0.1 * UNITS)
    return [Order(pair=plan.pairs[0], recipe=recipe) for recipe in (paper, own)]


def measure(plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
    """Both histories and the steps at which each rule fires."""
    yield 0.0
    found: dict[str, Any] = {}
    for name, order in zip(("paper", "impasto"), orders(plan), strict=True):
        history = gallery.facts(order)["history"]
        styles = [losses["style"] for losses in history]
        found[name] = {
            "style": styles,
            "content": [losses["content"] for losses in history],
            "gap": gaps(styles),
            "settled": first(is_settled, styles),
            "flat": first(is_flat, styles),
        }
    return {"pair": plan.pairs[0].name, "runs": found}


def gaps(styles: Sequence[float]) -> list[float]:
    """What the paper's rule looks at: |moving average − loss|."""
    average, found = styles[0], []
    for loss in styles:
        average = PAPER_AVERAGE * average + (1 - PAPER_AVERAGE) * loss
        found.append(abs(average - loss))
    return found


def first(rule: Callable[[Sequence[float]], bool], styles: Sequence[float]) -> int | None:
    """The step at which a rule fires; None where it does not."""
    return next((step for step in range(len(styles)) if rule(styles[: step + 1])), None)


def rows(data: Data) -> list[Row]:
    """Some steps of both runs."""
    return [
        {
            "procedure": name,
            "step": step,
            "style loss": run["style"][step],
            "content loss": run["content"][step],
            "|average − loss|": run["gap"][step],
        }
        for name, run in data["runs"].items()
        for step in sorted({*range(0, len(run["style"]), EVERY), len(run["style"]) - 1})
    ]


def caption(data: Data) -> Caption:
    """When the losses were how low, and what the rules made of it."""
    paper, own = data["runs"]["paper"], data["runs"]["impasto"]
    steps = len(paper["style"]) - 1
    best = min(paper["style"])
    reached = next((k for k, loss in enumerate(own["style"]) if loss <= best), None)
    fires = [
        f"{title} {'never fires' if paper[name] is None else f'fires at step {paper[name]}'}"
        for name, title in (("settled", "the paper's rule"), ("flat", "our rule"))
    ]
    at = paper["settled"]
    low = paper["style"][at] / best if at is not None else None
    return Caption(
        paper="The run is stopped when the style loss is close to its moving average, instead of "
        "after a fixed number of steps; values are not given.",
        seen=f"The paper's procedure takes the style loss from {paper['style'][0]:.3f} to "
        f"{best:.4f} at best in {steps} steps; ours reaches that "
        + (f"after {reached}. " if reached is not None else "not within its steps. ")
        + f"On the paper's curve {fires[0]}, {fires[1]}. At the end |average − loss| is "
        f"{paper['gap'][-1]:.4f}, where the public code asks for {PAPER_DIFFERENCE}.",
        differs=(
            f"Where the paper's rule fires the loss is {low:.2f} times its lowest value: it can "
            "fire where the loss only crosses its average."
            if low is not None
            else f"The paper's rule does not fire within {steps} steps here."
        )
        + " Our procedure keeps some weight on the content, the public code none. One pair "
        f"({data['pair']}).",
    )


def draw(data: Data, gallery: Gallery) -> Figure:
    """Three panels: style, content, and what the paper's rule looks at."""
    figure = figures.blank(11, 3.2)
    axes = figure.subplots(1, 3)
    names = {"style": "style loss", "content": "content loss", "gap": "|average − style loss|"}
    for place, (key, title) in zip(axes, names.items(), strict=True):
        for number, (name, run) in enumerate(data["runs"].items()):
            color, steps = figures.COLORS[number], range(1, len(run[key]))
            curve = [max(value, LEAST) for value in run[key]]
            place.plot(steps, curve[1:], color=color, linewidth=1.2, label=name)
            for rule, mark in RULES.items():
                if run[rule] is not None:
                    place.plot(run[rule], curve[run[rule]], mark, color=color)
        place.set_yscale("linear" if key == "content" else "log")
        place.set_title(title)
        place.set_xlabel("step")
    axes[2].axhline(PAPER_DIFFERENCE, color=figures.QUIET, linestyle=":", linewidth=1)
    for rule, text in (("settled", "the paper's rule fires"), ("flat", "our rule fires")):
        if any(run[rule] is not None for run in data["runs"].values()):
            axes[0].plot([], [], RULES[rule], color=figures.QUIET, label=text)
    axes[0].legend()
    return figure
