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
    inside = slice(margin, -margin or None)
    return window(features, inside, inside)


def window(features: Tensor, rows: slice, columns: slice) -> Tensor:
    """Some rows and columns of a map (1, C, H, W), as a view."""
    return _Window.apply(features, rows, columns)


class _Window(torch.autograd.Function):
    """Slicing twice would fill two maps with zeros on the way back; here only the rest is."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, rows: slice, columns: slice) -> Tensor:
        ctx.shape, ctx.place = features.shape, (rows, columns)
        return features[..., rows, columns]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,), (rows, columns) = gradients, ctx.place
        whole = gradient.new_empty(ctx.shape)
        top, bottom, _ = rows.indices(ctx.shape[-2])
        left, right, _ = columns.indices(ctx.shape[-1])
        for rest in (slice(None, top), slice(bottom, None)):
            whole[..., rest, :] = 0
        for rest in (slice(None, left), slice(right, None)):
            whole[..., rest] = 0
        whole[..., rows, columns] = gradient
        return whole, None, None
