"""The style loss of Gatys et al. (2016)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from impasto.maths.linalg import flat
from impasto.types import Points


@dataclass(frozen=True)
class Gram:
    r"""Squared distance of Gram matrices, which are second moments that are *not* central.

    .. math:: \lVert X^\top X / n - Y^\top Y / m \rVert_F^2

    This is MMD² with the kernel (xᵀy)² (Li et al. 2017). Gatys et al. sum over positions and
    divide by 4 C² n²; dividing every Gram matrix by its own number of points frees it of size.
    """

    def summarize(self, points: Points) -> Tensor:
        """The Gram matrix (d, d)."""
        points = flat(points)
        return points.T @ points / len(points)

    def gather(self, points: Points, about: None) -> tuple[Tensor, ...]:
        """The sum of the products."""
        points = flat(points)
        return (points.T @ points,)

    def settle(self, sums: tuple[Tensor, ...], count: int, about: None) -> Tensor:
        """The Gram matrix (d, d)."""
        return sums[0] / count

    def pivot(self, points: Points) -> None:
        """None: these moments are about 0."""

    def spread(self, points: Points, about: None, slopes: tuple[Tensor, ...], onto: Points) -> None:
        """A linear map of the points."""
        onto += points @ (slopes[0] + slopes[0].T)

    def compare(self, image: Tensor, style: Tensor) -> Tensor:
        """The squared Frobenius norm of the difference."""
        return (image - style).square().sum()
