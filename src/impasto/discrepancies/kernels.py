"""Maximum mean discrepancy (Gretton et al. 2012): by its double sum, and by mean embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from impasto.maths.linalg import flat
from impasto.recipe import KERNELS
from impasto.types import ImpastoError, Points

BLOCK = 1 << 22  # kernel values that exist at a time


class Kernel(NamedTuple):
    """k(x, y) for all rows of x and y (n, m), and k(x, x) for each row (n,)."""

    pairs: Callable[[Points, Points], Tensor]
    itself: Callable[[Points], Tensor]


def kernel_of(name: str, dimension: int, bandwidth: float) -> Kernel:
    """A kernel by name.

    A bandwidth of 0 is √d, the distance of points whose coordinates differ by about 1.
    """
    check_kernel(name, bandwidth)
    if name == "linear":
        return Kernel(lambda x, y: x @ y.T, lambda x: x.square().sum(1))
    if name == "polynomial":
        return Kernel(lambda x, y: (x @ y.T).square(), lambda x: x.square().sum(1).square())
    scale = -0.5 / (bandwidth**2 or dimension)

    def gaussian(x: Points, y: Points) -> Tensor:
        squares = x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T
        return (squares.clamp_min(0) * scale).exp()

    return Kernel(gaussian, lambda x: x.new_ones(len(x)))


def check_kernel(name: str, bandwidth: float) -> None:
    """Refuse what is no kernel."""
    if name not in KERNELS:
        raise ImpastoError(f"unknown kernel '{name}'; known: {', '.join(KERNELS)}")
    if not 0 <= bandwidth < float("inf"):
        raise ImpastoError(f"bandwidth is {bandwidth}; it must be finite and not negative")


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
        check_kernel(self.kernel, self.bandwidth)

    def summarize(self, points: Points) -> Points:
        """The points themselves: a double sum knows no smaller summary."""
        points = flat(points)
        if self.unbiased and len(points) < 2:
            raise ImpastoError("the unbiased estimate needs at least two points on each side")
        return points

    def compare(self, image: Points, style: Points) -> Tensor:
        """The three means."""
        kernel = kernel_of(self.kernel, image.shape[1], self.bandwidth)
        if self.kernel == "gaussian":
            # It does not see where the origin is; far from it squares of distances would cancel.
            origin = style.mean(0).detach()
            image, style = image - origin, style - origin
        value = self._within(kernel, image) + self._within(kernel, style)
        value = value - 2 * _sum(kernel, image, style) / (len(image) * len(style))
        return value if self.unbiased else value.clamp_min(0)  # rounding alone is negative

    def _within(self, kernel: Kernel, points: Points) -> Tensor:
        n, total = len(points), _sum(kernel, points, points)
        if not self.unbiased:
            return total / n**2
        return (total - kernel.itself(points).sum()) / (n * (n - 1))


def _sum(kernel: Kernel, x: Points, y: Points) -> Tensor:
    """The sum of k over all pairs; blocks of it are computed again for the gradient."""
    rows = max(1, BLOCK // len(y))
    total = x.new_zeros(())
    for part in x.split(rows):
        block = checkpoint(lambda a, b: kernel.pairs(a, b).sum(), part, y, use_reentrant=False)
        total = total + block
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

    def __post_init__(self) -> None:
        check_kernel(self.kernel, self.bandwidth)
        if self.features < 2:
            raise ImpastoError(f"features is {self.features}; it must be at least 2")

    def summarize(self, points: Points) -> Tensor:
        """The mean feature."""
        return self.settle(self.gather(points, None), math.prod(points.shape[:-1]), None)

    def gather(self, points: Points, about: None) -> tuple[Tensor, ...]:
        """The sum of the features."""
        points = flat(points)
        if self.kernel == "linear":
            return (points.sum(0),)
        if self.kernel == "polynomial":
            return (points.T @ points,)
        phase = points @ self._frequencies(points.shape[1]).to(points)
        return (torch.cat([phase.cos().sum(0), phase.sin().sum(0)]) / (self.features // 2) ** 0.5,)

    def settle(self, sums: tuple[Tensor, ...], count: int, about: None) -> Tensor:
        """The mean feature."""
        return sums[0] / count

    def pivot(self, points: Points) -> None:
        """None: features are about 0."""

    def compare(self, image: Tensor, style: Tensor) -> Tensor:
        """The squared distance."""
        return (image - style).square().sum()

    def _frequencies(self, dimension: int) -> Tensor:
        """Normal vectors of variance 1 / h²: (d, features / 2)."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = (dimension, self.features // 2)
        normal = torch.randn(shape, generator=generator, dtype=torch.float64)
        return normal / (self.bandwidth or dimension**0.5)
