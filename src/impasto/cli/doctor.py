"""``impasto doctor``."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from typing import Any

from impasto.types import ImpastoError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--weights", default="oxford", metavar="X", help="network to check")
    parser.add_argument("--device", default="auto", metavar="X", help="device to check")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(arguments: argparse.Namespace) -> int:
    """Check everything that a painting needs; 1 where something is wrong."""
    findings: dict[str, Any] = {}
    problems = []
    for name, examine in EXAMINATIONS.items():
        try:
            findings[name] = examine(arguments)
        except ImpastoError as error:
            findings[name] = f"PROBLEM: {error}"
            problems.append(name)
        if not arguments.json:
            _print(name, findings[name])
    if arguments.json:
        print(json.dumps({**findings, "problems": problems}, indent=1))
    elif not problems:
        print("all is well")
    return 1 if problems else 0


def _print(name: str, finding: Any) -> None:
    if isinstance(finding, dict):
        finding = ", ".join(f"{key} {value}" for key, value in finding.items())
    print(f"{name:12} {finding}", flush=True)


def _versions(arguments: argparse.Namespace) -> dict[str, str]:
    import numpy
    import PIL
    import torch

    import impasto

    return {
        "impasto": impasto.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "pillow": PIL.__version__,
    }


def _device(arguments: argparse.Namespace) -> str:
    import torch

    from impasto.api import device_of
    from impasto.networks.convolution import winograd
    from impasto.networks.winograd import available

    device = device_of(arguments.device)
    if device.type != "cpu":
        return f"{device}, {torch.cuda.get_device_name(device) if device.type == 'cuda' else ''}"
    route = "compiled loops" if available() else "NNPACK" if winograd() else "oneDNN"
    return f"cpu, {torch.get_num_threads()} threads, convolutions by {route}"


def _memory(arguments: argparse.Namespace) -> str:
    from impasto.process import free_memory

    return f"{free_memory() / 1e9:.1f} GB free"


def _weights(arguments: argparse.Namespace) -> str:
    encoder = _encoder(arguments)
    return f"{encoder.name}, sha256 {encoder.sha256[:16]}…, verified"


def _saturation(arguments: argparse.Namespace) -> dict[str, str]:
    from impasto.evaluation import saturation

    shares = saturation(_encoder(arguments), _specimen())
    worst = max(shares.values())
    if worst > 0.5:
        raise ImpastoError(
            f"{worst:.0%} of the features are beyond the sigmoid's reach: cmd would only count "
            f"signs; this network needs rescaling"
        )
    return {layer: f"{share:.0%}" for layer, share in shares.items()}


def _speed(arguments: argparse.Namespace) -> str:
    import time

    from impasto import objective
    from impasto.recipe import Recipe

    encoder = _encoder(arguments)
    image = _specimen().to(encoder.mean.device)
    evaluate = objective.build(Recipe(), encoder, image, image.flip(1))
    evaluate(image)
    began = time.monotonic()
    evaluate(image)
    seconds = time.monotonic() - began
    return f"{seconds:.2f} s for a step of 256×256, about {4 * seconds:.1f} s for 512×512"


def _self_test(arguments: argparse.Namespace) -> str:
    from impasto import objective
    from impasto.recipe import Recipe

    encoder = _encoder(arguments)
    image = _specimen().to(encoder.mean.device)[:, :96, :96]
    losses, gradient = objective.build(Recipe(), encoder, image, image)(image)
    if losses.total > 1e-6 or not gradient.isfinite().all():
        raise ImpastoError(f"an image is not at distance 0 from itself: {losses.total}")
    evaluate = objective.build(Recipe(), encoder, image, image.flip(0))
    losses, gradient = evaluate(image)
    shorter = (image - 0.02 * gradient / gradient.abs().max()).clamp(0, 1)
    if not evaluate.losses(shorter).total < losses.total:
        raise ImpastoError("a step along the gradient does not lower the loss")
    return "passed"


def _encoder(arguments: argparse.Namespace) -> Any:
    from impasto.api import device_of
    from impasto.networks import checkpoints, vgg

    return vgg.build(checkpoints.load(arguments.weights), device_of(arguments.device))


def _specimen() -> Any:
    """An image with the spectrum of a photo that needs no file: colored noise of all sizes."""
    import torch
    import torch.nn.functional as F

    generator = torch.Generator().manual_seed(0)
    image = torch.full((1, 3, 256, 256), 0.5)
    for side in (4, 8, 16, 32, 64, 128, 256):
        noise = torch.randn(1, 3, side, side, generator=generator)
        image = image + 0.08 * F.interpolate(noise, (256, 256), mode="bicubic")
    return image[0].clamp(0, 1)


EXAMINATIONS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "versions": _versions,
    "device": _device,
    "memory": _memory,
    "weights": _weights,
    "saturation": _saturation,
    "speed": _speed,
    "self-test": _self_test,
}
