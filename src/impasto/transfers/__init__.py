"""Maps of content points to points that have the style: each closes a discrepancy in one shot.

A transfer is fitted to two samples and gives a map, which may then be applied to all points or to
some of them: what it depends on is global, what it does is done point by point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from impasto.maths.linalg import flat
from impasto.transfers.affine import adain, ost, wct
from impasto.transfers.histogram import histogram
from impasto.types import ImpastoError, Points

Map = Callable[[Points], Points]
Fit = Callable[[Points, Points], Map]


def after(first: Fit, second: Fit) -> Fit:
    """Two transfers, the second fitted to what the first made."""

    def fit(content: Points, style: Points) -> Map:
        one = first(content, style)
        two = second(one(content), style)
        return lambda points: two(one(points))

    return fit


def transfers(doubt: float = 0.0) -> dict[str, Fit]:
    """All by name; with some doubt of what few points tell, those that see correlations."""
    transport = partial(ost, doubt=doubt)
    return {
        "adain": adain,
        "wct": partial(wct, doubt=doubt),
        "ost": transport,
        "histogram": histogram,
        "ost+histogram": after(transport, histogram),
    }


TRANSFERS = transfers()


def transfer(name: str, content: Points, style: Points, *, strength: float = 1.0) -> Points:
    """The content points (n, d) in the style of others (m, d); strength 0 leaves them alone."""
    if name not in TRANSFERS:
        raise ImpastoError(f"unknown transfer '{name}'; known: {', '.join(TRANSFERS)}")
    if not 0 <= strength <= 1:
        raise ImpastoError(f"strength is {strength}; it must be in [0, 1]")
    content, style = flat(content), flat(style)
    if strength == 0:
        return content
    moved = TRANSFERS[name](content, style)(content)
    return moved if strength == 1 else content.lerp(moved, strength)
