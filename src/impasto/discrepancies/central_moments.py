"""Central moment discrepancy: of the coordinates, and of random projections."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from impasto.discrepancies.sliced import directions
from impasto.maths.linalg import flat
from impasto.maths.moments import centered, central_moments, pivot_of, power_sums, spread
from impasto.types import ImpastoError, Points


@dataclass(frozen=True, kw_only=True)
class CentralMoments:
    r"""Distance between the marginal central moments of two laws (Zellinger et al. 2017).

    .. math:: \sum_{i=1}^{K} a_i \lVert c_i(x) - c_i(y) \rVert_2

    Domain: any; on [0, 1] the terms fall with i and the sum is a metric as K grows. The style
    loss of Kalischek et al. (2021) gets there by a sigmoid, here the ``activation``.
    """

    order: int = 5  # K
    weights: tuple[float, ...] = ()  # a_1 … a_K; empty: all 1
    activation: str = "identity"

    def __post_init__(self) -> None:
        check_orders(self.order, self.weights)

    def summarize(self, points: Points) -> Tensor:
        """Moments, a row per order: (K, d)."""
        return central_moments(points, self.order, activation=self.activation)

    def gather(self, points: Points, about: Tensor) -> tuple[Tensor, ...]:
        """Sums of powers."""
        return power_sums(points, self.order, activation=self.activation, about=about)[:1]

    def settle(self, sums: tuple[Tensor, ...], count: int, about: Tensor) -> Tensor:
        """Moments, a row per order: (K, d)."""
        return centered(sums[0] / count, about)

    def pivot(self, points: Points) -> Tensor:
        """About the mean, as the points are rounded."""
        return pivot_of(points.detach(), activation=self.activation)

    def spread(
        self, points: Points, about: Tensor, slopes: tuple[Tensor, ...], onto: Points
    ) -> None:
        """A polynomial of the points."""
        spread(points, slopes[0], activation=self.activation, about=about, onto=onto)

    def compare(self, image: Tensor, style: Tensor) -> Tensor:
        """The weighted sum of the norms.

        ``vector_norm`` has slope 0 where two moments agree, so that the gradient is finite there.
        """
        norms = torch.linalg.vector_norm(image - style, dim=1)
        return norms @ norms.new_tensor(self.weights or (1.0,) * self.order)


@dataclass(frozen=True, kw_only=True)
class JointCentralMoments:
    r"""Central moment discrepancy of one-dimensional projections x·θ.

    Marginal moments do not see how coordinates depend on each other; the moments of all
    projections determine a compactly supported law (Cramér and Wold 1936). The norm over p
    directions is scaled by √(d/p), so that with the unit vectors as directions it is ``cmd``.
    """

    order: int = 5
    weights: tuple[float, ...] = ()
    projections: int = 64
    seed: int = 0
    activation: str = "identity"

    def __post_init__(self) -> None:
        check_orders(self.order, self.weights)

    def summarize(self, points: Points) -> Tensor:
        """Moments of the projections, scaled: (K, p)."""
        moments = central_moments(self._project(points), self.order)
        return (points.shape[-1] / self.projections) ** 0.5 * moments

    def gather(self, points: Points, about: tuple[Tensor, int]) -> tuple[Tensor, ...]:
        """Sums of powers of the projections."""
        return power_sums(self._project(points), self.order, about=about[0])[:1]

    def settle(self, sums: tuple[Tensor, ...], count: int, about: tuple[Tensor, int]) -> Tensor:
        """Moments of the projections, scaled: (K, p)."""
        mean, dimension = about
        return (dimension / self.projections) ** 0.5 * centered(sums[0] / count, mean)

    def pivot(self, points: Points) -> tuple[Tensor, int]:
        """About the mean of the projections, and the dimension."""
        return pivot_of(self._project(points.detach())), points.shape[-1]

    def _project(self, points: Points) -> Points:
        points = flat(points)
        if self.activation == "sigmoid":
            points = torch.sigmoid(points)
        elif self.activation != "identity":
            raise ImpastoError(f"unknown activation '{self.activation}'; known: identity, sigmoid")
        theta = directions(points.shape[1], self.projections, self.seed).to(points)
        return (theta @ points.T).T

    def compare(self, image: Tensor, style: Tensor) -> Tensor:
        """The weighted sum of the norms."""
        return CentralMoments(order=self.order, weights=self.weights).compare(image, style)


def check_orders(order: int, weights: tuple[float, ...]) -> None:
    """Refuse an order below 1, and weights that are negative or of another number."""
    if not isinstance(order, int) or order < 1:
        raise ImpastoError(f"order is {order}; it must be a whole number from 1 on")
    if weights and len(weights) != order:
        raise ImpastoError(f"weights has {len(weights)} numbers, order is {order}")
    if any(not 0 <= weight < float("inf") for weight in weights):
        raise ImpastoError(f"weights must be finite and not negative: {weights}")
