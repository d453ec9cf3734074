"""The figures of speed, each a ratio of two things run alternately in this process.

    python benchmarks/run.py [SIZE] [ROUNDS]

Writes `benchmarks/data/bench.json` and prints a table.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from impasto import process

process.tune()

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto import files, imagefile, objective
from impasto.discrepancies.styles import style_of
from impasto.maths.raster import resize
from impasto.networks import checkpoints, vgg
from impasto.optimize import Adam
from impasto.recipe import Recipe
from impasto.samples import locate

LAYERS = ("conv1_1", "conv2_1", "conv3_1", "conv4_1", "conv5_1")
DATA = Path(__file__).parent / "data"


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


def main(size: int, rounds: int) -> None:
    checkpoint = checkpoints.load()
    encoder = vgg.build(checkpoint)
    picture, painting = (
        resize(torch.from_numpy(imagefile.read(locate(name)).rgb).permute(2, 0, 1), (size, size))
        for name in ("astronaut", "cypresses")
    )
    recipe = Recipe(alpha=0.0)
    ours = objective.build(recipe, encoder, picture, painting)
    with torch.no_grad():
        style = {k: plain_moments(x) for k, x in plain_features(checkpoint, painting).items()}
    variable = picture.clone().requires_grad_()
    adam = torch.optim.Adam([variable], lr=0.0225)

    def our_step() -> None:
        Adam().step(ours, picture, ours(picture), (), 0.0225)

    plain, fast = alternately(
        rounds, lambda: plain_step(checkpoint, variable, adam, style), our_step
    )
    figures = {"step: plain loop ÷ ours": plain / fast}

    maps = {name: x.detach() for name, x in encoder(picture, LAYERS).items()}

    def network() -> None:
        image = picture.clone().requires_grad_()
        taps = encoder(image, LAYERS)
        torch.autograd.grad([taps[name].sum() for name in LAYERS], image)

    def loss(order: int) -> Callable[[], None]:
        chosen = recipe.but(order=order)
        measure = style_of(chosen).build(chosen)
        target = {name: measure.summarize(x[0].flatten(1).T) for name, x in maps.items()}

        def run() -> None:
            leaves = {name: x.clone().requires_grad_() for name, x in maps.items()}
            terms = [
                measure.compare(measure.summarize(objective.points_of(x, None, 2)), target[name])
                for name, x in leaves.items()
            ]
            torch.autograd.grad(torch.stack(terms).sum(), list(leaves.values()))

        return run

    for order in (5, 50):
        whole, part = alternately(rounds, network, loss(order))
        figures[f"CMD of order {order} ÷ encoder, forward and backward"] = part / whole
    result = {
        "size": size,
        "rounds": rounds,
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "seconds": {"plain step": plain, "our step": fast},
        "figures": figures,
    }
    DATA.mkdir(exist_ok=True)
    files.write_atomically(DATA / "bench.json", (json.dumps(result, indent=1) + "\n").encode())
    for name, value in figures.items():
        print(f"{name:55} {value:.3f}")


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(*(words + [512, 7][len(words) :]))
