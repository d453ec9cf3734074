"""Figure 3: content, style and what each system makes of them."""

from __future__ import annotations

from collections.abc import Generator
from statistics import mean
from typing import TYPE_CHECKING

from impasto.evaluation import HELD_OUT
from impasto.experiments import Caption, Data, Row, distances, figures, listed
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import (
    STARRED,
    SYSTEMS,
    Order,
    Pair,
    Plan,
    extensions,
    missing,
    systems,
    title_of,
)
from impasto.maths.similarity import ssim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from impasto.types import Image


def orders(plan: Plan) -> list[Order]:
    """Every method on every pair that is shown."""
    return [order for pair in plan.pairs[: plan.shown] for order in orders_of(pair, plan)]


def orders_of(pair: Pair, plan: Plan) -> list[Order]:
    """Every method on one pair: the systems in the paper's order, then ours."""
    methods = [*systems().values(), *extensions()]
    return [Order(pair=pair, recipe=plan.recipe(method=method)) for method in methods]


def measure(plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
    """Distances to the style on held-out layers, and to the content."""
    found, wanted = [], orders(plan)
    for number, order in enumerate(wanted):
        yield number / len(wanted)
        image, style = (
            distances.features_of(gallery.encoder, one)
            for one in (gallery.image(order), gallery.source(order.pair.style))
        )
        held_out = distances.sliced(image, style, HELD_OUT).values()
        found.append(
            {
                "pair": order.pair.name,
                "method": order.recipe.method,
                "held_out": sum(held_out) / len(held_out),
                "ssim": ssim(gallery.image(order), gallery.source(order.pair.content)),
            }
        )
    return {"pictures": found, "missing": missing()}


def rows(data: Data) -> list[Row]:
    """A line per picture."""
    return [
        {
            "pair": each["pair"],
            "method": title_of(each["method"]),
            "held-out SWD": each["held_out"],
            "SSIM to the content": each["ssim"],
        }
        for each in data["pictures"]
    ]


def caption(data: Data) -> Caption:
    """Which system is nearest to the style, pair by pair."""
    shown = data["pictures"]
    pairs = {each["pair"] for each in shown}
    wins: dict[str, int] = {}
    for pair in pairs:
        here = [
            each for each in shown if each["pair"] == pair and each["method"] in SYSTEMS.values()
        ]
        best = min(here, key=lambda each: each["held_out"])
        wins[best["method"]] = wins.get(best["method"], 0) + 1
    order = sorted(wins.items(), key=lambda item: -item[1])
    counts = listed([f"{title_of(name)} on {count}" for name, count in order])
    means = {
        name: mean(each["held_out"] for each in shown if each["method"] == name)
        for name in dict.fromkeys(each["method"] for each in shown)
    }
    told = listed([f"{title_of(name)} {value:.3f}" for name, value in means.items()])
    absent = f" Not here yet: {listed(data['missing'])}." if data["missing"] else ""
    own = listed([name for name in means if name not in SYSTEMS.values()])
    return Caption(
        paper="Six systems on seven pairs; by eye, CMD keeps the palette of the style, its strokes "
        "and the shapes of the content best.",
        seen=f"{len(pairs)} pairs, one procedure for all methods that descend; beside the systems "
        f"of the paper ours: {own}. By the sliced Wasserstein distance on layers that no method "
        f"looks at, the nearest of the paper's systems to the style is {counts} of {len(pairs)}; "
        f"means: {told}.",
        differs="Other pictures than the paper's, and one implementation with one content weight "
        "for all; the paper takes each author's code with its own settings. "
        f"As in the paper, {listed(STARRED)} are feed-forward.{absent}",
    )


def draw(data: Data, gallery: Gallery) -> Figure:
    """Two lines per pair: the systems of the paper beside content and style, ours below."""
    plan, lines, titles = gallery.plan, [], []
    for pair in plan.pairs[: plan.shown]:
        painted = {order.recipe.method: gallery.image(order) for order in orders_of(pair, plan)}
        sources: list[Image | None] = [gallery.source(pair.content), gallery.source(pair.style)]
        lines.append(sources + [painted[name] for name in systems().values()])
        titles.append(["content", "style", *systems()])
        lines.append([None, None, *(painted[name] for name in extensions())])
        titles.append(["", "", *extensions()])
    return figures.sheet(lines, titles=titles, cell=1.5)
