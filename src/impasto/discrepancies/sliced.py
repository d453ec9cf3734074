"""Sliced Wasserstein distance: optimal transport of one-dimensional projections."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from impasto.maths.linalg import flat
from impasto.maths.transport import wasserstein_1d
from impasto.types import ImpastoError, Points


def directions(dimension: int, count: int, seed: int) -> Tensor:
    """Random directions of length 1: (count, dimension); the same for the same seed."""
    if not isinstance(count, int) or count < 1:
        raise ImpastoError(f"projections is {count}; it must be a whole number from 1 on")
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(count, dimension, generator=generator, dtype=torch.float64)
    return normal / torch.linalg.vector_norm(normal, dim=1, keepdim=True)


@dataclass(frozen=True, kw_only=True)
class SlicedWasserstein:
    r"""The mean of W₂² over random one-dimensional projections (Bonneel et al. 2015).

    .. math:: \frac{1}{p} \sum_{\theta} W_2^2(x \cdot \theta, y \cdot \theta)

    The two sides may have different numbers of points: the quantile functions are compared
    exactly. The directions are fixed by the seed, so that the distance is one function.
    """

    projections: int = 64
    seed: int = 0

    def summarize(self, points: Points) -> Tensor:
        """Sorted projections: (p, n)."""
        points = flat(points)
        theta = directions(points.shape[1], self.projections, self.seed).to(points)
        return (theta @ points.T).sort(dim=1).values

    def compare(self, image: Tensor, style: Tensor) -> Tensor:
        """The mean over the directions."""
        return wasserstein_1d(image, style).mean()
