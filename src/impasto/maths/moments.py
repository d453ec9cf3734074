"""Moments of every coordinate of a sample, with their gradient in closed form.

An autograd graph would keep a full-size tensor per power. Here a few coordinates at a time are
centered, raised and summed while they are in the cache, and the gradient is a polynomial. Sums of
powers are sums over points: those of parts of a sample add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from impasto.types import ImpastoError, Points

BLOCK = 1 << 20  # numbers that are worked on at a time: few enough for the cache, many for threads


def central_moments(points: Points, order: int, *, activation: str = "identity") -> Tensor:
    r"""The mean and the central moments 2 … order of every coordinate: (order, d).

    .. math:: c_1 = E[x], \qquad c_k = E[(x - c_1)^k]

    ``activation`` is applied to the points first: ``identity`` or ``sigmoid``.
    The result is in double precision where the device has it: c_50 is small.
    """
    sums, about = power_sums(points, order, activation=activation)
    return centered(sums / math.prod(points.shape[:-1]), about)


def power_sums(
    points: Points, order: int, *, activation: str = "identity", about: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The sums :math:`\sum (x - a)^k`, k = 1 … order, of every coordinate, and the pivot a.

    Where no pivot (d,) is given it is the mean: the closer it is, the less is lost in
    :func:`centered`. The sums are differentiable in the points, the pivot is a constant.
    """
    if activation not in ("identity", "sigmoid"):
        raise ImpastoError(f"unknown activation '{activation}'; known: identity, sigmoid")
    return _PowerSums.apply(points.movedim(-1, 0), order, activation, about)


def spread(
    points: Points, slopes: Tensor, *, activation: str = "identity", about: Tensor, onto: Points
) -> None:
    """Add to something the gradient in the points of their power sums times slopes (order, d).

    It is what autograd makes of :func:`power_sums`, for those who have taken the sums before.
    """
    rows, total = points.movedim(-1, 0), onto.movedim(-1, 0)
    pivot = about.to(rows.dtype).to(slopes.dtype)
    scales = slopes.new_ones((len(rows), 1))
    for part in _parts(rows) if activation == "identity" else ():
        _scale(_activated(rows[part], activation).sub_(_column(pivot, part, rows)), scales[part])
    for part, u, terms in _polynomials(rows, slopes, pivot, scales, activation):
        gradient = torch.empty_like(u)
        _polynomial(u, terms, gradient)
        total[part].add_(gradient.view(rows[part].shape))


def centered(moments: Tensor, about: Tensor) -> Tensor:
    r"""The mean and the central moments from the moments m_k about a pivot: (K, d).

    .. math:: c_k = \sum_{j=0}^{k} \binom{k}{j} m_j (-m_1)^{k-j}
    """
    order = len(moments)
    shift = moments[:1]
    if order == 1:
        return about + shift
    binomials = [[math.comb(k, j) for j in range(order + 1)] for k in range(2, order + 1)]
    degrees = [[max(k - j, 0) for j in range(order + 1)] for k in range(2, order + 1)]
    powers = (-shift) ** torch.arange(order + 1, device=moments.device)[:, None]
    terms = (
        powers[torch.tensor(degrees, device=moments.device)]
        * moments.new_tensor(binomials)[..., None]
    )
    known = torch.cat([torch.ones_like(shift), moments])
    return torch.cat([about + shift, (terms * known).sum(1)])


class _PowerSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, order: int, activation: str, about: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        sums = rows.new_empty((order, rows.shape[0]), dtype=_wide(rows))
        # Rounded as the points are, so that it is the same number wherever it is used.
        pivot = sums.new_empty(len(rows)) if about is None else about.to(rows.dtype).to(sums.dtype)
        scales = sums.new_ones((rows.shape[0], 1))
        powers = torch.arange(1, order + 1, device=rows.device)[:, None]
        for part in _parts(rows):
            u = _activated(rows[part], activation)
            if about is None:
                pivot[part] = u.mean(1)
            u.sub_(_column(pivot, part, u))
            if activation == "identity":
                u.div_(_scale(u, scales[part]))
            sums[:, part] = _sums_of_powers(u, order).to(sums.dtype) * scales[part].T ** powers
        # The points are there anyway; what was made of them is made again on the way back, part
        # by part, for less than it costs to write it all to memory and to read it again.
        ctx.save_for_backward(rows, pivot, scales)
        ctx.activation = activation
        ctx.mark_non_differentiable(pivot)
        return sums, pivot

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        rows, pivot, scales = ctx.saved_tensors
        gradient = torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)
        flat = gradient.view(len(rows), -1)
        for part, u, terms in _polynomials(rows, gradients[0], pivot, scales, ctx.activation):
            _polynomial(u, terms, flat[part])
        return gradient, None, None, None


def _polynomials(
    rows: Tensor, slopes: Tensor, pivot: Tensor, scales: Tensor, activation: str
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """The gradient of sums of powers times slopes (order, d), some rows at a time.

    The derivative of Σ g_k (x − a)^k is a polynomial, in units of the scale of the row: of which
    rows, in what, with which terms.
    """
    orders = torch.arange(1, len(slopes) + 1, device=rows.device, dtype=pivot.dtype)
    slopes = slopes * orders[:, None] * scales.T ** (orders - 1)[:, None]
    if activation == "sigmoid":
        slopes = _times_slope_of_sigmoid(slopes, pivot)
    slopes = slopes.to(rows.dtype)
    for part in _parts(rows):
        u = _activated(rows[part], activation).sub_(_column(pivot, part, rows))
        if activation == "identity":
            u.div_(scales[part].to(u.dtype))
        yield part, u, slopes[:, part]


def _activated(rows: Tensor, activation: str) -> Tensor:
    """Some rows as (rows, n), in memory of their own."""
    u = torch.empty(rows.shape, dtype=rows.dtype, device=rows.device)
    if activation == "sigmoid":
        torch.sigmoid(rows, out=u)
    else:
        u.copy_(rows)
    return u.view(len(rows), -1)


def _sums_of_powers(u: Tensor, order: int) -> Tensor:
    """The sums of u^1 … u^order of every row: (order, rows)."""
    power, sums = u, [u.sum(1)]
    for k in range(2, order + 1):
        power = power * u if k == 2 else power.mul_(u)
        sums.append(power.sum(1))
    return torch.stack(sums)


def _times_slope_of_sigmoid(terms: Tensor, pivot: Tensor) -> Tensor:
    """The polynomial in u times v (1 − v), where v = u + a: (order + 2, rows)."""
    one, two = terms.new_zeros((1, terms.shape[1])), terms.new_zeros((2, terms.shape[1]))
    return (
        torch.cat([terms * pivot * (1 - pivot), two])
        + torch.cat([one, terms * (1 - 2 * pivot), one])
        - torch.cat([two, terms])
    )


def _polynomial(u: Tensor, terms: Tensor, out: Tensor) -> None:
    """The sum of terms[k]·u^k of every row, terms being (order, rows)."""
    *lower, highest = terms[..., None].unbind()
    out.copy_(highest.expand_as(out))
    for term in reversed(lower):  # Horner
        torch.addcmul(term, out, u, out=out)


def _scale(centered: Tensor, scales: Tensor) -> Tensor:
    """The largest value of each row, noted in ``scales``: powers of what is below 1 stay finite."""
    largest = centered.abs().amax(1, keepdim=True)
    scales.copy_(torch.where(largest > 0, largest, 1.0))
    return scales.to(centered.dtype)


def _column(pivot: Tensor, part: slice, like: Tensor) -> Tensor:
    return pivot[part, None].to(like.dtype)


def _parts(rows: Tensor) -> list[slice]:
    step = max(1, BLOCK // max(1, math.prod(rows.shape[1:])))
    return [slice(first, first + step) for first in range(0, rows.shape[0], step)]


def _wide(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64
