"""Where the decoders come from: ours inside the package, AdaIN's from the registry of packages."""

from __future__ import annotations

import hashlib
import io
import json
from importlib import resources
from pathlib import Path

import torch
from safetensors.torch import load as parse

from impasto.networks import checkpoints
from impasto.networks.decoder import ORIGINAL_KERNELS, Decoder, Linear, Original, shapes
from impasto.recipe import DECODERS
from impasto.types import ImpastoError

OURS = "decoders.safetensors"
# The levels at which AdaIN's own decoder does better than ours: docs/feed-forward.md.
BETTER_ORIGINAL = (4,)


def choose(decoder: str, level: int) -> str:
    """The decoder of a level: the one that was named, or the better one."""
    if decoder != "auto":
        return decoder
    return "adain-original" if level in BETTER_ORIGINAL else "impasto"


def load(name: str, device: torch.device | str = "cpu") -> Decoder:
    """A decoder by its name, or from a file of `impasto train-decoders`."""
    if name in LOADERS:
        return LOADERS[name](device)
    if not Path(name).is_file():
        words = ", ".join(f"'{each}'" for each in DECODERS)
        raise ImpastoError(f"unknown decoder '{name}': neither a file nor one of {words}")
    return _linear(Path(name).name, Path(name).read_bytes(), device)


def _ours(device: torch.device | str) -> Decoder:
    data = resources.files("impasto.networks").joinpath(OURS).read_bytes()
    return _linear("impasto", data, device)


def _linear(name: str, data: bytes, device: torch.device | str) -> Decoder:
    try:
        kernels = parse(data)
    except Exception as problem:
        raise ImpastoError(f"{name} is not a file of decoders") from problem
    for tap, shape in shapes().items():
        for part, wanted in (("weight", shape), ("bias", shape[:1])):
            kernel = kernels.get(f"{tap}.{part}")
            if kernel is None or tuple(kernel.shape) != wanted or not kernel.isfinite().all():
                raise ImpastoError(f"{name} has no decoder that fits {tap}; train it again")
    kernels = {each: kernel.to(device, torch.float32) for each, kernel in kernels.items()}
    return Linear(name=name, sha256=hashlib.sha256(data).hexdigest(), kernels=kernels)


def _original(device: torch.device | str) -> Decoder:
    source = checkpoints.SOURCES["adain-original"]
    path = checkpoints.location("adain-original")
    if not path.is_file():
        raise ImpastoError(f"AdaIN's decoder is not here; get it with: {source.repair}")
    digest = checkpoints.verified(path, source)
    data = torch.load(io.BytesIO(path.read_bytes()), map_location="cpu", weights_only=True)
    text = resources.files("impasto.networks").joinpath("adain_scales.json").read_text()
    # Its encoder is ours in other units: scripts/adain_scales.py.
    data[f"{ORIGINAL_KERNELS[0]}.weight"] *= torch.tensor(json.loads(text)["relu4_1"])[
        :, None, None
    ]
    kernels = {name: kernel.to(device) for name, kernel in data.items()}
    return Original(name="adain-original", sha256=digest, kernels=kernels)


LOADERS = {"impasto": _ours, "adain-original": _original}
