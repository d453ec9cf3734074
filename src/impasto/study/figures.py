"""Figures of a study: shares and strengths with their intervals, shares per style."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from impasto.study.findings import Findings

INK, SOFT, ACCENT = "#201d19", "#8d8578", "#274690"
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": SOFT,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "ytick.left": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "impasto",  # equal votes give equal files
}


def draw(found: Findings) -> dict[str, Figure]:
    """The figures by name."""
    drawn: dict[str, Callable[[Findings], Figure]] = {"shares": _shares, "strengths": _strengths}
    if len(found.styles) > 1:
        drawn["styles"] = _styles
    with matplotlib.rc_context(STYLE):
        return {name: figure(found) for name, figure in drawn.items()}


def encode(figure: Figure, kind: str) -> bytes:
    """The file of a figure: 'png' or 'svg'."""
    buffer = io.BytesIO()
    nothing = {"Date": None} if kind == "svg" else {"Software": None}
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format=kind, dpi=160, metadata=nothing)
    return buffer.getvalue()


def _shares(found: Findings) -> Figure:
    order = found.order[::-1]
    shares = [found.shares[each] for each in order]
    figure, axes = _canvas(len(order))
    _intervals(
        axes,
        [100 * share.share for share in shares],
        [(100 * share.alone.low, 100 * share.alone.high) for share in shares],
    )
    for place, each in enumerate(order if found.by_voter else []):
        ends = [100 * end for end in found.by_voter[each]]
        axes.plot(ends, [place, place], color=ACCENT, alpha=0.25, linewidth=7, zorder=1)
    chance = 50 if found.two else 100 / len(order)
    axes.axvline(chance, color=SOFT, linewidth=0.8, linestyle=(0, (4, 4)), zorder=0)
    axes.set_xlim(left=0)
    axes.set_yticks(range(len(order)), [found.methods[each] for each in order])
    axes.set_xlabel("ballots won, per cent" if found.two else "votes, per cent")
    return figure


def _strengths(found: Findings) -> Figure:
    order = sorted(range(len(found.methods)), key=lambda each: found.strengths.logs[each])
    figure, axes = _canvas(len(order))
    _intervals(
        axes,
        [found.strengths.logs[each] for each in order],
        [tuple(found.strengths.intervals[each]) for each in order],
    )
    axes.axvline(0, color=SOFT, linewidth=0.8, linestyle=(0, (4, 4)), zorder=0)
    axes.set_yticks(range(len(order)), [found.methods[each] for each in order])
    axes.set_xlabel("log-strength; a difference of 0.7 is twice as often preferred")
    return figure


def _styles(found: Findings) -> Figure:
    order, groups = found.order, found.styles
    values = [
        [100 * group.counts[each] / (group.shown[each] or 1) for each in order] for group in groups
    ]
    figure = Figure(
        figsize=(1.6 + 0.85 * len(order), 1.2 + 0.42 * len(groups)), layout="constrained"
    )
    axes = figure.add_subplot()
    axes.imshow(values, cmap="Blues", vmin=0, aspect="auto")
    largest = max(max(row) for row in values) or 1
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            color = "white" if value > 0.6 * largest else INK
            axes.text(x, y, f"{value:.0f}", ha="center", va="center", color=color)
    axes.set_xticks(range(len(order)), [found.methods[each] for each in order])
    axes.set_yticks(range(len(groups)), [group.name for group in groups])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("per cent, by style", fontsize=10)
    return figure


def _canvas(rows: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.4, 1.0 + 0.42 * rows), layout="constrained")
    axes = figure.add_subplot()
    axes.set_ylim(-0.6, rows - 0.4)
    return figure, axes


def _intervals(axes: Any, values: list[float], ends: list[Any]) -> None:
    for place, (value, (low, high)) in enumerate(zip(values, ends, strict=True)):
        axes.plot([low, high], [place, place], color=ACCENT, linewidth=1.6, solid_capstyle="butt")
        axes.plot([value], [place], "o", color=ACCENT, markersize=6)
