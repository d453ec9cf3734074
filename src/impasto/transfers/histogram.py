"""All marginal moments at once: what CMD asks for as K grows without bound."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from impasto.maths.linalg import double
from impasto.types import Points


def histogram(content: Points, style: Points) -> Callable[[Points], Points]:
    r"""The distribution of every coordinate, by sorting.

    A point of rank r among n gets the mean of the style's quantile function over its share,

    .. math:: T(p) = n \int_{r/n}^{(r+1)/n} F_y^{-1}(u) \, du

    so that the numbers of points may differ and the mean is met exactly. Equal points share their
    ranks and stay equal.
    """
    ranked = content.T.contiguous().sort(1).values
    quantiles = double(style).T.contiguous().sort(1).values
    total = torch.cat([quantiles.new_zeros((len(quantiles), 1)), quantiles.cumsum(1)], 1)

    def integral(share: Tensor) -> Tensor:
        """Of the quantile function from 0 to a share in [0, 1], in units of 1/m."""
        place = share * quantiles.shape[1]
        whole = place.floor().long().clamp_max(quantiles.shape[1] - 1)
        return total.gather(1, whole) + (place - whole) * quantiles.gather(1, whole)

    def move(points: Points) -> Points:
        rows, count = points.T.contiguous(), ranked.shape[1]
        below = torch.searchsorted(ranked, rows)
        # A point that was not in the sample gets the share of the one above it.
        above = torch.searchsorted(ranked, rows, right=True).maximum(below + 1).clamp_max(count)
        below = below.clamp_max(count - 1)
        first, last = (double(each) / count for each in (below, above))
        mean = (integral(last) - integral(first)) / ((last - first) * quantiles.shape[1])
        return mean.to(points.device, points.dtype).T

    return move
