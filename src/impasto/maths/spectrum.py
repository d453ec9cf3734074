r"""An image (3, H, W) by bands of frequency, each of light and of two opponent colors.

What a change of an image does to a loss depends first of all on how fine it is and on whether it
is one of light or of color. Bands are two thirds of an octave wide, by cycles per pixel, so that
they mean the same at every size.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

BANDS, PER_OCTAVE = 14, 1.5
FINEST = math.sqrt(0.5)  # cycles per pixel, along the diagonal
OPPONENTS = tuple(
    tuple(part / math.hypot(*color) for part in color)
    for color in ((1.0, 1.0, 1.0), (1.0, -1.0, 0.0), (1.0, 1.0, -2.0))
)  # light, red against green, yellow against blue: orthonormal


def energies(image: Tensor) -> Tensor:
    """The squared norm in every band: (3, BANDS), in double precision; in all, that of the image.

    A plane at a time, so that of a large image little is there at once.
    """
    height, width = image.shape[1:]
    bands = _bands(height, width, image.device).flatten()
    found = []
    for weights in OPPONENTS:
        squares = torch.view_as_real(_spectrum(image, weights)).square_().sum(-1)
        squares[:, 1 : (width + 1) // 2] *= 2  # of real numbers half is kept
        found.append(torch.bincount(bands, squares.flatten().to(_wide(image)), minlength=BANDS))
    return torch.stack(found)


def reweighted(image: Tensor, factors: Tensor) -> Tensor:
    """The image with its bands multiplied by factors (3, BANDS)."""
    size = image.shape[1], image.shape[2]
    bands = _bands(*size, image.device).flatten()
    total = torch.zeros_like(image, dtype=_plane(image, OPPONENTS[0]).dtype)
    for weights, row in zip(OPPONENTS, factors, strict=True):
        spectrum = _spectrum(image, weights)
        spectrum *= row.to(total.dtype).index_select(0, bands).view(spectrum.shape)
        plane = torch.fft.irfft2(spectrum, s=size, norm="ortho")
        for part, weight in zip(total, weights, strict=True):
            part.add_(plane, alpha=weight)
    return total


def _spectrum(image: Tensor, weights: tuple[float, ...]) -> Tensor:
    return torch.fft.rfft2(_plane(image, weights), norm="ortho")


def _plane(image: Tensor, weights: tuple[float, ...]) -> Tensor:
    """One opponent color, in single precision at least."""
    kind = torch.promote_types(image.dtype, torch.float32)
    plane = torch.zeros(image.shape[1:], dtype=kind, device=image.device)
    for part, weight in zip(image, weights, strict=True):
        plane.add_(part, alpha=weight)
    return plane


def _bands(height: int, width: int, device: torch.device) -> Tensor:
    """The band of every frequency: (H, W // 2 + 1). The mean is with the coarsest that there is."""
    down = torch.fft.fftfreq(height, device=device)[:, None]
    across = torch.fft.rfftfreq(width, device=device)
    radius = (down.square() + across.square()).sqrt_().clamp_min_(1 / max(height, width))
    return (radius.div_(FINEST).log2_() * -PER_OCTAVE).clamp_(0, BANDS - 1).to(torch.int32)


def _wide(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64
