"""The figures of speed, each a ratio of two things run alternately in this process.

    python benchmarks/run.py [SIZE [ROUNDS [PART …]]]

Writes `benchmarks/data/bench.json`; parts (step, loss, blocks, growth) that are not named, and
those of other machines, stay as they were.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from impasto import process

process.tune()

import torch
from PIL import Image, ImageOps
from plain import DATA, LAYERS, alternately, machine, plain_features, plain_moments, plain_step
from torch import Tensor

from impasto import api, blockwise, files, heap, imagefile, objective
from impasto.discrepancies.styles import style_of
from impasto.maths.raster import resize
from impasto.networks import checkpoints, convolution, vgg
from impasto.optimize import Adam
from impasto.recipe import Recipe
from impasto.samples import locate

GROWTH = ((1024, 1024), (2048, 2048), (6000, 4000))  # pictures beside which the first is looked at
FEW, TWICE = 2e6, 8e6  # pixels from which on three rounds are enough, and two: they take minutes
BLOCK = 192  # the side of blocks
UNITS = 4  # looks at the smallest in every round, as one takes a second


def picture(name: str, size: int) -> Tensor:
    return resize(torch.from_numpy(imagefile.read(locate(name)).rgb).permute(2, 0, 1), (size, size))


def steps(checkpoint: checkpoints.Checkpoint, encoder: vgg.Encoder, size: int, rounds: int) -> dict:
    """A step of the plain loop and of ours: forward, loss, gradient, update."""
    image, painting = picture("astronaut", size), picture("cypresses", size)
    ours = objective.build(Recipe(alpha=0.0, margin=0), encoder, image, painting)
    with torch.no_grad():
        style = {k: plain_moments(x) for k, x in plain_features(checkpoint, painting).items()}
    variable = image.clone().requires_grad_()
    adam = torch.optim.Adam([variable], lr=0.0225)
    plain, fast = alternately(
        rounds,
        lambda: plain_step(checkpoint, variable, adam, style),
        lambda: Adam().step(ours, image, ours(image), (), 0.0225),
    )
    return {"plain step, seconds": plain, "our step, seconds": fast, "plain ÷ ours": plain / fast}


def losses(encoder: vgg.Encoder, size: int, rounds: int) -> dict:
    """The loss and its gradient on the five maps, against the network forward and backward.

    As the program does it, on whole maps: the gradient is added to what has come back to them.
    """
    image = picture("astronaut", size)
    maps = {name: x.detach() for name, x in encoder(image, LAYERS).items()}
    totals = {name: torch.zeros_like(x) for name, x in maps.items()}

    def network() -> None:
        variable = image.clone().requires_grad_()
        taps = encoder(variable, LAYERS)
        torch.autograd.grad([taps[name].sum() for name in LAYERS], variable)

    def loss(method: str, order: int) -> Callable[[], None]:
        recipe = Recipe(method=method, order=order)
        measure = style_of(recipe).build(recipe)
        target = {name: measure.summarize(x[0].permute(1, 2, 0)) for name, x in maps.items()}
        weight = torch.ones(())

        def run() -> None:
            parts = {
                name: objective.style_part(measure, objective.Seen(x, None), target[name])
                for name, x in maps.items()
            }
            for name, part in parts.items():
                part.add(weight, totals[name])

        return run

    found = {}
    for name, method, order in (
        ("cmd, K = 5", "cmd", 5),
        ("cmd, K = 50", "cmd", 50),
        ("mm", "mm", 5),
        ("gram", "gram", 5),
    ):
        whole, part = alternately(rounds, network, loss(method, order))
        found[f"{name} ÷ encoder"] = part / whole
    return found


def in_blocks(encoder: vgg.Encoder, size: int) -> dict:
    """The gradient by blocks against that of the whole image, relative.

    Beside it the error of single precision itself: of the whole image against double precision.
    """
    image, painting = picture("astronaut", size), picture("cypresses", size)
    found, native, wholes = {}, convolution.winograd, {}
    ordinary = vgg.build(checkpoints.load(), interleaved=False)
    for name, kind, network, route in (
        ("double", torch.float64, in_double(), native),
        ("single, ordinary convolutions", torch.float32, ordinary, lambda: None),
        ("single, Winograd", torch.float32, encoder, native),
    ):
        convolution.winograd = route
        pictures = [x.to(kind) for x in (image, painting)]
        start = pictures[0].flip(2) * 0.9
        whole = wholes[name] = objective.build(Recipe(), network, *pictures)(start)[1]
        part = blockwise.build(Recipe(), network, *pictures, side=BLOCK)(start)[1]
        found[name] = {
            "blocks against whole": ((part - whole).norm() / whole.norm()).item(),
            "whole against double": (
                (whole - wholes["double"]).norm() / wholes["double"].norm()
            ).item(),
        }
    return found


def in_double() -> vgg.Encoder:
    checkpoint = checkpoints.load()
    kernels = {name: (a.double(), b.double()) for name, (a, b) in checkpoint.kernels.items()}
    return vgg.build(replace(checkpoint, kernels=kernels))


def growth(encoder: vgg.Encoder, size: int, rounds: int) -> list[dict]:
    """Seconds per megapixel of a look, as the program looks at pictures of growing sizes.

    Each is run alternately with the smallest, whose seconds are the unit.
    """
    smallest, _ = look_at(encoder, (size, size))
    found = []
    for width, height in ((size, size), *GROWTH):
        heap.trim()  # the memory that is free decides on the blocks
        look, side = look_at(encoder, (width, height))
        pixels = width * height
        turns = min(rounds, 2 if pixels >= TWICE else 3 if pixels >= FEW else rounds)
        with heap.apart() if side else nullcontext():
            units, other = alternately(turns, lambda: [smallest() for _ in range(UNITS)], look)
        one = units / UNITS
        del look
        found.append(
            {
                "megapixels": round(width * height / 1e6, 2),
                "side of the blocks": side,
                "seconds per megapixel": other / (width * height / 1e6),
                "÷ smallest": other / one * size * size / (width * height),
            }
        )
        print(json.dumps(found[-1], ensure_ascii=False), flush=True)
    return found


def look_at(encoder: vgg.Encoder, size: tuple[int, int]) -> tuple[Callable[[], object], int | None]:
    """A look of the default recipe, and the side of its blocks where it is made in blocks."""
    content = ImageOps.fit(Image.open(locate("astronaut")), size)
    recipe = Recipe(size=max(size), style_size=512)
    supplies = api.Supplies(encoder=lambda *_: encoder)
    scene = api.open_job(content, locate("cypresses"), recipe, supplies=supplies).scene
    with heap.apart() if scene.in_blocks else nullcontext():
        evaluate = scene.objective_at(scene.size)
    division = scene.division_at(scene.size)
    return lambda: evaluate(scene.content), division.side if division else None


def main(size: int, rounds: int, parts: list[str]) -> None:
    checkpoint = checkpoints.load()
    encoder = vgg.build(checkpoint)
    path = DATA / "bench.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    result = known.setdefault(machine(), {})
    result |= {"size": size, "rounds": rounds}
    measures = {
        "step": lambda: steps(checkpoint, encoder, size, rounds),
        "loss": lambda: losses(encoder, size, rounds),
        "blocks": lambda: in_blocks(encoder, size),
        "growth": lambda: growth(encoder, size, rounds),
    }
    for name in parts or measures:
        result[name] = measures[name]()
        print(name, json.dumps(result[name], indent=1, ensure_ascii=False), flush=True)
        files.write_atomically(path, (json.dumps(known, indent=1) + "\n").encode())


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3]]
    main(*(numbers + [512, 7][len(numbers) :]), sys.argv[3:])
