"""All marginal moments at once: what CMD asks for as K grows without bound."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from impasto.maths.linalg import double
from impasto.types import Points

MANY = 2**12  # points: more are counted at so many knots per coordinate instead of sorted
NOBODY = 1e-3  # points that a knot counts without any: it has a share, so the map a value there

Curves = Callable[[Tensor], Tensor]  # one for each of d coordinates: (d, n) to (d, n)


def histogram(content: Points, style: Points) -> Callable[[Points], Points]:
    r"""The distribution of every coordinate.

    A point of rank r among n gets the mean of the style's quantile function over its share,

    .. math:: T(p) = n \int_{r/n}^{(r+1)/n} F_y^{-1}(u) \, du

    so that the numbers of points may differ and the mean is met exactly. Equal points share their
    ranks and stay equal. Among many points those next to the same knot count as equal, and the map
    is straight between knots.
    """
    rows, integral = content.T.contiguous(), _integral(style.T.contiguous())
    move = (_by_sorting if len(content) <= MANY else _by_counting)(rows, integral)
    return lambda points: move(points.T.contiguous()).to(points).T


def _integral(rows: Tensor) -> Curves:
    """Of the quantile functions of samples (d, m), from 0 to shares in [0, 1]."""
    if rows.shape[1] <= MANY:
        values = double(rows.sort(1).values)
        shares, totals = torch.ones_like(values), values
    else:
        shares, totals = _counted(rows, *_knots(rows))
    shares, totals = (_summed(each) / rows.shape[1] for each in (shares, totals))

    def integral(share: Tensor) -> Tensor:
        last = shares.shape[1] - 2
        at = (torch.searchsorted(shares, share, right=True) - 1).clamp_(0, last)
        low, high = shares.gather(1, at), shares.gather(1, at + 1)
        part = (share - low) / (high - low).clamp_min_(torch.finfo(share.dtype).tiny)
        return totals.gather(1, at).lerp_(totals.gather(1, at + 1), part.clamp_max_(1))

    return integral


def _by_sorting(rows: Tensor, integral: Curves) -> Curves:
    ranked, count = rows.sort(1).values, rows.shape[1]

    def move(rows: Tensor) -> Tensor:
        below = torch.searchsorted(ranked, rows)
        # A point that was not in the sample gets the share of the one above it.
        above = torch.searchsorted(ranked, rows, right=True).maximum(below + 1).clamp_max(count)
        first, last = (double(each) / count for each in (below.clamp_max(count - 1), above))
        return (integral(last) - integral(first)) / (last - first)

    return move


def _by_counting(rows: Tensor, integral: Curves) -> Curves:
    low, scale = _knots(rows)
    shares = _summed(_counted(rows, low, scale)[0] + NOBODY)
    shares = shares / shares[:, -1:]
    table = (integral(shares).diff(dim=1) / shares.diff(dim=1)).to(rows)
    rises = torch.cat([table.diff(dim=1), torch.zeros_like(table[:, :1])], 1)

    def move(rows: Tensor) -> Tensor:
        found = torch.empty_like(rows)
        for number, row in enumerate(rows):  # one after the other: they stay in the cache
            place = _place(row, low[number], scale[number])
            knot = place.int()
            rise = rises[number].index_select(0, knot).mul_(place.sub_(knot))
            torch.add(table[number].index_select(0, knot), rise, out=found[number])
        return found

    return move


def _knots(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The lowest knot of every coordinate, and how many there are per unit."""
    low, high = rows.aminmax(dim=1)
    return low, (MANY - 1) / (high - low).clamp_min(torch.finfo(rows.dtype).tiny * MANY)


def _place(row: Tensor, low: Tensor, scale: Tensor) -> Tensor:
    return ((row - low) * scale).clamp_(0, MANY - 1)


def _counted(rows: Tensor, low: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """How many points are next to each knot, and their sum."""
    counts, sums = [], []
    for row, *where in zip(rows, low, scale, strict=True):
        knot = _place(row, *where).round_().int()
        counts.append(torch.bincount(knot, minlength=MANY))
        sums.append(torch.bincount(knot, double(row), minlength=MANY))
    return double(torch.stack(counts)), torch.stack(sums)


def _summed(parts: Tensor) -> Tensor:
    """All up to each, from none to all of them."""
    return torch.cat([parts.new_zeros((len(parts), 1)), parts.cumsum(1)], 1)
