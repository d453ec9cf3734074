"""Moments of every coordinate of a sample, with their gradient in closed form.

An autograd graph would keep a full-size tensor per power. Here a few coordinates at a time are
centered, raised and summed while they are in the cache, and the gradient is a polynomial.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from impasto.types import ImpastoError, Points

BLOCK = 1 << 18  # numbers that are worked on at a time: they and their powers fit into the cache


def central_moments(points: Points, order: int, *, activation: str = "identity") -> Tensor:
    r"""The mean and the central moments 2 … order of every coordinate: (order, d).

    .. math:: c_1 = E[x], \qquad c_k = E[(x - c_1)^k]

    ``activation`` is applied to the points first: ``identity`` or ``sigmoid``.
    The result is in double precision where the device has it: c_50 is small.
    """
    if activation not in ("identity", "sigmoid"):
        raise ImpastoError(f"unknown activation '{activation}'; known: identity, sigmoid")
    return _CentralMoments.apply(points.T, order, activation)


class _CentralMoments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: int, activation: str) -> Tensor:
        moments = rows.new_empty((order, rows.shape[0]), dtype=_wide(rows))
        scales = moments.new_ones((rows.shape[0], 1))
        for part in _parts(rows):
            x = _activate(rows[part], activation)
            mean = x.mean(1, keepdim=True)
            x = x.sub_(mean) if activation == "sigmoid" else x - mean
            # The mean is rounded once; what is left of it belongs to the first moment.
            rest = x.mean(1, keepdim=True)
            moments[0, part] = (mean.to(moments.dtype) + rest)[:, 0]
            x = x.sub_(rest)
            if activation == "identity":
                x = x.div_(_scale(x, scales[part]))
            power = x.clone() if order > 1 else x
            for k in range(2, order + 1):
                mean_power = power.mul_(x).mean(1).to(moments.dtype)
                moments[k - 1, part] = mean_power * scales[part, 0] ** k
        ctx.save_for_backward(rows, moments, scales)
        ctx.activation = activation
        return moments

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        rows, moments, scales = ctx.saved_tensors
        coefficients = _slope_polynomial(moments, gradients[0]) / rows.shape[1]
        degrees = torch.arange(len(moments), device=rows.device, dtype=moments.dtype)
        coefficients *= scales.T ** degrees[:, None]
        gradient = torch.empty_like(rows)
        for part in _parts(rows):
            value = _activate(rows[part], ctx.activation)
            x = value - moments[0, part, None].to(rows.dtype)
            if ctx.activation == "identity":
                x = x.div_(scales[part].to(rows.dtype))
            terms = coefficients[:, part, None].to(rows.dtype)
            slope = torch.zeros_like(x) + terms[-1]
            for term in terms[:-1].flip(0):  # Horner
                slope.mul_(x).add_(term)
            if ctx.activation == "sigmoid":
                slope.mul_(value).mul_(value.neg_().add_(1))
            gradient[part] = slope
        return gradient, None, None


def _scale(centered: Tensor, scales: Tensor) -> Tensor:
    """The largest value of each row, noted in ``scales``: powers of what is below 1 stay finite."""
    largest = centered.abs().amax(1, keepdim=True)
    scales.copy_(torch.where(largest > 0, largest, 1.0))
    return scales.to(centered.dtype)


def _slope_polynomial(moments: Tensor, gradient: Tensor) -> Tensor:
    """Coefficients in u = x − c_1 of the derivative in x of <gradient, moments>, times n.

    n ∂c_k/∂x = k (u^(k−1) − c_(k−1)), where the centered first moment is 0; n ∂c_1/∂x = 1.
    """
    orders = torch.arange(1, len(moments) + 1, device=moments.device, dtype=moments.dtype)
    weighted = gradient * orders[:, None]
    before = moments[:-1].clone()
    before[:1] = 0
    constant = gradient[0] - (weighted[1:] * before).sum(0)
    return torch.cat([constant[None], weighted[1:]])


def _parts(rows: Tensor) -> list[slice]:
    step = max(1, BLOCK // max(1, rows.shape[1]))
    return [slice(first, first + step) for first in range(0, rows.shape[0], step)]


def _activate(rows: Tensor, activation: str) -> Tensor:
    return torch.sigmoid(rows) if activation == "sigmoid" else rows


def _wide(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64
