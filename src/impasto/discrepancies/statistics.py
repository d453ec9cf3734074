"""Means and standard deviations: the batch-normalization loss of Li et al. (2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from impasto.maths.moments import centered, central_moments, pivot_of, power_sums, spread
from impasto.types import ImpastoError, Points


class Statistics(NamedTuple):
    """Of every coordinate."""

    mean: Tensor  # (d,)
    deviation: Tensor  # (d,)


@dataclass(frozen=True, kw_only=True)
class MeanDeviation:
    r"""Squared distance of the means and of the standard deviations of every coordinate.

    .. math:: \sum_i (\mu_i(x) - \mu_i(y))^2 + (\sigma_i(x) - \sigma_i(y))^2

    This is W₂² between Gaussians with diagonal covariances.
    """

    eps: float = 1e-12  # added to the variance: the root has no finite slope at 0

    def __post_init__(self) -> None:
        if not 0 <= self.eps < float("inf"):
            raise ImpastoError(f"eps is {self.eps}; it must be finite and not negative")

    def summarize(self, points: Points) -> Statistics:
        """Means and deviations."""
        return self._statistics(central_moments(points, 2))

    def gather(self, points: Points, about: Tensor) -> tuple[Tensor, ...]:
        """Sums and sums of squares."""
        return power_sums(points, 2, about=about)[:1]

    def settle(self, sums: tuple[Tensor, ...], count: int, about: Tensor) -> Statistics:
        """Means and deviations."""
        return self._statistics(centered(sums[0] / count, about))

    def pivot(self, points: Points) -> Tensor:
        """About the mean."""
        return pivot_of(points.detach())

    def spread(
        self, points: Points, about: Tensor, slopes: tuple[Tensor, ...], onto: Points
    ) -> None:
        """A linear function of every coordinate."""
        spread(points, slopes[0], about=about, onto=onto)

    def _statistics(self, moments: Tensor) -> Statistics:
        # A variance from sums may be negative by rounding.
        return Statistics(moments[0], (moments[1].clamp_min(0) + self.eps).sqrt())

    def compare(self, image: Statistics, style: Statistics) -> Tensor:
        """The sum of the squares."""
        return (image.mean - style.mean).square().sum() + (
            image.deviation - style.deviation
        ).square().sum()
