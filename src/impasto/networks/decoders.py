"""Where the decoders come from: ours inside the package, AdaIN's from the registry of packages."""

from __future__ import annotations

import hashlib
import io
import json
from importlib import resources

import torch
from safetensors.torch import load as parse
from torch import Tensor

from impasto.networks import checkpoints
from impasto.networks.decoder import LINEAR, ORIGINAL_KERNELS, Decoder, Doors, Original, shapes
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
    """A decoder by its name."""
    return LOADERS[name](device)


def _ours(device: torch.device | str) -> Decoder:
    data = resources.files("impasto.networks").joinpath(OURS).read_bytes()
    return Doors(
        name="impasto",
        sha256=hashlib.sha256(data).hexdigest(),
        kernels=_checked(parse(data), device),
    )


def _checked(kernels: dict[str, Tensor], device: torch.device | str) -> dict[str, Tensor]:
    for name, shape in shapes().items():
        kernel = kernels.get(f"{name}.weight")
        if name in LINEAR if kernel is None else tuple(kernel.shape) != shape:
            raise ImpastoError(f"{OURS} is of another version; install impasto again")
    return {name: kernel.to(device, torch.float32) for name, kernel in kernels.items()}


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
