"""Transfers that match two moments: affine maps, special cases of optimal transport."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from impasto.maths.linalg import double, inverse_root, mean_and_covariance, root
from impasto.maths.transport import gaussian_map
from impasto.types import Points


def adain(content: Points, style: Points) -> Callable[[Points], Points]:
    r"""Mean and deviation of every coordinate (Huang and Belongie 2017).

    .. math:: T(p) = \mu_y + \sigma_y (p - \mu_x) / \sigma_x

    The optimal map between Gaussians with diagonal covariances. A constant coordinate becomes the
    mean of the style.
    """
    x, y = double(content), double(style)
    deviation = x.std(0, correction=0)
    # What varies by rounding alone is constant.
    varies = deviation > torch.finfo(content.dtype).eps * x.abs().amax(0)
    scale = torch.where(varies, y.std(0, correction=0) / deviation, 0.0)
    return _affine(x.mean(0), torch.diag(scale), y.mean(0))


def wct(content: Points, style: Points, *, doubt: float = 0.0) -> Callable[[Points], Points]:
    r"""Whitening and coloring (Li et al. 2017).

    .. math:: T(p) = \mu_y + (p - \mu_x) \, \Sigma_x^{-1/2} \Sigma_y^{1/2}

    Where the content does not vary it is not stretched. The optimal map where Σ_x and Σ_y commute.
    """
    mean_x, covariance_x = mean_and_covariance(double(content), doubt=doubt)
    mean_y, covariance_y = mean_and_covariance(double(style), doubt=doubt)
    return _affine(mean_x, inverse_root(covariance_x) @ root(covariance_y), mean_y)


def ost(content: Points, style: Points, *, doubt: float = 0.0) -> Callable[[Points], Points]:
    """The optimal map between Gaussians: of all that match two moments, the one that moves least.

    Lu et al. 2019; the formula is at :func:`impasto.maths.transport.gaussian_map`.
    """
    return _affine(*gaussian_map(content, style, doubt=doubt))


def _affine(mean_x: Tensor, matrix: Tensor, mean_y: Tensor) -> Callable[[Points], Points]:
    offset = mean_y - mean_x @ matrix

    def move(points: Points) -> Points:
        a, b = (each.to(points.device, points.dtype) for each in (offset, matrix))
        # The points of a feature map lie in columns: nothing has to be copied.
        return torch.addmm(a[:, None], b.mT, points.mT).mT

    return move
