"""VGG-19 as an encoder (Simonyan and Zisserman 2015): an image in, the wanted taps out.

The network is frozen, so its way back needs little: the signs of what was rectified and the
places of the maxima. Both ways are written out here; autograd would keep every map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.maths.bits import Bits, pack, unpack
from impasto.networks.checkpoints import Checkpoint
from impasto.networks.convolution import Frozen, threshold_backward
from impasto.networks.pooling import Choice, halve, halve_back
from impasto.recipe import CHANNELS, convolution
from impasto.types import Features, Image

FIRST = next(iter(CHANNELS))  # convolution: its map is the largest, and quickly made

Add = Callable[[str, Tensor | None], Tensor | None]
"""Adds the gradient in a tap to what has come back to it, if anything: a tensor to be changed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoder:
    """A frozen VGG-19: taps are raw convolutions (conv4_1) or rectified ones (relu4_1)."""

    name: str
    sha256: str
    mean: Tensor  # (3, 1, 1)
    std: Tensor
    layers: tuple[tuple[str, Frozen], ...]

    def __call__(self, image: Image, taps: Iterable[str]) -> dict[str, Features]:
        """The taps of an image (3, H, W) in [0, 1]; nothing is computed beyond the deepest."""
        names = tuple(sorted(set(taps)))
        if torch.is_grad_enabled() and image.requires_grad and names:
            return dict(zip(names, _Encoding.apply(image, self, names), strict=True))
        return _encode(self, image, names)

    def prepare(self, taps: Iterable[str]) -> None:
        """Make now what the way back from some taps will need, before there is much in memory.

        Made when it is asked for it would stay amid what comes and goes, and cut the heap in two.
        """
        for _, layer in self.layers[: 1 + _deepest(taps)]:
            layer.prepare()

    def trace(
        self, image: Image, taps: Iterable[str], *, lean: bool = False
    ) -> tuple[dict[str, Features], Trail]:
        """The taps without a graph, and the trail that leads back from them.

        A lean one takes a third less memory, and a hundredth more time.
        """
        passages: list[_Passage | _Packed] = []
        with torch.no_grad():
            found = _encode(self, image, taps, passages, lean)
        rectified = {tap: x for tap, x in found.items() if tap.startswith("relu")}
        return found, Trail(passages, rectified, frozenset(found))

    def restore(self, image: Image, taps: dict[str, Features], trail: Trail) -> None:
        """Make the first convolution again, which :meth:`Trail.shorten` has left out."""
        wanted = {tap for tap in trail.taps if convolution(tap) == FIRST}
        found, start = self.trace(image, wanted or {FIRST})
        taps.update({tap: found[tap] for tap in wanted})
        trail.rectified.update(start.rectified)
        if trail.passages:
            trail.passages[0] = _Passage(next(iter(found.values())), None)

    def back(self, trail: Trail, add: Add) -> Tensor | None:
        """The gradient in the image; the trail is used up on the way, which frees its memory."""
        total: Tensor | None = None  # the gradient in the convolution at hand,
        choice: Choice | None = None  # or in what it was halved to
        with torch.no_grad():
            for number in range(len(trail.passages), -1, -1):
                name, layer = self.layers[number]
                rectified = name.replace("conv", "relu")
                if total is not None and choice is not None and {name, rectified} & trail.taps:
                    total, choice = halve_back(total, choice), None
                total = add(name, total)
                gradient = add(rectified, None)
                if gradient is not None:
                    gradient = threshold_backward(gradient, trail.rectified.pop(rectified), 0)
                    total = gradient if total is None else total.add_(gradient)
                del gradient
                passage = trail.passages.pop() if number else _Passage(None, None)
                passage = passage.opened() if isinstance(passage, _Packed) else passage
                if total is not None:
                    total = layer.back(total, choice, passage.sign)
                choice = passage.choice if total is not None else None
                del passage
        return None if total is None else total[0] / self.std


@dataclass(frozen=True)
class _Passage:
    """What came before a convolution: rectified, and halved where a block begins."""

    sign: Tensor | None  # positive or true where the gradient passes; an image is not rectified
    choice: Choice | None

    def packed(self) -> _Packed:
        """Its bools as bits."""
        sign: Bits | Tensor | None = self.sign
        if self.sign is not None and self.sign.dtype == torch.bool:
            sign = pack(self.sign)
        if self.choice is None:
            return _Packed(sign, None)
        lower, right, size = self.choice
        return _Packed(sign, (pack(lower), pack(right), size))


@dataclass(frozen=True)
class _Packed:
    """The same, until it is needed."""

    sign: Bits | Tensor | None
    choice: tuple[Bits, Bits, tuple[int, int]] | None

    def opened(self) -> _Passage:
        sign = unpack(self.sign) if isinstance(self.sign, Bits) else self.sign
        if self.choice is None:
            return _Passage(sign, None)
        lower, right, size = self.choice
        return _Passage(sign, Choice(unpack(lower), unpack(right), size))


@dataclass(frozen=True)
class Trail:
    """What the way back needs to know of the way there."""

    passages: list[_Passage | _Packed]  # between the convolutions, up to the deepest
    rectified: dict[str, Features]  # the taps behind a rectification
    taps: frozenset[str]

    def shorten(self, taps: dict[str, Features]) -> None:
        """Keep bits of what is no tap, and of the first convolution, the largest map, nothing."""
        for tap in [tap for tap in taps if convolution(tap) == FIRST]:
            del taps[tap]
            self.rectified.pop(tap, None)
        for number, passage in enumerate(self.passages):
            if isinstance(passage, _Passage):
                self.passages[number] = passage.packed() if number else _Passage(None, None)


def _deepest(taps: Iterable[str]) -> int:
    """The number of the convolution of the deepest tap."""
    return max((list(CHANNELS).index(convolution(tap)) for tap in taps), default=-1)


def _encode(
    encoder: Encoder,
    image: Image,
    taps: Iterable[str],
    passages: list[_Passage | _Packed] | None = None,
    lean: bool = False,
) -> dict[str, Features]:
    """The taps; the passages between the convolutions up to the deepest are noted if wanted."""
    wanted = set(taps)
    found: dict[str, Features] = {}
    last = _deepest(wanted)
    x = ((image - encoder.mean) / encoder.std)[None]
    choice: Choice | None = None
    for number, (name, layer) in enumerate(encoder.layers[: last + 1]):
        if number and passages is not None:
            signs = lean and not any(x is tap for tap in found.values())
            passages.append(_Passage(x > 0 if signs else x, choice))
        choice = None
        # In place where nobody else looks at the raw convolution, whose sign is as good.
        shared = bool(number) and x is found.get(encoder.layers[number - 1][0])
        x = F.relu_(x) if number and not shared else x
        rectified = name.replace("conv", "relu")
        ends = number < last and encoder.layers[number + 1][0].endswith("_1")  # its block
        if ends and not {name, rectified} & wanted:
            x, choice = layer.halved(x, rectify=shared)
            continue
        x = layer(x, rectify=shared)
        if name in wanted:
            found[name] = x
        if rectified in wanted:
            found[rectified] = x = F.relu(x) if name in wanted else F.relu_(x)
        if ends:  # the maximum first: there is less to rectify then
            x, choice = halve(x)
    return found


class _Encoding(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, image: Tensor, encoder: Encoder, taps: tuple[str, ...]
    ) -> tuple[Tensor, ...]:
        found, trail = encoder.trace(image, taps)
        outputs = tuple(found[tap] for tap in taps)
        ctx.save_for_backward(*outputs, *(each.sign for each in trail.passages))
        ctx.encoder, ctx.taps, ctx.choices = encoder, taps, [each.choice for each in trail.passages]
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None, None]:
        count = len(ctx.taps)
        outputs, signs = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        trail = Trail(
            [_Passage(*each) for each in zip(signs, ctx.choices, strict=True)],
            {tap: x for tap, x in zip(ctx.taps, outputs, strict=True) if tap.startswith("relu")},
            frozenset(ctx.taps),
        )
        arriving = dict(zip(ctx.taps, gradients, strict=True))

        def add(tap: str, total: Tensor | None) -> Tensor | None:
            gradient = arriving.get(tap)
            if gradient is None:
                return total
            return gradient.clone() if total is None else total.add_(gradient)

        return ctx.encoder.back(trail, add), None, None


def build(checkpoint: Checkpoint, device: torch.device | str = "cpu") -> Encoder:
    """The encoder of a checkpoint on a device."""
    return Encoder(
        name=checkpoint.name,
        sha256=checkpoint.sha256,
        mean=torch.tensor(checkpoint.mean, device=device)[:, None, None],
        std=torch.tensor(checkpoint.std, device=device)[:, None, None],
        layers=tuple(
            (name, Frozen(kernel.to(device), bias.to(device)))
            for name, (kernel, bias) in checkpoint.kernels.items()
        ),
    )
