r"""Winograd's convolution (Lavin and Gray 2016) by matrix products, F(4 × 4, 3 × 3).

An output tile of 4 × 4 comes from an input tile of 6 × 6 by 36 products instead of 144:

.. math:: Y = A^\top \left[ (G g G^\top) \odot (B^\top d B) \right] A

Summed over channels, the products are 36 matrix products. The kernel is transformed once and
serves the gradient too, which is the transpose of each of these linear steps.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

OUT, IN = 4, 6  # sides of the tiles
POINTS = (0.0, 1.0, -1.0, 2.0, -2.0)  # of the interpolation, and infinity


def transform(weight: Tensor) -> Tensor:
    """A kernel (K, C, 3, 3) as 36 matrices (36, K, C)."""
    _, kernel, _ = _matrices()
    flat = kernel @ weight.double().permute(2, 3, 0, 1).reshape(kernel.shape[1], -1)
    return flat.to(weight.dtype).view(-1, *weight.shape[:2])


def convolve(x: Tensor, matrices: Tensor) -> Tensor:
    """x (1, C, H, W) convolved, zero-padded to its own size."""
    height, width = x.shape[2:]
    down, across = -(-height // OUT), -(-width // OUT)
    data, _, output = (each.to(x) for each in _matrices())
    padded = F.pad(x[0], (1, across * OUT + 1 - width, 1, down * OUT + 1 - height))
    plane, row, column = padded.stride()
    windows = padded.as_strided(
        (IN, IN, x.shape[1], down, across), (row, column, plane, OUT * row, OUT * column)
    )
    seen = (data @ windows.reshape(IN * IN, -1)).view(IN * IN, x.shape[1], -1)
    made = output @ torch.bmm(matrices, seen).flatten(1)
    made = made.view(OUT, OUT, -1, down, across).permute(2, 3, 0, 4, 1)
    return made.reshape(1, -1, down * OUT, across * OUT)[..., :height, :width].contiguous()


def convolve_back(gradient: Tensor, matrices: Tensor) -> Tensor:
    """The gradient in x from that in the result: every step of :func:`convolve` transposed."""
    height, width = gradient.shape[2:]
    down, across = -(-height // OUT), -(-width // OUT)
    data, _, output = (each.to(gradient) for each in _matrices())
    padded = F.pad(gradient[0], (0, across * OUT - width, 0, down * OUT - height))
    parts = padded.view(-1, down, OUT, across, OUT).permute(2, 4, 0, 1, 3)
    made = (output.T @ parts.reshape(OUT * OUT, -1)).view(IN * IN, len(padded), -1)
    seen = data.T @ torch.bmm(matrices.transpose(1, 2), made).flatten(1)
    windows = seen.view(IN, IN, -1, down, across)
    # Windows overlap by two: each of the 36 places is added where it came from.
    total = gradient.new_zeros((windows.shape[2], down + 1, OUT, across + 1, OUT))
    for i in range(IN):
        for j in range(IN):
            lower, right = i // OUT, j // OUT
            total[:, lower : lower + down, i % OUT, right : right + across, j % OUT] += windows[
                i, j
            ]
    whole = total.view(1, -1, (down + 1) * OUT, (across + 1) * OUT)
    return whole[..., 1 : 1 + height, 1 : 1 + width].contiguous()


@functools.cache
def _matrices() -> tuple[Tensor, Tensor, Tensor]:
    """Of the data, the kernel and the output, each for a tile flattened (Toom and Cook)."""

    def evaluations(degree: int) -> Tensor:
        points = torch.tensor(POINTS, dtype=torch.float64)
        powers = points[:, None] ** torch.arange(degree)
        infinity = torch.eye(degree, dtype=torch.float64)[-1:]
        return torch.cat([powers, infinity])

    def both_ways(matrix: Tensor) -> Tensor:
        return torch.kron(matrix.contiguous(), matrix.contiguous())

    data = torch.linalg.inv(evaluations(IN)).T
    return both_ways(data), both_ways(evaluations(3)), both_ways(evaluations(OUT).T)
