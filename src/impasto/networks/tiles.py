r"""Winograd's convolution (Lavin and Gray 2016) by matrix products, F(4 × 4, 3 × 3).

An output tile of 4 × 4 comes from an input tile of 6 × 6 by 36 products instead of 144:

.. math:: Y = A^\top \left[ (G g G^\top) \odot (B^\top d B) \right] A

Summed over channels, the products are 36 matrix products. The kernel is transformed once and
serves the gradient too: that is the convolution with the flipped kernel, whose values at the
points of the interpolation are those of the kernel at their inverses, and the points are closed
under inversion.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.maths.raster import is_interleaved

OUT, IN = 4, 6  # sides of the tiles
POINTS = (0.0, 1.0, -1.0, 2.0, 0.5)  # of the interpolation, and infinity
INVERSES = (5, 1, 2, 4, 3, 0)  # where the inverse of each of these is
ONE = IN + 1  # of the 36 products the one at (1, 1), which is added to every output alike


class _Steps(NamedTuple):
    """The linear steps before and after the products, each for a tile flattened."""

    data: Tensor  # (36, 36)
    output: Tensor  # (16, 36)


def transform(weight: Tensor) -> Tensor:
    """A kernel (K, C, 3, 3) as 36 matrices (36, K, C)."""
    kernel = _both_ways(_evaluations(3)).to(weight)
    flat = kernel @ weight.permute(2, 3, 0, 1).reshape(kernel.shape[1], -1)
    return flat.view(-1, *weight.shape[:2])


def convolve(matrices: Tensor, bias: Tensor, x: Tensor, edges: tuple[int, int]) -> Tensor:
    """Rows of a map (1, C, H, W) convolved: (1, K, H + above + below - 2, W).

    Left and right of them are zeros, and so many rows of zeros are above and below.
    """
    return _convolve(x, _there(), matrices.transpose(1, 2), bias, edges)


def convolve_back(matrices: Tensor, gradient: Tensor, edges: tuple[int, int]) -> Tensor:
    """The same by the flipped kernel: the gradient in what was convolved."""
    return _convolve(gradient, _back(), matrices, None, edges)


def _convolve(
    x: Tensor, steps: _Steps, matrices: Tensor, bias: Tensor | None, edges: tuple[int, int]
) -> Tensor:
    above, below = edges
    height, width = x.shape[2] + above + below - 2, x.shape[3]
    down, across = -(-height // OUT), -(-width // OUT)
    lower, right = down * OUT - height, across * OUT - width
    padded = F.pad(x, (1, 1 + right, above, below + lower))[0].permute(1, 2, 0)
    row, column, channel = padded.stride()
    windows = padded.as_strided(
        (IN, IN, down, across, x.shape[1]), (row, column, OUT * row, OUT * column, channel)
    )
    seen = (steps.data.to(x) @ windows.reshape(IN * IN, -1)).view(IN * IN, -1, x.shape[1])
    products = torch.bmm(seen, matrices)
    del windows, padded, seen
    if bias is not None:
        products[ONE] += bias
    made = (steps.output.to(x) @ products.flatten(1)).view(OUT, OUT, down, across, -1)
    del products
    # In memory as it came: position by position or channel by channel.
    size = down * OUT, across * OUT
    if is_interleaved(x):
        placed = made.permute(2, 0, 3, 1, 4).reshape(1, *size, -1).movedim(-1, 1)
    else:
        placed = made.permute(4, 2, 0, 3, 1).reshape(1, -1, *size)
    return placed[:, :, :height, :width]


@functools.cache
def _there() -> _Steps:
    """Toom's and Cook's interpolation."""
    data = torch.linalg.inv(_evaluations(IN)).T
    return _Steps(_both_ways(data), _both_ways(_evaluations(OUT).T))


@functools.cache
def _back() -> _Steps:
    """The same at the inverses of the points: the kernel (1, p, p²) is p² (1, 1/p, 1/p²) there."""
    inverses = list(INVERSES)
    factors = torch.tensor([1.0, *(p * p for p in POINTS[1:]), 1.0], dtype=torch.float64)
    data = factors[:, None] * torch.linalg.inv(_evaluations(IN)).T
    return _Steps(_both_ways(data[inverses]), _both_ways(_evaluations(OUT).T[:, inverses]))


def _evaluations(degree: int) -> Tensor:
    """The powers of the points below a degree; at infinity the highest counts alone."""
    powers = torch.tensor(POINTS, dtype=torch.float64)[:, None] ** torch.arange(degree)
    return torch.cat([powers, torch.eye(degree, dtype=torch.float64)[-1:]])


def _both_ways(matrix: Tensor) -> Tensor:
    return torch.kron(matrix.contiguous(), matrix.contiguous())
