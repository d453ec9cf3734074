"""VGG-19 as an encoder (Simonyan and Zisserman 2015): an image in, the wanted taps out.

The network is frozen, so its way back needs little: the signs of what was rectified and the
places of the maxima. Both ways are written out here; autograd would keep every map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.maths.bits import Bits, pack, unpack
from impasto.maths.raster import laid
from impasto.networks.checkpoints import Checkpoint
from impasto.networks.convolution import Frozen, Pair, placed, threshold_backward
from impasto.networks.pooling import Choice, halve, halve_back
from impasto.recipe import CHANNELS, convolution
from impasto.types import Features, Image

FIRST = ("conv1_1", "relu1_1")  # taps of the largest map, which is quickly made

Add = Callable[[str, Tensor | None], Tensor | None]
"""Adds the gradient in a tap to what has come back to it, if anything: a tensor to be changed."""
Watch = Callable[[str, int, Features], None]
"""Is shown rows of a tap, from one of them on, which do not stay as they are."""
AddRows = Callable[[str, int, Features, Tensor], Tensor]
"""Adds the gradient in rows of a tap, from one of them on, to what has come back to them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoder:
    """A frozen VGG-19: taps are raw convolutions (conv4_1) or rectified ones (relu4_1)."""

    name: str
    sha256: str
    mean: Tensor  # (3, 1, 1)
    std: Tensor
    layers: tuple[tuple[str, Frozen], ...]

    def __call__(
        self, image: Image, taps: Iterable[str], *, watch: Watch | None = None
    ) -> dict[str, Features]:
        """The taps of an image (3, H, W) in [0, 1]; nothing is computed beyond the deepest.

        Those who watch are shown the taps of the first convolution in passing, unless there is
        nothing deeper or a graph is made, and do not get them: they are the largest by far.
        """
        names = tuple(sorted(set(taps)))
        if torch.is_grad_enabled() and image.requires_grad and names:
            return dict(zip(names, _Encoding.apply(image, self, names), strict=True))
        return _encode(self, image, names, watch=watch)

    def prepare(self, taps: Iterable[str]) -> None:
        """Make now what the way back from some taps will need, before there is much in memory.

        Made when it is asked for it would stay amid what comes and goes, and cut the heap in two.
        """
        for _, layer in self.layers[: 1 + _deepest(taps)]:
            layer.prepare()

    def trace(
        self,
        image: Image,
        taps: Iterable[str],
        *,
        lean: bool = False,
        watch: Watch | None = None,
    ) -> tuple[dict[str, Features], Trail]:
        """The taps without a graph, and the trail that leads back from them.

        A lean one takes a third less memory, and a hundredth more time. Where there are those who
        watch the first convolution it is as small as can be.
        """
        wanted = set(taps)
        trail = Trail([], {}, frozenset(wanted))
        with torch.no_grad():
            found = _encode(self, image, wanted, trail, lean=lean, watch=watch)
        trail.rectified.update({tap: x for tap, x in found.items() if tap.startswith("relu")})
        return found, trail

    def back(self, trail: Trail, add: Add, add_rows: AddRows | None = None) -> Tensor | None:
        """The gradient in the image; the trail is used up on the way, which frees its memory.

        Those who have watched add to the rows that they are shown again.
        """
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
                if number == 1 and trail.image is not None:
                    assert total is not None  # those who watch come back from deeper taps too
                    total = self._back_in_passing(trail.image, trail.taps, total, choice, add_rows)
                    break
                if total is not None:
                    total = layer.back(total, choice, passage.sign)
                choice = passage.choice if total is not None else None
                del passage
        return None if total is None else total[0] / self.std

    def _back_in_passing(
        self,
        image: Image,
        taps: frozenset[str],
        gradient: Tensor,
        choice: Choice | None,
        add: AddRows | None,
    ) -> Tensor:
        """The way back through the first two convolutions."""

        def alter(top: int, rows: Features, total: Tensor) -> Tensor:
            raw, rectified = FIRST
            if add is not None and raw in taps:
                total = add(raw, top, rows, total)
            if add is not None and rectified in taps:
                more = add(rectified, top, F.relu(rows), torch.zeros_like(total))
                total += threshold_backward(more, rows, 0)
            return total

        return self._pair.back(self._normalized(image), gradient, choice, alter)

    @property
    def _pair(self) -> Pair:
        return Pair(self.layers[0][1], self.layers[1][1])

    def _normalized(self, image: Image) -> Tensor:
        return ((image - self.mean) / self.std)[None]


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
        which, size = self.choice
        return _Packed(sign, (pack(which > 1), pack((which & 1).bool()), size))


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
        which = unpack(lower).to(torch.uint8).mul_(2).add_(unpack(right))
        return _Passage(sign, Choice(which, size))


@dataclass
class Trail:
    """What the way back needs to know of the way there."""

    passages: list[_Passage | _Packed]  # between the convolutions, up to the deepest
    rectified: dict[str, Features]  # the taps behind a rectification
    taps: frozenset[str]
    image: Image | None = None  # where the first convolution is to be made again


def _deepest(taps: Iterable[str]) -> int:
    """The number of the convolution of the deepest tap."""
    return max((list(CHANNELS).index(convolution(tap)) for tap in taps), default=-1)


def _encode(
    encoder: Encoder,
    image: Image,
    taps: Iterable[str],
    trail: Trail | None = None,
    *,
    lean: bool = False,
    watch: Watch | None = None,
) -> dict[str, Features]:
    """The taps; the way to the deepest is noted in a trail where there is one."""
    wanted = set(taps)
    found: dict[str, Features] = {}
    last = _deepest(wanted)
    x = encoder._normalized(image)
    choice: Choice | None = None
    passing = watch is not None and last > 0  # the first convolution
    for number in range(int(passing), last + 1):
        name, layer = encoder.layers[number]
        rectified = name.replace("conv", "relu")
        whole: Callable[[Tensor], Tensor]
        halved: Callable[[Tensor], tuple[Tensor, Choice]]
        if watch is not None and number == 1:
            see, pair = partial(_show, watch, wanted), encoder._pair
            whole, halved = partial(pair, see=see), partial(pair.halved, see=see)
            if trail is not None:
                trail.passages.append(_Passage(None, None))
                trail.image = image
        else:
            if number and trail is not None:
                signs = (lean or passing) and not any(x is tap for tap in found.values())
                passage = _Passage(x > 0 if signs else x, choice)
                trail.passages.append(passage.packed() if passing else passage)
            rectify = bool(number)  # on the way: what is kept of x is as good before it
            whole, halved = partial(layer, rectify=rectify), partial(layer.halved, rectify=rectify)
        choice = None
        ends = number < last and encoder.layers[number + 1][0].endswith("_1")  # its block
        if ends and not {name, rectified} & wanted:
            x, choice = halved(x)
            continue
        x = whole(x)
        if name in wanted:
            found[name] = x
        halves = halve(x) if ends else None  # raw: among rectified ones many would be equal
        if rectified in wanted:
            found[rectified] = x = F.relu(x) if name in wanted else F.relu_(x)
        if halves is not None:
            x, choice = halves
    return found


def _show(watch: Watch, wanted: set[str], top: int, rows: Features) -> None:
    """Rows of the first convolution to those who watch."""
    raw, rectified = FIRST
    if raw in wanted:
        watch(raw, top, rows)
    if rectified in wanted:
        watch(rectified, top, F.relu(rows))


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


def build(
    checkpoint: Checkpoint, device: torch.device | str = "cpu", *, interleaved: bool | None = None
) -> Encoder:
    """The encoder of a checkpoint on a device.

    Its maps lie in memory as its kernels do: as is fastest here, where nothing is said.
    """
    place = placed if interleaved is None else partial(laid, interleaved=interleaved)
    return Encoder(
        name=checkpoint.name,
        sha256=checkpoint.sha256,
        mean=torch.tensor(checkpoint.mean, device=device)[:, None, None],
        std=torch.tensor(checkpoint.std, device=device)[:, None, None],
        layers=tuple(
            (name, Frozen(place(kernel.to(device)), bias.to(device)))
            for name, (kernel, bias) in checkpoint.kernels.items()
        ),
    )
