"""Optimal transport between the Gaussians that two samples suggest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from impasto.maths.linalg import double, flat, mean_and_covariance, overlap, root
from impasto.types import Points


@dataclass(frozen=True)
class Gaussian:
    """The first two moments, in double precision."""

    mean: Tensor  # (d,)
    covariance: Tensor  # (d, d)

    @cached_property
    def root(self) -> Tensor:
        """The square root of the covariance: of the style it is computed once."""
        return root(self.covariance.detach())


@dataclass(frozen=True)
class GaussianTransport:
    r"""W₂² between Gaussians with full covariances: eq. 8 of the paper.

    .. math:: \lVert \mu_x - \mu_y \rVert^2 + \operatorname{tr}\left(\Sigma_x + \Sigma_y
        - 2 (\Sigma_x^{1/2} \Sigma_y \Sigma_x^{1/2})^{1/2}\right)

    Value and gradient are finite for singular covariances: see ``impasto.maths.linalg.overlap``.
    """

    def summarize(self, points: Points) -> Gaussian:
        """Mean and covariance."""
        mean, covariance = mean_and_covariance(points)
        return Gaussian(double(mean), double(covariance))

    def gather(self, points: Points, about: Tensor) -> tuple[Tensor, ...]:
        """Sums and sums of products about a pivot."""
        centered = flat(points) - about.to(points)
        return double(centered.sum(0)), double(centered.T @ centered)

    def settle(self, sums: tuple[Tensor, ...], count: int, about: Tensor) -> Gaussian:
        """Mean and covariance."""
        shift = sums[0] / count
        return Gaussian(double(about) + shift, sums[1] / count - torch.outer(shift, shift))

    def pivot(self, points: Points) -> Tensor:
        """The mean."""
        return flat(points).detach().mean(0)

    def compare(self, image: Gaussian, style: Gaussian) -> Tensor:
        """The squared distance; rounding must not make it negative."""
        means = (image.mean - style.mean).square().sum()
        traces = image.covariance.trace() + style.covariance.trace()
        coupled = overlap(image.covariance, style.covariance, style.root)
        return means + (traces - 2 * coupled).clamp_min(0)
