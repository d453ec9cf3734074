"""The procedure as the public code writes it, and what the benchmarks share."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.networks import checkpoints

LAYERS = ("conv1_1", "conv2_1", "conv3_1", "conv4_1", "conv5_1")
DATA = Path(__file__).parent / "data"


def machine() -> str:
    """What the figures were taken on."""
    kind = f"{_processor()} with {torch.backends.cpu.get_cpu_capability()}"
    return f"{kind}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def _processor() -> str:
    """Its name and, as many have the same, its family and model, where the system tells."""
    lines = Path("/proc/cpuinfo")
    facts = dict(
        (part.strip() for part in line.split(":", 1))
        for line in (lines.read_text().splitlines() if lines.exists() else [])
        if ":" in line
    )
    if "model name" not in facts:
        return platform.processor() or platform.machine()
    return f"{facts['model name']} ({facts['cpu family']}, {facts['model']})"


def plain_features(checkpoint: checkpoints.Checkpoint, image: Tensor) -> dict[str, Tensor]:
    """VGG-19 by ordinary convolutions under autograd."""
    x, found = (image - torch.tensor(checkpoint.mean)[:, None, None])[None], {}
    for name, (kernel, bias) in checkpoint.kernels.items():
        if name.endswith("_1") and name != "conv1_1":
            x = F.max_pool2d(x, 2)
        x = F.conv2d(x, kernel, bias, padding=1)
        if name in LAYERS:
            found[name] = x
        if name == "conv5_1":
            break
        x = F.relu(x)
    return found


def plain_moments(features: Tensor) -> list[Tensor]:
    """Five moments, a power at a time, under autograd: as the public code has it."""
    x = torch.sigmoid(features[0].flatten(1))
    mean = x.mean(1, keepdim=True)
    return [mean[:, 0], *((x - mean).pow(k).mean(1) for k in range(2, 6))]


def plain_step(
    checkpoint: checkpoints.Checkpoint, image: Tensor, optimizer: torch.optim.Adam, style: dict
) -> None:
    optimizer.zero_grad()
    loss = torch.zeros(())
    for name, x in plain_features(checkpoint, image).items():
        weight = 1000 / x.shape[1] ** 2
        for ours, theirs in zip(plain_moments(x), style[name], strict=True):
            loss = loss + weight * ((ours - theirs).square().sum() + 1e-30).sqrt()
    loss.backward()
    optimizer.step()


def alternately(rounds: int, *things: Callable[[], object]) -> list[float]:
    """The median seconds of each, one after the other in every round, after one to warm up."""
    times: list[list[float]] = [[] for _ in things]
    for number in range(rounds + 1):
        for thing, taken in zip(things, times, strict=True):
            began = time.perf_counter()
            thing()
            if number:
                taken.append(time.perf_counter() - began)
    return [statistics.median(taken) for taken in times]
