"""Moments of every coordinate of a sample, with their gradient in closed form.

An autograd graph would keep a full-size tensor per power. Here a part of the numbers at a time is
centered, raised and summed while it is in the cache, and the gradient is a polynomial. A part is a
few coordinates of all points, or all coordinates of a few points, as the sample lies in memory.
Sums of powers are sums over points: those of parts of a sample add up.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from impasto import native
from impasto.types import ImpastoError, Points

BLOCK = 1 << 20  # numbers that are worked on at a time: few enough for the cache, many for threads
ROW, STRETCHES = 64, 64  # of compiled loops: points of a row, and parts that workers share
WIDE = 1 << 13  # numbers of points side by side that are worked on as one row
SAMPLE = 1 << 10  # points that tell about where the mean is
GOLDEN = 0.618034  # whose multiples are nowhere dense and nowhere sparse, without their whole part
# Some processors take a hundred times as long for numbers below 1e-38. What has fallen below the
# root of that is 0 to the next powers, where there are many and they are in single precision.
FEW_POWERS, NOTHING = 8, 1e-19
SQUARES = 2  # the order up to which powers of all but huge numbers stay finite without a scale


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

    Where no pivot (d,) is given it is about the mean: the closer it is, the less is lost in
    :func:`centered`. The sums are differentiable in the points, the pivot is a constant.
    """
    if activation not in ("identity", "sigmoid"):
        raise ImpastoError(f"unknown activation '{activation}'; known: identity, sigmoid")
    return _PowerSums.apply(points, order, activation, about)


def pivot_of(points: Points, *, activation: str = "identity") -> Tensor:
    """About the mean of every coordinate: that of some thousand points from everywhere.

    Of a sample in rows and columns these are at irregular places, as a texture may repeat itself.
    """
    axes = tuple(range(points.ndim - 1))
    step = max(1, int((math.prod(points.shape[:-1]) / SAMPLE) ** (1 / max(1, len(axes)))))
    places = [_scattered(length, step, points.device) for length in points.shape[:-1]]
    few = points[torch.meshgrid(*places, indexing="ij")] if step > 1 else points
    mean = (few.sigmoid() if activation == "sigmoid" else few).mean(axes) if axes else few
    # Rounded as the points are, so that it is the same number wherever it is used.
    return mean.to(_wide(points))


def _scattered(length: int, step: int, device: torch.device) -> Tensor:
    """About every so manieth place of a row."""
    numbers = torch.arange(max(1, length // step), dtype=torch.float64)
    return (numbers * step + (numbers * GOLDEN).frac() * step).long().to(device)


def spread(
    points: Points, slopes: Tensor, *, activation: str = "identity", about: Tensor, onto: Points
) -> None:
    """Add to something the gradient in the points of their power sums times slopes (order, d).

    It is what autograd makes of :func:`power_sums`, for those who have taken the sums before.
    """
    pivot = about.to(points.dtype).to(slopes.dtype)
    scales = slopes.new_ones(len(pivot))
    if activation == "identity" and len(slopes) > SQUARES:
        scales = _scales(points, pivot)
    if _suits(points) and _suits(onto):
        _slopes_by_loops(points, slopes, pivot, scales, activation, onto, add=True)
        return
    for part, u, terms in _polynomials(points, slopes, pivot, scales, activation):
        gradient = torch.empty_like(u)
        _polynomial(u, terms, gradient)
        seen = part.of(onto)
        seen.add_(gradient.view(seen.shape))


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
        ctx: Any, points: Points, order: int, activation: str, about: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        sums = points.new_zeros((order, points.shape[-1]), dtype=_wide(points))
        pivot = pivot_of(points, activation=activation) if about is None else about
        pivot = pivot.to(points.dtype).to(sums.dtype)
        scales = sums.new_ones(len(pivot))
        if activation == "identity" and order > SQUARES:
            scales = _scales(points, pivot)
        powers = torch.arange(1, order + 1, device=points.device)[:, None]
        if _suits(points):
            sums = _sums_by_loops(points, order, pivot, scales, activation) * scales**powers
        for part in () if _suits(points) else _parts(points):
            u = part.centered(points, pivot, activation)
            if activation == "identity":
                u.div_(part.along(scales, u))
            found = part.folded(_sums_of_powers(u, order, part.axis).to(sums.dtype))
            sums[:, part.coordinates] += found * scales[part.coordinates] ** powers
        # The points are there anyway; what was made of them is made again on the way back, part
        # by part, for less than it costs to write it all to memory and to read it again.
        ctx.save_for_backward(points, pivot, scales)
        ctx.activation = activation
        ctx.mark_non_differentiable(pivot)
        return sums, pivot

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        points, pivot, scales = ctx.saved_tensors
        gradient = _dense_like(points)
        if _suits(points):
            _slopes_by_loops(points, gradients[0], pivot, scales, ctx.activation, gradient)
            return gradient, None, None, None
        for part, u, terms in _polynomials(points, gradients[0], pivot, scales, ctx.activation):
            _polynomial(u, terms, part.of(gradient).view(u.shape))
        return gradient, None, None, None


class _Part(NamedTuple):
    """Some numbers of a sample, as rows: of a coordinate each, or of points side by side."""

    coordinates: slice
    first: slice  # of the first axis of the points
    axis: int  # of the points: 1 where a row is a coordinate, 0 where it is some points
    dimension: int  # how many coordinates

    def of(self, points: Points) -> Tensor:
        """The part of a sample, coordinates first where they are the rows."""
        if self.axis:
            return points.movedim(-1, 0)[self.coordinates]
        return points[self.first]

    def activated(self, points: Points, activation: str) -> Tensor:
        """In memory of its own."""
        seen = self.of(points)
        u = torch.empty(seen.shape, dtype=seen.dtype, device=seen.device)
        if activation == "sigmoid":
            torch.sigmoid(seen, out=u)
        else:
            u.copy_(seen)
        if self.axis:
            return u.view(len(u), -1)
        count = u.numel() // self.dimension
        most = max(1, min(count, WIDE // self.dimension))
        return u.view(-1, self.dimension * next(k for k in range(most, 0, -1) if count % k == 0))

    def centered(self, points: Points, pivot: Tensor, activation: str) -> Tensor:
        """About a pivot."""
        u = self.activated(points, activation)
        return u.sub_(self.along(pivot, u))

    def along(self, values: Tensor, u: Tensor) -> Tensor:
        """Numbers (…, d) of the coordinates where they belong in rows."""
        values = values[..., self.coordinates].to(u.dtype)
        if self.axis:
            return values[..., None]
        return values.repeat((1,) * (values.ndim - 1) + (u.shape[1] // self.dimension,))[
            ..., None, :
        ]

    def folded(self, values: Tensor) -> Tensor:
        """Sums (order, …) over the rows' points, of every coordinate."""
        return values if self.axis else values.view(len(values), -1, self.dimension).sum(1)


def _parts(points: Points) -> Iterator[_Part]:
    """The parts of a sample, as it lies in memory."""
    dimension = points.shape[-1]
    whole = slice(None)
    if points.ndim > 1 and dimension > 1 and points.stride(-1) == 1:
        step = max(1, BLOCK // max(1, math.prod(points.shape[1:])))
        for first in range(0, len(points), step):
            yield _Part(whole, slice(first, first + step), 0, dimension)
    else:
        step = max(1, BLOCK // max(1, math.prod(points.shape[:-1])))
        for first in range(0, dimension, step):
            yield _Part(slice(first, first + step), whole, 1, dimension)


def _dense_like(points: Points) -> Tensor:
    """Memory for as many numbers, coordinate by coordinate or point by point as these."""
    if points.stride(-1) == 1:
        return torch.empty(points.shape, dtype=points.dtype, device=points.device)
    rows = points.movedim(-1, 0)
    return torch.empty(rows.shape, dtype=rows.dtype, device=rows.device).movedim(0, -1)


def _polynomials(
    points: Points, slopes: Tensor, pivot: Tensor, scales: Tensor, activation: str
) -> Iterator[tuple[_Part, Tensor, Tensor]]:
    """The gradient of sums of powers times slopes (order, d), a part at a time.

    The derivative of Σ g_k (x − a)^k is a polynomial, in units of the scale of the coordinate: of
    which part, in what, with which terms.
    """
    slopes = _terms(slopes, pivot, scales, activation).to(points.dtype)
    for part in _parts(points):
        u = part.centered(points, pivot, activation)
        if activation == "identity":
            u.div_(part.along(scales, u))
        yield part, u, part.along(slopes, u)


def _terms(slopes: Tensor, pivot: Tensor, scales: Tensor, activation: str) -> Tensor:
    orders = torch.arange(1, len(slopes) + 1, device=slopes.device, dtype=pivot.dtype)
    slopes = slopes * orders[:, None] * scales ** (orders - 1)[:, None]
    return _times_slope_of_sigmoid(slopes, pivot) if activation == "sigmoid" else slopes


class _Job(ctypes.Structure):
    """Of native/moments.c."""

    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ("points", "pivot", "scale", "terms", "sums", "onto")
        ),
        *(
            (name, ctypes.c_long)
            for name in (
                *("rows", "columns", "dimension", "order", "apart", "apart_onto"),
                *("stretch", "sigmoid", "add"),
            )
        ),
    ]


def _suits(points: Points) -> bool:
    """Whether there are compiled loops for a sample: point by point, in rows of any distance."""
    return (
        points.device.type == "cpu"
        and points.dtype == torch.float32
        and points.ndim in (2, 3)
        and points.numel() > 0
        and points.shape[-1] % native.MULTIPLE == 0
        and points.stride(-1) == 1
        and (points.ndim == 2 or points.stride(1) == points.shape[-1])
        and native.library() is not None
    )


def _in_rows(points: Points) -> tuple[int, int, int]:
    """How many rows of how many points, and how many numbers apart the rows are."""
    if points.ndim == 3:
        return points.shape[0], points.shape[1], points.stride(0)
    if points.stride(0) != points.shape[1]:
        return len(points), 1, points.stride(0)
    columns = math.gcd(len(points), ROW) if len(points) % ROW else ROW
    return len(points) // columns, columns, columns * points.shape[1]


def _sums_by_loops(
    points: Points, order: int, pivot: Tensor, scales: Tensor, activation: str
) -> Tensor:
    rows, columns, apart = _in_rows(points)
    stretch = max(1, -(-rows // STRETCHES))
    sums = pivot.new_zeros((-(-rows // stretch), order, points.shape[-1]))
    about, units = pivot.float(), _units(scales, activation)
    held = points, about, units, sums
    job = _Job(
        *(points.data_ptr(), about.data_ptr(), None if units is None else units.data_ptr()),
        *(None, sums.data_ptr(), None),
        *(rows, columns, points.shape[-1], order, apart, 0),
        *(stretch, activation == "sigmoid", False),
    )
    library = native.library()
    assert library is not None
    native.run(library.power_sums, job, *held)
    return sums.sum(0)


def _slopes_by_loops(
    points: Points,
    slopes: Tensor,
    pivot: Tensor,
    scales: Tensor,
    activation: str,
    onto: Points,
    *,
    add: bool = False,
) -> None:
    rows, columns, apart = _in_rows(points)
    if _in_rows(onto)[:2] != (rows, columns):  # rows of a point each
        rows, columns, apart = len(points), 1, points.stride(0)
    apart_onto = onto.stride(0) if points.ndim == 3 or columns == 1 else _in_rows(onto)[2]
    terms = _terms(slopes, pivot, scales, activation).float().contiguous()
    about, units = pivot.float(), _units(scales, activation)
    held = points, about, units, terms, onto
    job = _Job(
        *(points.data_ptr(), about.data_ptr(), None if units is None else units.data_ptr()),
        *(terms.data_ptr(), None, onto.data_ptr()),
        *(rows, columns, points.shape[-1], len(terms), apart, apart_onto),
        *(max(1, rows // STRETCHES), activation == "sigmoid", add),
    )
    library = native.library()
    assert library is not None
    native.run(library.power_slopes, job, *held)


def _units(scales: Tensor, activation: str) -> Tensor | None:
    return None if activation == "sigmoid" else (1 / scales).float()


def _sums_of_powers(u: Tensor, order: int, axis: int) -> Tensor:
    """The sums of u^1 … u^order over the points: (order, …)."""
    power, sums = u, [u.sum(axis)]
    for k in range(2, order + 1):
        power = power * u if k == 2 else power.mul_(u)
        sums.append(power.sum(axis))
        # Until it is squared again nothing that is left can fall so low.
        if order > FEW_POWERS and k & (k - 1) == 0 and u.dtype == torch.float32:
            torch.ops.aten.hardshrink.out(power, NOTHING, out=power)
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
    """The sum of terms[k]·u^k, terms being (order, …) as they belong to the rows of u."""
    *lower, highest = terms.unbind()
    out.copy_(highest.expand_as(out))
    for term in reversed(lower):  # Horner
        torch.addcmul(term, out, u, out=out)


def _scales(points: Points, pivot: Tensor) -> Tensor:
    """The largest distance of every coordinate from a pivot: powers of what is below 1 stay finite.

    1 where there is none.
    """
    largest = torch.zeros_like(pivot)
    for part in _parts(points):
        found = part.centered(points, pivot, "identity").abs_().amax(part.axis)
        if not part.axis:
            found = found.view(-1, part.dimension).amax(0)
        largest[part.coordinates] = torch.maximum(
            largest[part.coordinates], found.to(largest.dtype)
        )
    return torch.where(largest > 0, largest, 1.0)


def _wide(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64
