"""Appendix B: the length of Adam's steps."""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import pairwise
from statistics import mean, stdev
from typing import TYPE_CHECKING

from impasto.experiments import Caption, Data, Row, figures
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import UNITS, Order, Pair, Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = (0.01, 0.1, 0.2, 0.3)  # in ImageNet-normalized units
PAIRS = 2


def orders(plan: Plan) -> list[Order]:
    """Two pairs with each rate."""
    return [order for pair in plan.pairs[:PAIRS] for order in orders_of(pair, plan)]


def orders_of(pair: Pair, plan: Plan) -> list[Order]:
    """One pair with each rate, by the paper's procedure."""
    return [
        Order(pair=pair, recipe=plan.recipe("paper", learning_rate=rate * UNITS)) for rate in RATES
    ]


def measure(plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
    """Losses at the end and how unsteady the way there was."""
    yield 0.0
    found = []
    for pair in plan.pairs[:PAIRS]:
        for rate, order in zip(RATES, orders_of(pair, plan), strict=True):
            facts = gallery.facts(order)
            styles = [losses["style"] for losses in facts["history"]]
            found.append(
                {
                    "pair": pair.name,
                    "rate": rate,
                    "content": facts["losses"]["end"]["content"],
                    "style": facts["losses"]["end"]["style"],
                    "unsteady": unsteadiness(styles),
                    "styles": styles,
                }
            )
    return {"steps": plan.paper_steps, "runs": found}


def unsteadiness(styles: list[float]) -> float:
    """The deviation of the step-to-step change of the logarithm, over the second half."""
    half = [math.log(max(value, 1e-12)) for value in styles[len(styles) // 2 :]]
    moves = [after - before for before, after in pairwise(half)]
    return stdev(moves) if len(moves) > 1 else 0.0


def rows(data: Data) -> list[Row]:
    """A line per run."""
    return [
        {
            "pair": run["pair"],
            "learning rate": run["rate"],
            "in RGB": run["rate"] * UNITS,
            "content loss": run["content"],
            "style loss": run["style"],
            "unsteadiness": run["unsteady"],
        }
        for run in data["runs"]
    ]


def caption(data: Data) -> Caption:
    """Whether longer steps lose content and are less steady."""
    means = {
        name: [mean(run[name] for run in data["runs"] if run["rate"] == rate) for rate in RATES]
        for name in ("content", "style", "unsteady")
    }
    drifts = all(a < b for a, b in pairwise(means["content"]))
    shakes = all(a < b for a, b in pairwise(means["unsteady"]))
    told = "; ".join(
        f"{rate:g}: content {content:.3g}, style {style:.3g}, unsteadiness {unsteady:.2g}"
        for rate, content, style, unsteady in zip(RATES, *means.values(), strict=True)
    )
    return Caption(
        paper="A higher learning rate acts like less weight on the content; at 0.3 it is barely "
        "recognizable, and training becomes unstable.",
        seen=f"After {data['steps']} steps by rate, mean of the pairs: {told}.",
        differs=("The content loss grows with every rate" if drifts else "The content loss does "
        "not grow with every rate")
        + (", and so does the unsteadiness of the style loss, as in the paper."
           if shakes and drifts else f"; the unsteadiness {'does' if shakes else 'does not'}.")
        + " Rates are in the units of the public code, where the image is normalized as for "
        f"ImageNet: one of them is {UNITS} in RGB. Other pictures than the paper's.",
    )  # fmt: skip


def draw(data: Data, gallery: Gallery) -> Figure:
    """A row per pair, and the style loss over the steps below."""
    plan = gallery.plan
    pairs = plan.pairs[:PAIRS]
    figure = figures.blank(11, 1.5 * len(pairs) + 2.6)
    parts = figure.subfigures(2, 1, squeeze=False, height_ratios=[1.5 * len(pairs), 2.6])
    above, below = parts[0, 0], parts[1, 0]
    axes = above.subplots(len(pairs), len(RATES) + 2, squeeze=False)
    titles = ["content", "style", *(f"rate {rate:g}" for rate in RATES)]
    for number, pair in enumerate(pairs):
        images = [gallery.source(pair.content), gallery.source(pair.style)]
        images += [gallery.image(order) for order in orders_of(pair, plan)]
        for place, image, title in zip(axes[number], images, titles, strict=True):
            figures.place(place, image, "" if number else title)
    curves = below.subplots(1, len(pairs), squeeze=False)[0]
    for place, pair in zip(curves, pairs, strict=True):
        for run in (run for run in data["runs"] if run["pair"] == pair.name):
            color = figures.COLORS[RATES.index(run["rate"])]
            place.semilogy(run["styles"], color=color, linewidth=1, label=f"{run['rate']:g}")
        place.set_title(f"style loss over the steps, {pair.name}")
        place.legend(title="rate")
    return figure
