"""Optimal transport that has a closed form: on the line, and between Gaussians."""

from __future__ import annotations

import torch
from torch import Tensor

from impasto.maths.linalg import PART, inverse_root, root, wide_mean_and_covariance
from impasto.types import Points


def wasserstein_1d(x: Tensor, y: Tensor) -> Tensor:
    r"""W₂² between laws on the line, rows of sorted samples (p, n) and (p, m): (p,).

    .. math:: \int_0^1 (F_x^{-1}(u) - F_y^{-1}(u))^2 \, du

    Both quantile functions are steps; the integral is a sum over their common steps.
    """
    n, m = x.shape[1], y.shape[1]
    if n == m:
        return (x - y).square().mean(1)
    first, second, weight = _common_steps(n, m, x.device)
    return ((x[:, first] - y[:, second]).square() * weight.to(x.dtype)).sum(1)


def _common_steps(n: int, m: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Which samples meet on each common step of two quantile functions, and how long it is."""
    ends = torch.cat(
        [torch.arange(1, n + 1, device=device) * m, torch.arange(1, m + 1, device=device) * n]
    )
    ends = ends.unique()  # in units of 1 / (n m): whole numbers, so that nothing is lost
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    weight = (ends - starts).to(torch.float32 if device.type == "mps" else torch.float64) / (n * m)
    return starts // m, starts // n, weight


def gaussian_map(
    x: Points, y: Points, *, ridge: float = 0.0, doubt: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The optimal map between Gaussians with the moments of two samples (Dowson, Landau 1982).

    .. math:: T(p) = \mu_y + (p - \mu_x) A, \qquad
        A = \Sigma_x^{-1/2} (\Sigma_x^{1/2} \Sigma_y \Sigma_x^{1/2})^{1/2} \Sigma_x^{-1/2}

    Returns μ_x, A and μ_y in double precision. ``ridge`` is added to all variances: what varies
    less than this in x is noise, and is not stretched to the variance of y. ``doubt`` is that of
    :func:`impasto.maths.linalg.mean_and_covariance`.
    """
    mean_x, covariance_x = wide_mean_and_covariance(x, doubt=doubt)
    mean_y, covariance_y = wide_mean_and_covariance(y, doubt=doubt)
    floor = ridge * torch.eye(len(mean_x)).to(covariance_x)
    covariance_x, covariance_y = covariance_x + floor, covariance_y + floor
    inverse = inverse_root(covariance_x)
    # (Σx½ Σy Σx½)½ from the singular values of Σy½ Σx½: a product would square their range.
    _, values, right = torch.linalg.svd(root(covariance_y) @ root(covariance_x))
    return mean_x, inverse @ (right.mT * values) @ right @ inverse, mean_y


def transport_gaussian(points: Points, x: Points, y: Points, *, ridge: float = 0.0) -> Points:
    """The points moved by the optimal map from the Gaussian of x to that of y."""
    mean_x, matrix, mean_y = (each.to(points) for each in gaussian_map(x, y, ridge=ridge))
    moved = torch.empty_like(points)
    count = max(1, PART // points.shape[1])
    for before, after in zip(points.split(count), moved.split(count), strict=True):
        after.copy_((before - mean_x) @ matrix + mean_y)
    return moved
