"""Record how the losses of the paper's procedure fall, over 500 steps and ten pairs.

    python benchmarks/paper_trajectories.py IMAGES SIZE

IMAGES holds `photos/` and `paintings/` with the files of PAIRS. The procedure is the preset `paper`
(Adam at a constant rate from the content, style loss alone) without its stop rule; where the rule
would have ended is noted. The last picture is scored as any picture is, by the default objective,
and kept in `benchmarks/data/pictures`, which is not versioned. Pairs that are already in the data
file are left alone, so that the script can be stopped and started again. Hours on two cores at 512.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from impasto import process

process.tune()

from plain import DATA, machine

from impasto import api, files
from impasto.optimize import is_settled
from impasto.recipe import Recipe

STEPS = 500
PAIRS = (
    ("kodim04.jpg", "delaunay-portrait.jpg"),
    ("kodim05.jpg", "kandinsky-composition-vii.jpg"),
    ("kodim07.jpg", "monet.jpg"),
    ("kodim12.jpg", "gauguin-tahiti.jpg"),
    ("kodim15.jpg", "munch-scream.jpg"),
    ("kodim17.jpg", "van-gogh-self-portrait.jpg"),
    ("kodim19.jpg", "hokusai-great-wave.jpg"),
    ("kodim21.jpg", "turner-shipwreck.jpg"),
    ("kodim22.jpg", "van-gogh-olive-trees.jpg"),
    ("kodim23.jpg", "van-gogh-starry-night.jpg"),
)
PICTURES = DATA / "pictures"


def trajectory(images: Path, photo: str, painting: str, size: int) -> dict[str, object]:
    """Style and content losses at steps 0 … 500, and the step at which the rule would stop."""
    recipe = Recipe.of("paper", size=size, steps=STEPS, stop="never")
    job = api.open_job(images / "photos" / photo, images / "paintings" / painting, recipe)
    style, content = [], []
    for step, _ in api.steps_of(job):
        style.append(round(step.losses.style, 6))
        content.append(round(step.losses.content, 5))
        print(f"\r{photo} × {painting}: {step.index} {style[-1]:.4f}", end="", flush=True)
    print()
    end = api.finish(job, replace(step, best=step.image, best_losses=step.losses), [step.losses])
    end.save(PICTURES / f"paper_{size}_{Path(photo).stem}_{Path(painting).stem}.png")
    settled = next((k for k in range(2, STEPS) if is_settled(style[: k + 1])), None)
    score = api.score(end.array, *(source.path for source in job.sources.values()))
    return {
        "style": style,
        "content": content,
        "settled": settled,
        "end": {"style": score.style["cmd"], "content": score.content},
    }


def main(images: Path, size: int) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = DATA / f"paper_trajectories_{size}.json"
    data = json.loads(path.read_text()) if path.exists() else {"size": size, "pairs": {}}
    data["machine"] = machine()
    for photo, painting in PAIRS:
        name = f"{photo} × {painting}"
        if name not in data["pairs"]:
            data["pairs"][name] = trajectory(images, photo, painting, size)
            files.write_atomically(path, (json.dumps(data) + "\n").encode())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]))
