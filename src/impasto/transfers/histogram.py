"""All marginal moments at once: what CMD asks for as K grows without bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
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
    count = rows.shape[1]
    many = count > MANY
    if many:
        knots = _knots(rows)
        parts, sums = _counted(rows, *knots), _added(rows, *knots)
        shares = _summed(parts) / count
    else:
        sums = double(_ranked(rows))
    totals = _summed(sums) / count

    def integral(share: Tensor) -> Tensor:
        if many:
            at = (torch.searchsorted(shares, share, right=True) - 1).clamp_(0, MANY - 1)
            low, width = shares.gather(1, at), parts.gather(1, at).clamp_min_(1) / count
            part = ((share - low) / width).clamp_max_(1)
        else:
            place = share * count
            at = place.long().clamp_max_(count - 1)
            part = place - at
        return totals.gather(1, at).add_(part * sums.gather(1, at) / count)

    return integral


def _by_sorting(rows: Tensor, integral: Curves) -> Curves:
    ranked, count = _ranked(rows), rows.shape[1]
    ranks = torch.arange(count, dtype=torch.int32, device=rows.device)
    other = ranked.diff(dim=1) != 0
    edge = other.new_ones((len(rows), 1))
    first = torch.cat([edge, other], 1).mul(ranks).cummax(1).values
    last = torch.where(torch.cat([other, edge], 1), ranks + 1, count).flip(1).cummin(1).values
    low, high = (double(each) / count for each in (first, last.flip(1)))
    values = ((integral(high) - integral(low)) / (high - low)).to(rows)

    def move(rows: Tensor) -> Tensor:
        # A point that was not in the sample, be it by rounding, goes where the next one goes.
        above = torch.searchsorted(ranked, rows).clamp_max_(count - 1)
        below = (above - 1).clamp_min_(0)
        nearer = rows - ranked.gather(1, below) < ranked.gather(1, above) - rows
        return values.gather(1, torch.where(nearer, below, above))

    return move


def _by_counting(rows: Tensor, integral: Curves) -> Curves:
    low, scale = _knots(rows)
    shares = _summed(_counted(rows, low, scale) + NOBODY)
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


def _ranked(rows: Tensor) -> Tensor:
    """Every row in order; on a CPU by NumPy, which does it several times faster."""
    if rows.device.type != "cpu":
        return rows.sort(1).values
    return torch.from_numpy(np.sort(rows.detach().numpy(), axis=1))


def _knots(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The lowest knot of every coordinate, and how many there are per unit."""
    low, high = rows.aminmax(dim=1)
    return low, (MANY - 1) / (high - low).clamp_min(torch.finfo(rows.dtype).tiny * MANY)


def _place(row: Tensor, low: Tensor, scale: Tensor) -> Tensor:
    return (row - low).mul_(scale).clamp_(0, MANY - 1)


def _counted(rows: Tensor, low: Tensor, scale: Tensor) -> Tensor:
    """How many points are next to each knot."""
    near = map(_next_knot, rows, low, scale)
    return double(torch.stack([torch.bincount(knot, minlength=MANY) for knot in near]))


def _added(rows: Tensor, low: Tensor, scale: Tensor) -> Tensor:
    """The sum of the points next to each knot."""
    near = zip(map(_next_knot, rows, low, scale), rows, strict=True)
    return torch.stack([torch.bincount(knot, double(row), minlength=MANY) for knot, row in near])


def _next_knot(row: Tensor, low: Tensor, scale: Tensor) -> Tensor:
    return _place(row, low, scale).round_().int()


def _summed(parts: Tensor) -> Tensor:
    """All up to each, from none to all of them."""
    return torch.cat([parts.new_zeros((len(parts), 1)), parts.cumsum(1)], 1)
