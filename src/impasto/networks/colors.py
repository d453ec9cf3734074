"""The gradient in an image from the one in its first convolution, in compiled loops."""

from __future__ import annotations

import ctypes
import functools

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto import native
from impasto.maths.raster import laid
from impasto.networks.winograd import TOLERANCE, available, panel

COLORS = 3
STRETCH = 16  # rows that a worker makes at a time


class _Job(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("gradient", "kernel", "output")),
        *(
            (name, ctypes.c_long)
            for name in ("rows", "width", "incoming", "height", "above", "stretch")
        ),
    ]


def suits(weight: Tensor) -> bool:
    """Whether there are loops for a kernel (K, C, 3, 3), and they compute the right thing."""
    return (
        available() and weight.shape[1] == COLORS and not weight.shape[0] % panel() and _is_right()
    )


@functools.cache
def _is_right() -> bool:
    generator = torch.Generator().manual_seed(0)
    gradient = torch.randn(1, 64, 5, 19, generator=generator)
    weight = torch.randn(64, COLORS, 3, 3, generator=generator)
    expected = F.conv_transpose2d(gradient, weight)[0, :, :, 1:-1]
    error = (spread(gradient, panels(weight)) - expected).norm()
    return bool(error < TOLERANCE * expected.norm())


def panels(weight: Tensor) -> Tensor:
    """The kernel as the loops read it: what a position sends to the nine around it, in columns."""
    sent = weight.permute(0, 2, 3, 1).flatten(1)
    sent = F.pad(sent, (0, -sent.shape[1] % panel()))
    return sent.unflatten(1, (-1, panel())).transpose(0, 1).contiguous()


def spread(gradient: Tensor, kernel: Tensor) -> Tensor:
    """What some rows of the gradient (1, K, H, W) give the image: (3, H + 2, W).

    The row above and the one below them get a part of it too. The kernel comes in panels.
    """
    gradient = laid(gradient, True)
    _, channels, height, width = gradient.shape
    out = torch.empty((COLORS, height + 2, width))
    held = gradient, kernel, out
    sizes = (height, width, channels, height + 2, 1, STRETCH)
    library = native.library()
    assert library is not None
    native.run(library.gradient_in_colors, _Job(*(x.data_ptr() for x in held), *sizes), *held)
    return out
