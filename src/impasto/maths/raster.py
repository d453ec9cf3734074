"""Images as tensors (C, H, W): sizes and resampling."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def scaled(size: tuple[int, int], long_side: int) -> tuple[int, int]:
    """Height and width in proportion, the longer one as wanted, the other at least 1."""
    factor = long_side / max(size)
    height, width = (max(1, round(length * factor)) for length in size)
    return height, width


def resize(image: Tensor, size: tuple[int, int]) -> Tensor:
    """The image at another height and width, without aliasing, in [0, 1]."""
    if tuple(image.shape[-2:]) == tuple(size):
        return image
    resized = F.interpolate(image[None], size, mode="bicubic", antialias=True)[0]
    return resized.clamp(0, 1)


def fit(image: Tensor, long_side: int) -> Tensor:
    """The image with its longer side as wanted."""
    height, width = image.shape[-2:]
    return resize(image, scaled((height, width), long_side))


def crop(features: Tensor, margin: int) -> Tensor:
    """A map (1, C, H, W) without a margin on every side, as a view."""
    inside = slice(margin, -margin or None)
    return features[..., inside, inside]
