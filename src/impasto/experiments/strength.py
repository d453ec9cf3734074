"""Figure 5: the weight α of the content."""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise
from typing import TYPE_CHECKING

from impasto.experiments import Caption, Data, Row, figures
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import Order, Plan
from impasto.maths.similarity import ssim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHAS = (0.6, 0.2, 0.01, 0.0)


def orders(plan: Plan) -> list[Order]:
    """The first pair with each weight."""
    return [Order(pair=plan.pairs[0], recipe=plan.recipe(alpha=alpha)) for alpha in ALPHAS]


def measure(plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
    """Losses and the similarity to the content."""
    yield 0.0
    content = gallery.source(plan.pairs[0].content)
    found = []
    for alpha, order in zip(ALPHAS, orders(plan), strict=True):
        losses = gallery.facts(order)["losses"]["end"]
        found.append(
            {
                "alpha": alpha,
                "content": losses["content"],
                "style": losses["style"],
                "ssim": ssim(gallery.image(order), content),
            }
        )
    return {"pair": plan.pairs[0].name, "strengths": found}


def rows(data: Data) -> list[Row]:
    """A line per weight."""
    return [
        {
            "α": each["alpha"],
            "content loss": each["content"],
            "style loss": each["style"],
            "SSIM to the content": each["ssim"],
        }
        for each in data["strengths"]
    ]


def caption(data: Data) -> Caption:
    """Whether more weight on the content keeps more of it."""
    found = data["strengths"]
    orderly = [
        all(a["content"] <= b["content"] for a, b in pairwise(found)),
        all(a["style"] >= b["style"] for a, b in pairwise(found)),
    ]
    told = "; ".join(
        f"α = {each['alpha']:g}: content {each['content']:.3g}, style {each['style']:.3g}, "
        f"SSIM {each['ssim']:.2f}"
        for each in found
    )
    exceptions = [
        name for name, holds in zip(("content", "style"), orderly, strict=True) if not holds
    ]
    return Caption(
        paper="More weight on the content gives weaker, partial stylizations closer to it.",
        seen=f"{told}.",
        differs=(
            "None: with falling α the content loss grows and the style loss falls, step by step."
            if not exceptions
            else f"The {' and '.join(exceptions)} loss does not follow α at every step."
        )
        + " What a value of α looks like depends on the units of both losses, which the paper does "
        "not give: compare the order, not the values.",
    )


def draw(data: Data, gallery: Gallery) -> Figure:
    """Content, style and the four weights."""
    pair = gallery.plan.pairs[0]
    painted = [gallery.image(order) for order in orders(gallery.plan)]
    alphas = [f"α = {alpha:g}" for alpha in ALPHAS]
    return figures.sheet(
        [
            [gallery.source(pair.content), gallery.source(pair.style), painted[0]],
            painted[1:],
        ],
        titles=[["content", "style", alphas[0]], alphas[1:]],
        cell=2.6,
    )
