"""A frozen 3×3 convolution with its gradient in the input only, on the fastest route.

On a CPU, NNPACK inside torch computes it by Winograd's algorithm, 2 to 3 times faster than the
default for maps of at least 64 × 64 and many channels. It is reached by a private name, so it is
looked up once, verified against the ordinary convolution, and left alone where it is absent.
The route depends on the shape alone, never on a measurement: same input, same bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST_MAP = 40 * 40  # below, transforming the kernel costs more than it saves (measured)
TOLERANCE = 1e-3  # of the verification; the error of Winograd's algorithm is about 1e-5


def convolve(x: Tensor, weight: Tensor, flipped: Tensor, bias: Tensor) -> Tensor:
    """x (1, C, H, W) convolved with a frozen kernel, zero-padded to its own size.

    ``flipped`` is :func:`flip` of the kernel: the gradient in x is a convolution with it.
    """
    return _Frozen.apply(x, weight, flipped, bias)


def flip(weight: Tensor) -> Tensor:
    """The kernel of the transposed convolution."""
    return weight.flip(2, 3).transpose(0, 1).contiguous()


class _Frozen(torch.autograd.Function):
    """Saves nothing of its input: what is frozen needs no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, flipped: Tensor, bias: Tensor) -> Tensor:
        ctx.flipped = flipped
        return _route(x, weight)(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = gradients
        return _route(gradient, ctx.flipped)(gradient, ctx.flipped, None), None, None, None


def _ordinary(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv2d(x, weight, bias, padding=1)


def _route(x: Tensor, weight: Tensor) -> Callable[[Tensor, Tensor, Tensor | None], Tensor]:
    suits = (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.shape[0] == 1
        and x.shape[2] * x.shape[3] >= SMALLEST_MAP
        and min(weight.shape[:2]) > 3
    )
    return (winograd() if suits else None) or _ordinary


@functools.cache
def winograd() -> Callable[[Tensor, Tensor, Tensor | None], Tensor] | None:
    """NNPACK's convolution where this build of torch has it and it computes the right thing."""
    try:
        if not torch.backends.nnpack.is_available():
            return None
        native = torch._nnpack_spatial_convolution

        def convolution(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
            return native(x.contiguous(), weight, bias, [1, 1], [1, 1])

        generator = torch.Generator().manual_seed(0)
        x = torch.randn(1, 8, 24, 19, generator=generator)
        weight = torch.randn(5, 8, 3, 3, generator=generator)
        bias = torch.randn(5, generator=generator)
        for offset in (bias, None):
            error = (convolution(x, weight, offset) - _ordinary(x, weight, offset)).abs().max()
            if not error < TOLERANCE:
                return None
    except (AttributeError, RuntimeError, TypeError):
        return None
    return convolution
