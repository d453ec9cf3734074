"""Table 1: the votes of the user study, with intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING

from impasto.experiments import Caption, Data, Row, figures, listed
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import STARRED, Order, Plan
from impasto.maths.votes import differences, equal_shares, shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VOTES = {"AdaIN": 155, "Gatys": 533, "MM": 443, "OST": 523, "WCT": 463, "CMD": 587}
PARTICIPANTS = 56
LEVEL = 0.05


def orders(plan: Plan) -> list[Order]:
    """None: the votes are the paper's."""
    return []


def measure(plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
    """Shares with intervals, a test of all, and a test of each lead of CMD."""
    yield 0.0
    names, counts = list(VOTES), list(VOTES.values())
    leads = []
    for each in differences(counts):
        first, second = names[each.first], names[each.second]
        if "CMD" in (first, second):
            sign = 1 if first == "CMD" else -1
            low, high = sorted(sign * end for end in each.interval)
            leads.append(
                {
                    "over": second if first == "CMD" else first,
                    "lead": sign * each.lead,
                    "low": low,
                    "high": high,
                    "p": each.p,
                    "adjusted": each.adjusted,
                }
            )
    return {
        "total": sum(counts),
        "equal": equal_shares(counts),
        "shares": [
            {"method": name, "votes": each.votes, "share": each.share, "low": each.together.low,
             "high": each.together.high}
            for name, each in zip(names, shares(counts), strict=True)
        ],
        "leads": leads,
    }  # fmt: skip


def rows(data: Data) -> list[Row]:
    """A line per system."""
    leads = {each["over"]: each for each in data["leads"]}
    return [
        {
            **each,
            "lead of CMD": leads.get(each["method"], {}).get("lead"),
            "p": leads.get(each["method"], {}).get("p"),
            "p (Holm)": leads.get(each["method"], {}).get("adjusted"),
        }
        for each in data["shares"]
    ]


def caption(data: Data) -> Caption:
    """What the votes can and cannot tell."""
    leads = {each["over"]: each for each in data["leads"]}
    gatys = leads["Gatys"]
    sure = [name for name, each in leads.items() if each["adjusted"] < LEVEL]
    open_ = [name for name, each in leads.items() if each["adjusted"] >= LEVEL]
    votes = {each["method"]: each["votes"] for each in data["shares"]}
    return Caption(
        paper=f"{data['total']:,} votes of {PARTICIPANTS} people on which of six results has the "
        f"style best; CMD has the most, about 10 % more than Gatys, the second.",
        seen=f"CMD leads Gatys by {votes['CMD'] - votes['Gatys']} votes, "
        f"{gatys['lead']:.1%} of all ({gatys['low']:+.1%} to {gatys['high']:+.1%}, 95 %); a fair "
        f"coin gives such a lead with p = {gatys['p']:.2f}"
        f" ({gatys['adjusted']:.2f} among all {math.comb(len(votes), 2)} differences). "
        f"CMD is ahead beyond chance (Holm, {LEVEL:.0%}) of {listed(sure)}"
        + (f", not of {listed(open_)}" if open_ else "")
        + f". That all six are equally liked has p = {data['equal']:.0e}.",
        differs="The paper gives no intervals. These take every vote as independent; the votes of "
        f"one person are not, so with {PARTICIPANTS} people the true intervals are wider.",
    )


def draw(data: Data, gallery: Gallery) -> Figure:
    """Shares with intervals that hold together, and the leads of CMD."""
    figure = figures.blank(10, 3.2)
    left, right = figure.subplots(1, 2)
    for place, each in enumerate(reversed(data["shares"])):
        color = figures.AFTER if each["method"] == "CMD" else figures.BEFORE
        left.barh(place, 100 * each["share"], color=color)
        left.plot([100 * each["low"], 100 * each["high"]], [place, place], color=figures.INK)
        left.text(100 * each["high"], place, f"  {each['votes']}", va="center")
    names = [each["method"] for each in reversed(data["shares"])]
    left.set_yticks(range(len(names)), [f"{n}*" if n in STARRED else n for n in names])
    left.set_title("share of the votes in %, with intervals for all at once")
    left.margins(x=0.1)
    for place, each in enumerate(reversed(data["leads"])):
        right.plot([100 * each["low"], 100 * each["high"]], [place, place], color=figures.INK)
        right.plot(100 * each["lead"], place, "o", color=figures.AFTER)
        p = each["p"]
        told = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
        right.text(100 * each["high"], place, f"  {told}", va="center")
    right.axvline(0, color=figures.QUIET, linewidth=1)
    right.set_yticks(range(len(data["leads"])), [e["over"] for e in reversed(data["leads"])])
    right.set_title("lead of CMD over …, in % of all votes")
    right.margins(x=0.2)
    return figure
