"""Images as tensors (C, H, W): sizes and resampling."""

from __future__ import annotations

from typing import Any

import torch
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
    return _Crop.apply(features, margin) if margin else features


class _Crop(torch.autograd.Function):
    """Slicing twice would fill two maps with zeros on the way back; here only the margin is."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, margin: int) -> Tensor:
        ctx.margin = margin
        return features[..., margin:-margin, margin:-margin]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,), margin = gradients, ctx.margin
        height, width = (length + 2 * margin for length in gradient.shape[-2:])
        whole = gradient.new_empty((*gradient.shape[:-2], height, width))
        for edge in (slice(None, margin), slice(-margin, None)):
            whole[..., edge, :] = 0
            whole[..., edge] = 0
        whole[..., margin:-margin, margin:-margin] = gradient
        return whole, None
