"""Images as tensors (C, H, W) and maps (1, C, H, W): sizes, resampling, places in memory."""

from __future__ import annotations

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
    return features[..., inside, inside]


def picked(features: Tensor, mask: Tensor) -> Tensor:
    """The positions of a map (1, C, H, W) that a mask (H, W) shows, as points (n, C)."""
    if is_interleaved(features):
        return features.squeeze(0).permute(1, 2, 0)[mask]
    return features.squeeze(0)[:, mask].T


def is_interleaved(features: Tensor) -> bool:
    """Whether a map lies in memory position by position, all channels of each side by side."""
    return features.shape[1] > 1 and features.stride(1) == 1


def laid(features: Tensor, interleaved: bool) -> Tensor:
    """The same map or kernel, position by position or channel by channel."""
    kind = torch.channels_last if interleaved else torch.contiguous_format
    return features.contiguous(memory_format=kind)


def blank(like: Tensor, size: tuple[int, int]) -> Tensor:
    """Memory for a map of another height and width that lies as one that there is."""
    return torch.empty(
        (*like.shape[:2], *size),
        dtype=like.dtype,
        device=like.device,
        memory_format=torch.channels_last if is_interleaved(like) else torch.contiguous_format,
    )
