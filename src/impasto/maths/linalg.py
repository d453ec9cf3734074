"""Covariances and square roots of them, finite where they are singular."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from impasto.types import Points

RANK_TOLERANCE = 1e-12  # eigenvalues below this part of the largest are rounding, not variance

PART = 1 << 22  # numbers of many points that are worked on at a time


def flat(points: Points) -> Points:
    """Points (h, w, d) as (n, d), in memory as they were: by coordinate or by point."""
    if points.stride(-1) == 1:
        return points.flatten(0, -2)
    return points.movedim(-1, 0).flatten(1).T


def mean_and_covariance(points: Points, *, doubt: float = 0.0) -> tuple[Tensor, Tensor]:
    r"""The mean (d,) and the covariance (d, d) of the empirical law: divided by n, not n − 1.

    ``doubt`` weakens correlations that few points tell of, as :math:`doubt \cdot d` further points
    without any would: by :math:`n / (n + doubt \cdot d)` (shrinkage to the diagonal).
    """
    points = flat(points)
    mean = points.mean(0)
    centered = points - mean
    return mean, _doubted(centered.T @ centered / len(points), len(points), doubt)


def wide_mean_and_covariance(points: Points, *, doubt: float = 0.0) -> tuple[Tensor, Tensor]:
    """The same in double precision, of which only a part of the points is made at a time."""
    points = flat(points)
    parts = points.split(max(1, PART // points.shape[1]))
    mean = torch.stack([double(part).sum(0) for part in parts]).sum(0) / len(points)
    covariance = mean.new_zeros((len(mean), len(mean)))
    for part in parts:
        centered = double(part) - mean
        covariance += centered.T @ centered
    return mean, _doubted(covariance / len(points), len(points), doubt)


def _doubted(covariance: Tensor, count: int, doubt: float) -> Tensor:
    """A covariance that so many points tell of, its correlations weakened; it is used up."""
    if doubt:
        variances = covariance.diagonal().clone()
        covariance *= count / (count + doubt * len(variances))
        covariance.diagonal().copy_(variances)
    return covariance


def double(matrix: Tensor) -> Tensor:
    """The matrix in double precision, on the CPU where the device has none."""
    return matrix.to("cpu", torch.float64) if matrix.device.type == "mps" else matrix.double()


def eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, those of rounding set to 0, and eigenvectors of a covariance."""
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    floor = RANK_TOLERANCE * values[-1].clamp_min(0)
    return torch.where(values > floor, values, 0.0), vectors


def root(matrix: Tensor) -> Tensor:
    """The symmetric square root of a covariance."""
    values, vectors = eigen(matrix)
    return (vectors * values.sqrt()) @ vectors.T


def inverse_root(matrix: Tensor) -> Tensor:
    """The inverse of the square root on the range of a covariance, 0 on its kernel."""
    values, vectors = eigen(matrix)
    return (vectors * torch.where(values > 0, values, torch.inf).rsqrt()) @ vectors.T


def overlap(x: Tensor, y: Tensor, root_of_y: Tensor) -> Tensor:
    r"""The term of the Bures metric that couples two covariances.

    .. math:: \operatorname{tr} (y^{1/2} x y^{1/2})^{1/2}

    Its derivative in x is half the optimal map from N(0, x) to N(0, y), and the other way round.
    Where x is singular that map is taken to be 0 on the kernel: one of the subgradients.
    """
    return _Overlap.apply(x, y, root_of_y.detach())


class _Overlap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, root_of_y: Tensor) -> Tensor:
        values, vectors = eigen(root_of_y @ x @ root_of_y)
        ctx.save_for_backward(x, y, root_of_y, values, vectors)
        return values.sqrt().sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, y, root_of_y, values, vectors = ctx.saved_tensors
        half = gradients[0] / 2
        in_x = in_y = None
        if ctx.needs_input_grad[0]:
            outer = root_of_y @ vectors
            in_x = half * (outer * torch.where(values > 0, values, torch.inf).rsqrt()) @ outer.T
        if ctx.needs_input_grad[1]:
            root_of_x = root(x)
            in_y = half * root_of_x @ inverse_root(root_of_x @ y @ root_of_x) @ root_of_x
        return in_x, in_y, None
