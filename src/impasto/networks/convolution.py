"""A frozen 3×3 convolution and its gradient in the input, each on the fastest route.

On a CPU these are our own compiled loops (:mod:`impasto.networks.winograd`, decision 24), with maps
that lie position by position. Where they were not compiled maps lie channel by channel and go by
NNPACK inside torch, which computes by Winograd's algorithm too; it is reached by a private name, so
it is looked up once, verified against the ordinary convolution, and left alone where it is absent.
The rest takes torch's own, oneDNN. Which route a shape takes never depends on a measurement: same
input, same bytes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.maths.raster import blank, is_interleaved, laid
from impasto.networks import colors
from impasto.networks.pooling import Choice, halve, halve_back, join
from impasto.networks.winograd import Kernel
from impasto.networks.winograd import available as is_compiled
from impasto.networks.winograd import suits as suits_loops

SMALLEST_MAP = 40 * 40  # of NNPACK: below, it spends its time on transforming the kernel
FEW = 3  # channels: of an image, where torch's own routes are the fastest
LARGEST_BAND = 256 * 256 * 128  # numbers in and out at a time
TILE, TILES = 6, 12  # rows of NNPACK's tiles, and of ours of both sizes
FEWEST_ROWS, WIDEST = 120, 4  # of a band, as its overlap is computed twice; up to so much larger
OVERLAP = 2  # rows; one would do, but what was halved is spread without a copy from even ones
ROWS = 64  # of an image whose gradient is added up at a time
TOLERANCE = 1e-3  # of the verification; the error of Winograd's algorithm is about 1e-5

threshold_backward = torch.ops.aten.threshold_backward

Convolution = Callable[[Tensor, Tensor, Tensor | None], Tensor]

See = Callable[[int, Tensor], None]
"""Is shown rows of a map from one of them on, each row once; they do not stay as they are."""
Alter = Callable[[int, Tensor, Tensor], Tensor]
"""Makes the gradient in rows of a map, from one of them on, of what came back to them."""


class _Source(NamedTuple):
    """A map of which some rows at a time are made, when they are asked for."""

    like: Tensor  # of its kind and on its device
    size: tuple[int, int]
    rows: Callable[[int, int], Tensor]  # from one to before another


@dataclass(frozen=True, eq=False)
class Frozen:
    """A convolution of images (1, C, H, W), zero-padded to their own size, that never learns.

    Large maps are made in bands of rows where there are no compiled loops, so that what comes
    before and after the convolution needs not be there as a whole.
    """

    weight: Tensor  # (K, C, 3, 3)
    bias: Tensor  # (K,)

    def __call__(self, x: Tensor, *, rectify: bool = False) -> Tensor:
        """The convolution of x or of relu(x)."""
        if self._suits_loops(x):
            return self._transformed.convolve(x, self.bias, rectify=rectify)
        source = _rows_of(x, rectify)
        return _joined(_bands(source, self.weight, self.bias), source.size)

    def halved(self, x: Tensor, *, rectify: bool = False) -> tuple[Tensor, Choice]:
        """The convolution of x or of relu(x), halved."""
        if self._suits_loops(x):
            return self._transformed.halved(x, self.bias, rectify=rectify)
        return join(list(self.bands_halved(_rows_of(x, rectify))))

    def back(
        self, gradient: Tensor, choice: Choice | None = None, sign: Tensor | None = None
    ) -> Tensor:
        """The gradient in the input from the one in the result, or in what it was halved to.

        That is a convolution with the flipped kernel. Where the input was rectified, the gradient
        before that is wanted: it passes where the sign is positive.
        """
        if choice is None and self.weight.shape[1] <= FEW and sign is None:
            return self.to_few(iter([gradient]), (gradient.shape[2], gradient.shape[3]))
        if self._suits_loops(gradient):
            return self._transformed.back(gradient, sign, choice=choice)
        source = _rows_of(gradient, False) if choice is None else _rows_before(gradient, choice)
        bands = _bands(source, self._flipped, None, always=choice is not None)
        return _joined(bands, source.size, sign)

    def bands(self, source: _Source) -> Iterator[Tensor]:
        """The convolution of a map from top to bottom, some rows at a time."""
        if not self._suits_loops(source.like):
            yield from _bands(source, self.weight, self.bias, always=True)
            return
        for top, bottom, edges in _cuts(source.size, self.weight):
            rows = source.rows(top - 1 + edges[0], bottom + 1 - edges[1])
            yield self._transformed.convolve(rows, self.bias, edges=edges)

    def bands_halved(self, source: _Source) -> Iterator[tuple[Tensor, Choice]]:
        """The same, each band halved."""
        if not self._suits_loops(source.like):
            yield from map(halve, self.bands(source))
            return
        for top, bottom, edges in _cuts(source.size, self.weight):
            rows = source.rows(top - 1 + edges[0], bottom + 1 - edges[1])
            yield self._transformed.halved(rows, self.bias, edges=edges)

    def bands_back(self, gradient: Tensor, choice: Choice | None) -> Iterator[Tensor]:
        """The gradient in the input, in the same way."""
        if not self._suits_loops(gradient):
            source = _rows_of(gradient, False) if choice is None else _rows_before(gradient, choice)
            yield from _bands(source, self._flipped, None, always=True)
            return
        size = (gradient.shape[2], gradient.shape[3]) if choice is None else choice.size
        for top, bottom, _ in _cuts(size, self.weight):
            yield self._transformed.back(gradient, choice=choice, rows=(top, bottom))

    def to_few(self, bands: Iterator[Tensor], size: tuple[int, int]) -> Tensor:
        """The gradient in an input of few channels, in much less than the time of a convolution.

        It is asked for the one in the result from top to bottom.
        """
        height, width = size
        total = self.weight.new_zeros((self.weight.shape[1], height + 2, width))
        top = 0
        for band in bands:
            part = self._sent(band)
            total[:, top : top + part.shape[1]] += part
            top += band.shape[2]
            del band, part  # before the next ones are made
        return total[None, :, 1:-1]

    def _sent(self, gradient: Tensor) -> Tensor:
        """What some rows of the gradient give the input: (C, H + 2, W), with those around them."""
        if _plain(gradient) and colors.suits(self.weight):
            return colors.spread(gradient, self._panels)
        # A matrix product gives what each position sends to the nine around it, some rows at a
        # time, so that it is still in the cache when it is added up.
        _, _, height, width = gradient.shape
        few = self.weight.shape[1]
        sends = self.weight.permute(2, 3, 1, 0).reshape(9 * few, -1)
        total = gradient.new_zeros((few, height + 2, width + 2))
        for number, rows in enumerate(gradient[0].split(ROWS, 1)):
            sent = (sends @ rows.flatten(1)).view(3, 3, few, -1, width)
            for down, across in itertools.product(range(3), repeat=2):
                part = sent[down, across]
                onto = total[:, number * ROWS + down :, across:]
                onto[:, : part.shape[1], :width] += part
        return total[:, :, 1:-1]

    def prepare(self) -> None:
        """Make the kernel of the way back."""
        if self._has_loops:
            _ = self._transformed
        elif self.weight.shape[1] > FEW:
            _ = self._flipped
        elif colors.suits(self.weight):
            _ = self._panels

    @functools.cached_property
    def _flipped(self) -> Tensor:
        return laid(self.weight.flip(2, 3).transpose(0, 1), is_interleaved(self.weight))

    @functools.cached_property
    def _transformed(self) -> Kernel:
        return Kernel.of(self.weight)

    @functools.cached_property
    def _panels(self) -> Tensor:
        return colors.panels(self.weight)

    @functools.cached_property
    def _has_loops(self) -> bool:
        kernel = self.weight
        return is_interleaved(kernel) and _plain(kernel[:1]) and suits_loops(kernel)

    def _suits_loops(self, x: Tensor) -> bool:
        return self._has_loops and _plain(x)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two convolutions with a rectification between them, of images of few channels.

    The map between them is made some rows at a time, on the way there and again on the way back,
    and is never there as a whole.
    """

    first: Frozen
    second: Frozen

    def __call__(self, x: Tensor, see: See) -> Tensor:
        """The second convolution; the map between is shown in passing."""
        source = self._source(x, see)
        return _joined(self.second.bands(source), source.size)

    def halved(self, x: Tensor, see: See) -> tuple[Tensor, Choice]:
        """The same, halved."""
        return join(list(self.second.bands_halved(self._source(x, see))))

    def back(self, x: Tensor, gradient: Tensor, choice: Choice | None, alter: Alter) -> Tensor:
        """The gradient in x from the one in the result, or in what it was halved to.

        What comes back to rows of the map between is altered before it goes on.
        """
        top = 0

        def altered(band: Tensor) -> Tensor:
            nonlocal top
            first, top = top, top + band.shape[2]
            rows = self._between(x, first, top)
            return alter(first, rows, threshold_backward(band, rows, 0))

        bands = map(altered, self.second.bands_back(gradient, choice))
        return self.first.to_few(bands, (x.shape[2], x.shape[3]))

    def _source(self, x: Tensor, see: See) -> _Source:
        """The map between, rectified, and shown before that: its bands overlap."""
        seen = 0

        def rows(top: int, bottom: int) -> Tensor:
            nonlocal seen
            part = self._between(x, top, bottom)
            see(seen, part[:, :, seen - top :])
            seen = bottom
            return F.relu_(part)

        return _Source(x, (x.shape[2], x.shape[3]), rows)

    def _between(self, x: Tensor, top: int, bottom: int) -> Tensor:
        """Some rows of the first convolution; beyond the first and the last row of x are zeros."""
        rows = x[:, :, max(0, top - 1) : bottom + 1]
        padded = F.pad(rows, (0, 0, int(top == 0), int(bottom == x.shape[2])))
        return F.conv2d(padded, self.first.weight, self.first.bias, padding=(0, 1))


def _rows_of(x: Tensor, rectify: bool) -> _Source:
    def rows(top: int, bottom: int) -> Tensor:
        part = x[:, :, top:bottom]
        return F.relu(part) if rectify else part

    return _Source(x, (x.shape[2], x.shape[3]), rows)


def _rows_before(gradient: Tensor, choice: Choice) -> _Source:
    """The gradient in a map from the one in what it was halved to."""
    return _Source(gradient, choice.size, lambda *rows: halve_back(gradient, choice, rows))


def _joined(bands: Iterator[Tensor], size: tuple[int, int], sign: Tensor | None = None) -> Tensor:
    """The map whose bands come one after the other, or 0 where the sign is not positive."""
    whole, top = None, 0
    for part in bands:
        if whole is None:
            whole = part if part.shape[2] == size[0] else blank(part, size)
        rows = slice(top, top + part.shape[2])
        if sign is not None:
            seen = sign[:, :, rows].to(part.dtype)  # it may be kept as bools
            threshold_backward.grad_input(part, seen, 0, grad_input=whole[:, :, rows])
            del seen
        elif part is not whole:
            whole[:, :, rows] = part
        top = rows.stop
        del part  # before the next one is made
    assert whole is not None
    return whole


def _bands(
    source: _Source, weight: Tensor, bias: Tensor | None, *, always: bool = False
) -> Iterator[Tensor]:
    """The convolution from top to bottom; by the ordinary route all of it at once, if it may be."""
    height, width = source.size
    suits = height * width >= SMALLEST_MAP and min(weight.shape[:2]) > FEW
    suits = suits and _plain(source.like) and not is_interleaved(weight)
    fast = winograd() if suits else None
    convolve, rows = fast or _ordinary, height
    if fast or always:  # NNPACK's workspace is twice the size of what goes in and out
        rows = _height(source.size, weight, TILE)
    for top in range(0, height, rows):
        above, bottom = min(top, OVERLAP), min(top + rows, height)
        # No name holds on to a band while the next one is made.
        yield convolve(source.rows(top - above, min(bottom + OVERLAP, height)), weight, bias)[
            :, :, above : above + bottom - top
        ]


def _cuts(size: tuple[int, int], weight: Tensor) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Bands of rows, from one to before another, and whether they are the first and the last."""
    rows = _height(size, weight, TILES)
    for top in range(0, size[0], rows):
        bottom = min(top + rows, size[0])
        yield top, bottom, (int(top == 0), int(bottom == size[0]))


def _height(size: tuple[int, int], weight: Tensor, tile: int) -> int:
    """Rows of bands of about the same height, in whole tiles."""
    height, width = size
    row = width * sum(weight.shape[:2])
    even = height / math.ceil(height * row / LARGEST_BAND)
    return math.ceil(max(even, min(FEWEST_ROWS, WIDEST * LARGEST_BAND / row)) / tile) * tile


def _plain(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.shape[0] == 1


def _ordinary(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv2d(x, weight, bias, padding=1)


def placed(kernel: Tensor) -> Tensor:
    """A kernel as it is to lie in memory on its device, and with it all maps."""
    return laid(kernel, kernel.device.type == "cpu" and is_compiled())


@functools.cache
def winograd() -> Convolution | None:
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
            inputs = x, weight, offset
            error = (convolution(*inputs) - _ordinary(*inputs)).abs().max()
            if not error < TOLERANCE:
                return None
    except (AttributeError, RuntimeError, TypeError):
        return None
    return convolution
