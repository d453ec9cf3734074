"""How alike two images are, pixel by pixel and window by window."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.types import Image

LUMA = (0.299, 0.587, 0.114)


def ssim(x: Image, y: Image) -> float:
    """Structural similarity of the luma of two images (Wang et al. 2004), 1 where they agree.

    Gaussian window of deviation 1.5 and 11 pixels, constants 0.01² and 0.03², values in [0, 1].
    """
    weights = torch.tensor(LUMA, dtype=torch.float64)
    a, b = ((image.cpu().double() * weights[:, None, None]).sum(0) for image in (x, y))
    stack = torch.stack([a, b, a * a, b * b, a * b])
    mean_a, mean_b, square_a, square_b, product = _window(stack)
    variances = square_a - mean_a**2 + square_b - mean_b**2
    covariance = product - mean_a * mean_b
    c1, c2 = 0.01**2, 0.03**2
    numerator = (2 * mean_a * mean_b + c1) * (2 * covariance + c2)
    return (numerator / ((mean_a**2 + mean_b**2 + c1) * (variances + c2))).mean().item()


def _window(maps: Tensor) -> Tensor:
    """Local means (5, H − 10, W − 10), where the window lies inside the image."""
    at = torch.arange(-5, 6, dtype=maps.dtype)
    kernel = (-(at**2) / (2 * 1.5**2)).exp()
    kernel = kernel / kernel.sum()
    columns = F.conv2d(maps[:, None], kernel[None, None, :, None])
    return F.conv2d(columns, kernel[None, None, None, :])[:, 0]
