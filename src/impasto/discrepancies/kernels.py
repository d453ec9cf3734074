"""Maximum mean discrepancy (Gretton et al. 2012): by its double sum, and by mean embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from impasto.types import ImpastoError, Points

BLOCK = 1 << 22  # kernel values that exist at a time


def kernel_function(name: str, dimension: int, bandwidth: float) -> Callable[..., Tensor]:
    """k(x, y) for rows of x and y: (n, m).

    A bandwidth of 0 is √d, the distance of points whose coordinates differ by about 1.
    """
    if name == "linear":
        return lambda x, y: x @ y.T
    if name == "polynomial":
        return lambda x, y: (x @ y.T).square()
    if name == "gaussian":
        scale = -0.5 / (bandwidth**2 or dimension)

        def gaussian(x: Tensor, y: Tensor) -> Tensor:
            squares = x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T
            return (squares.clamp_min(0) * scale).exp()

        return gaussian
    raise ImpastoError(f"unknown kernel '{name}'; known: linear, polynomial, gaussian")


@dataclass(frozen=True, kw_only=True)
class KernelMeans:
    r"""MMD² by its definition, with every pair of points, in bounded memory.

    .. math:: E\,k(x, x') + E\,k(y, y') - 2 E\,k(x, y)

    Kernels: xᵀy, (xᵀy)², and exp(−‖x − y‖² / 2h²). ``unbiased`` leaves out the pairs of a point
    with itself; that estimate can be negative. Time grows with the product of the numbers of
    points; :class:`MeanEmbedding` is the same in linear time.
    """

    kernel: str = "gaussian"
    bandwidth: float = 0.0  # h of the Gaussian; 0: √d
    unbiased: bool = False

    def __post_init__(self) -> None:
        kernel_function(self.kernel, 1, self.bandwidth)

    def summarize(self, points: Points) -> Points:
        """The points themselves: a double sum knows no smaller summary."""
        if self.unbiased and len(points) < 2:
            raise ImpastoError("the unbiased estimate needs at least two points on each side")
        return points

    def compare(self, image: Points, style: Points) -> Tensor:
        """The three means."""
        function = kernel_function(self.kernel, image.shape[1], self.bandwidth)
        value = self._within(function, image) + self._within(function, style)
        value = value - 2 * _sum(function, image, style) / (len(image) * len(style))
        return value if self.unbiased else value.clamp_min(0)  # rounding alone is negative

    def _within(self, function: Callable[..., Tensor], points: Points) -> Tensor:
        n = len(points)
        total = _sum(function, points, points)
        if not self.unbiased:
            return total / n**2
        itself = sum(function(point[None], point[None])[0, 0] for point in points)
        return (total - itself) / (n * (n - 1))


def _sum(function: Callable[..., Tensor], x: Points, y: Points) -> Tensor:
    """The sum of k over all pairs; blocks of it are computed again for the gradient."""
    rows = max(1, BLOCK // len(y))
    total = x.new_zeros(())
    for part in x.split(rows):
        total = total + checkpoint(lambda a, b: function(a, b).sum(), part, y, use_reentrant=False)
    return total


@dataclass(frozen=True, kw_only=True)
class MeanEmbedding:
    r"""MMD² as the distance of mean features, in time linear in the points.

    .. math:: \lVert E\,\varphi(x) - E\,\varphi(y) \rVert^2

    φ is exact for the linear kernel (x) and the polynomial one (x xᵀ); for the Gaussian it is
    cos and sin at random frequencies (Rahimi and Recht 2007), an unbiased estimate of k.
    """

    kernel: str = "gaussian"
    bandwidth: float = 0.0
    features: int = 512
    seed: int = 0

    def summarize(self, points: Points) -> Tensor:
        """The mean feature."""
        if self.kernel == "linear":
            return points.mean(0)
        if self.kernel == "polynomial":
            return points.T @ points / len(points)
        dimension = points.shape[1]
        phase = points @ self._frequencies(dimension).to(points)
        waves = torch.cat([phase.cos().mean(0), phase.sin().mean(0)])
        return waves / (self.features // 2) ** 0.5

    def compare(self, image: Tensor, style: Tensor) -> Tensor:
        """The squared distance."""
        return (image - style).square().sum()

    def _frequencies(self, dimension: int) -> Tensor:
        """Normal vectors of variance 1 / h²: (d, features / 2)."""
        generator = torch.Generator().manual_seed(self.seed)
        half = max(1, self.features // 2)
        normal = torch.randn(dimension, half, generator=generator, dtype=torch.float64)
        return normal / (self.bandwidth or dimension**0.5)
