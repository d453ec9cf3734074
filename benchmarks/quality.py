"""How long `impasto stylize` takes to reach what the paper's procedure ends with.

    python benchmarks/quality.py IMAGES SIZE [FLAGS OF STYLIZE …]

The ends are those that `paper_trajectories.py` recorded. For each of its pairs, alternately: a few
steps of the plain loop of the public code, of which 500 are the paper's time, and one run of
`impasto stylize` from the start of its process to the file. Both pictures are scored alike.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from impasto import process

process.tune()

import torch
from plain import DATA, alternately, machine, plain_features, plain_moments, plain_step

from impasto import api, files
from impasto.networks import checkpoints
from impasto.recipe import Recipe

STEPS, ROUNDS = 500, 2


def paper_seconds(
    checkpoint: checkpoints.Checkpoint, photo: Path, painting: Path, size: int
) -> float:
    """The time of the paper's procedure, by a few of its steps."""
    scene = api.open_job(photo, painting, Recipe.of("paper", size=size)).scene
    with torch.no_grad():
        style = {k: plain_moments(x) for k, x in plain_features(checkpoint, scene.style).items()}
    image = scene.content.clone().requires_grad_()
    adam = torch.optim.Adam([image], lr=0.0225)
    (seconds,) = alternately(ROUNDS, lambda: plain_step(checkpoint, image, adam, style))
    return STEPS * seconds


def ours(
    photo: Path, painting: Path, size: int, flags: list[str]
) -> tuple[float, dict[str, float]]:
    """The seconds of a process, and the score of its picture."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.png"
        words = [sys.executable, "-m", "impasto", "stylize", str(photo), str(painting), "-o"]
        began = time.perf_counter()
        subprocess.run([*words, str(out), "--size", str(size), "--quiet", *flags], check=True)
        seconds = time.perf_counter() - began
        score = api.score(out, photo, painting)
    return seconds, {"style": score.style["cmd"], "content": score.content}


def main(images: Path, size: int, flags: list[str]) -> None:
    checkpoint = checkpoints.load()
    recorded = json.loads((DATA / f"paper_trajectories_{size}.json").read_text())["pairs"]
    pairs = {}
    for name, trajectory in recorded.items():
        photo, painting = name.split(" × ")
        paths = images / "photos" / photo, images / "paintings" / painting
        paper = paper_seconds(checkpoint, *paths, size)
        seconds, score = ours(*paths, size, flags)
        end = trajectory["end"]
        pairs[name] = {
            "paper": {"seconds": round(paper, 1), **end},
            "impasto": {"seconds": round(seconds, 1), **score},
            "times faster": round(paper / seconds, 1),
            "reached": all(score[key] <= end[key] for key in ("style", "content")),
        }
        print(name, json.dumps(pairs[name]), flush=True)
    result = {
        "size": size,
        "flags": " ".join(flags),
        "machine": machine(),
        "pairs": pairs,
        "reached": sum(pair["reached"] for pair in pairs.values()),
        "median times faster": statistics.median(pair["times faster"] for pair in pairs.values()),
    }
    files.write_atomically(
        DATA / f"quality_{size}.json", (json.dumps(result, indent=1) + "\n").encode()
    )
    print(f"{result['reached']} of {len(pairs)} reached, median {result['median times faster']} ×")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
