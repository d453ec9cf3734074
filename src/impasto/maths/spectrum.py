r"""An image (3, H, W) by bands of frequency, each of light and of two opponent colors.

What a change of an image does to a loss depends first of all on how fine it is and on whether it
is one of light or of color. Bands are two thirds of an octave wide, by cycles per pixel, so that
they mean the same at every size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

BANDS, PER_OCTAVE = 14, 1.5
AT_A_TIME = 2**20  # pixels
FINEST = math.sqrt(0.5)  # cycles per pixel, along the diagonal
OPPONENTS = tuple(
    tuple(part / math.hypot(*color) for part in color)
    for color in ((1.0, 1.0, 1.0), (1.0, -1.0, 0.0), (1.0, 1.0, -2.0))
)  # light, red against green, yellow against blue: orthonormal


def energies(image: Tensor) -> Tensor:
    """The squared norm in every band: (3, BANDS), in double precision; in all, that of the image.

    A plane and a few rows at a time, so that of a large image little is there at once.
    """
    width = image.shape[2]
    found = torch.zeros((3, BANDS), dtype=_wide(image), device=image.device)
    for weights, total in zip(OPPONENTS, found, strict=True):
        spectrum = _spectrum(image, weights)
        for rows, bands in _bands(image):
            squares = spectrum[rows].abs().square_().to(found.dtype)
            squares[:, 1 : (width + 1) // 2] *= 2  # of real numbers half is kept
            total += torch.bincount(bands.flatten(), squares.flatten(), minlength=BANDS)
    return found


def reweight_(image: Tensor, factors: Tensor) -> Tensor:
    """Multiply the bands of an image by factors (3, BANDS), in its own memory."""
    colors = image.new_tensor(OPPONENTS)
    _mix_(image, colors)
    for plane, row in zip(image, factors.to(image.dtype), strict=True):
        spectrum = torch.fft.rfft2(plane, norm="ortho")
        for rows, bands in _bands(image):
            spectrum[rows] *= row.index_select(0, bands.flatten()).view(bands.shape)
        plane.copy_(torch.fft.irfft2(spectrum, s=plane.shape, norm="ortho"))
    return _mix_(image, colors.T)


def _mix_(image: Tensor, matrix: Tensor) -> Tensor:
    """Every color of an image replaced by a matrix times it."""
    for rows in image.split(max(1, AT_A_TIME // image.shape[2]), 1):
        rows.copy_((matrix @ rows.flatten(1)).view_as(rows))
    return image


def _spectrum(image: Tensor, weights: tuple[float, ...]) -> Tensor:
    """Of one opponent color: (H, W // 2 + 1)."""
    plane = torch.zeros(
        image.shape[1:], dtype=torch.promote_types(image.dtype, torch.float32), device=image.device
    )
    for part, weight in zip(image, weights, strict=True):
        plane.add_(part, alpha=weight)
    return torch.fft.rfft2(plane, norm="ortho")


def _bands(image: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """The bands of the frequencies, some rows of a spectrum at a time.

    The mean is with the coarsest frequencies that there are.
    """
    height, width = image.shape[1:]
    down = torch.fft.fftfreq(height, device=image.device)[:, None]
    across = torch.fft.rfftfreq(width, device=image.device)
    step = max(1, AT_A_TIME // width)
    for rows in (slice(first, first + step) for first in range(0, height, step)):
        radius = (down[rows].square() + across.square()).sqrt_()
        octaves = radius.clamp_min_(1 / max(height, width)).div_(FINEST).log2_().neg_()
        yield rows, octaves.mul_(PER_OCTAVE).clamp_(0, BANDS - 1).to(torch.int32)


def _wide(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64
