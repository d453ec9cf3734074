"""VGG-19 as an encoder (Simonyan and Zisserman 2015): an image in, the wanted taps out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.networks.checkpoints import Checkpoint
from impasto.networks.convolution import convolve, flip
from impasto.recipe import CHANNELS, convolution
from impasto.types import Features, Image


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoder:
    """A frozen VGG-19: taps are raw convolutions (conv4_1) or rectified ones (relu4_1)."""

    name: str
    sha256: str
    mean: Tensor  # (3, 1, 1)
    std: Tensor
    layers: tuple[tuple[str, Tensor, Tensor, Tensor], ...]  # name, kernel, flipped kernel, bias

    def __call__(self, image: Image, taps: Iterable[str]) -> dict[str, Features]:
        """The taps of an image (3, H, W) in [0, 1]; nothing is computed beyond the deepest."""
        wanted = set(taps)
        found: dict[str, Features] = {}
        last = max((list(CHANNELS).index(convolution(tap)) for tap in wanted), default=-1)
        x = ((image - self.mean) / self.std)[None]
        for name, kernel, flipped, bias in self.layers[: last + 1]:
            if name.endswith("_1") and name != "conv1_1":
                x = F.max_pool2d(x, 2)
            x = convolve(x, kernel, flipped, bias)
            if name in wanted:
                found[name] = x
            if name != self.layers[last][0] or name.replace("conv", "relu") in wanted:
                # In place where nobody else looks at the raw convolution.
                x = F.relu(x) if name in wanted else F.relu_(x)
            if name.replace("conv", "relu") in wanted:
                found[name.replace("conv", "relu")] = x
        return found


def build(checkpoint: Checkpoint, device: torch.device | str = "cpu") -> Encoder:
    """The encoder of a checkpoint on a device."""
    return Encoder(
        name=checkpoint.name,
        sha256=checkpoint.sha256,
        mean=torch.tensor(checkpoint.mean, device=device)[:, None, None],
        std=torch.tensor(checkpoint.std, device=device)[:, None, None],
        layers=tuple(
            (name, kernel.to(device), flip(kernel).to(device), bias.to(device))
            for name, (kernel, bias) in checkpoint.kernels.items()
        ),
    )
