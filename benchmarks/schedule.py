"""Ways to descend, each with the work of 30 looks at the final size, on ten pairs.

    python benchmarks/schedule.py IMAGES [SIZE]

Writes `benchmarks/data/schedule.json`: the losses of every way on every pair, under the default
objective. Ways that are already in the file are left alone.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from impasto import process

process.tune()

import torch
from paper_trajectories import PAIRS
from plain import DATA, machine

from impasto import api, files
from impasto.maths.raster import resize, scaled
from impasto.optimize import LBFGS, OPTIMIZERS, Stage, State, descend
from impasto.recipe import Recipe
from impasto.types import Losses

LOOKS = 30
AVERAGED = 10  # last iterates
# (divisor of the size, steps, whether of the shallow layers alone): the same work
ONE, TWO = ((1, 30, False),), ((2, 40, False), (1, 20, False))
EARLY = ((1, 26, True), (1, 18, False))
ADAM = {"optimizer": "adam"}
WAYS: dict[str, tuple[tuple[tuple[int, int, bool], ...], dict]] = {
    "lbfgs, color, shallow layers first": (EARLY, {}),
    "lbfgs, color": (ONE, {}),
    "lbfgs without bands, color, shallow layers first": (EARLY, {}),
    "lbfgs without bands, color": (ONE, {}),
    "adam, cosine, color": (ONE, ADAM),
    "lbfgs, color, two scales": (TWO, {}),
    "lbfgs, content": (ONE, {"start": "content"}),
    "adam, cosine, color, two scales": (TWO, ADAM),
    "adam, constant, color, averaged": (ONE, {**ADAM, "decay": "none"}),
    "adam, constant, content": (ONE, {**ADAM, "decay": "none", "start": "content"}),
    "adam, cosine, content": (ONE, {**ADAM, "start": "content"}),
    "adam, constant, color": (ONE, {**ADAM, "decay": "none"}),
    "adam 0.1, cosine, color": (ONE, {**ADAM, "learning_rate": 0.1}),
}


def looks(scene: api.Scene, stages: list[Stage], recipe: Recipe) -> Iterator[tuple[float, State]]:
    """The states of a descent and the looks that each has cost."""
    spent = [0.0]

    objective_of = scene.objectives()

    def objective(stage: Stage):
        evaluate = objective_of(stage)
        share = stage.work / Stage(scene.size, 1).work

        def look(image: torch.Tensor):
            spent[0] += share
            return evaluate(image)

        return look

    start = State(resize(scene.start, stages[0].size))
    for _, state in descend(
        start, recipe=recipe, stages=stages, objective=objective, enlarge=scene.enlarge
    ):
        yield spent[0], state


def run(images: Path, pair: tuple[str, str], size: int, way: str) -> Losses:
    """The losses of the last image that 30 looks led to."""
    shape, settings = WAYS[way]
    # All bands of frequency alike, and as many pairs as it needs then.
    plain = LBFGS(contrast=1.0, history=20)
    OPTIMIZERS["lbfgs"] = plain if "without bands" in way else LBFGS()
    recipe = Recipe(size=size, stop="never", steps=sum(n for _, n, _ in shape), **settings)
    job = api.open_job(images / "photos" / pair[0], images / "paintings" / pair[1], recipe)
    scene = job.scene
    stages = [
        Stage(scaled(scene.size, round(size / part)), steps, shallow=shallow)
        for part, steps, shallow in shape
    ]
    kept: list[torch.Tensor] = []
    for spent, state in looks(scene, stages, recipe):
        if kept and spent > LOOKS + 1:
            break
        kept = [*kept, state.image][-AVERAGED:]
    image = torch.stack(kept).mean(0) if "averaged" in way else kept[-1]
    return scene.objective_at(scene.size).losses(image)


def main(images: Path, size: int) -> None:
    path = DATA / "schedule.json"
    data = json.loads(path.read_text()) if path.exists() else {"size": size, "ways": {}}
    data["machine"] = machine()
    for way in WAYS:
        found = data["ways"].setdefault(way, {})
        for pair in PAIRS:
            name = " × ".join(pair)
            if name not in found:
                losses = run(images, pair, size, way)
                found[name] = {
                    key: round(getattr(losses, key), 5) for key in ("total", "style", "content")
                }
                files.write_atomically(path, (json.dumps(data, indent=1) + "\n").encode())
        medians = [
            statistics.median(one[key] for one in found.values())
            for key in ("total", "style", "content")
        ]
        print(f"{way:40}", *(f"{value:.4f}" for value in medians), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 256)
