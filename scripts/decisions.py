"""The figures of decisions 1, 2 and 4, measured again.

    python scripts/decisions.py IMAGES [PART …]

IMAGES has the folders `photos` and `paintings` with the pictures that are named below. Parts:
`scales` (1) shares of features beyond ±6 by normalization, `optimizers` (2) total losses after 30
and 60 steps, `margin` (4) the frame that zero padding paints. Prints, and writes
`benchmarks/data/decisions.json`; parts that are not named stay as they were.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from impasto import process

process.tune()

import torch
from torch import Tensor

from impasto import api, files, imagefile
from impasto.evaluation import saturation
from impasto.maths.raster import fit
from impasto.networks import checkpoints, vgg
from impasto.recipe import CHANNELS, Recipe

OUTPUT = Path(__file__).parents[1] / "benchmarks" / "data" / "decisions.json"
SIZE = 256
PAIRS = {
    "parrots × Starry Night": ("kodim23.jpg", "van-gogh-starry-night.jpg"),
    "portrait × The Scream": ("kodim15.jpg", "munch-scream.jpg"),
    "lighthouse × The Great Wave": ("kodim19.jpg", "hokusai-great-wave.jpg"),
}
ADAM = {"optimizer": "adam", "learning_rate": 0.05, "decay": "cosine"}
EDGES: dict[str, Callable[[Tensor, int], Tensor]] = {  # the n-th row or column from an edge
    "top": lambda image, n: image[:, n, :],
    "right": lambda image, n: image[:, :, -1 - n],
    "bottom": lambda image, n: image[:, -1 - n, :],
    "left": lambda image, n: image[:, :, n],
}


def encoder_of(scales: dict[str, Tensor] | None) -> vgg.Encoder:
    """The embedded network in its own units, or divided by scales."""
    kernels = checkpoints.raw_oxford()
    return vgg.build(
        checkpoints.Checkpoint(
            name="oxford",
            sha256="",
            kernels=kernels if scales is None else checkpoints.rescale(kernels, scales),
            mean=checkpoints.OXFORD_MEAN,
            std=(1.0, 1.0, 1.0),
        )
    )


def paths_of(images: Path, pair: str) -> tuple[Path, Path]:
    photo, painting = PAIRS[pair]
    return images / "photos" / photo, images / "paintings" / painting


def pictures(images: Path) -> list[Tensor]:
    paths = [path for pair in PAIRS for path in paths_of(images, pair)]
    return [fit(torch.from_numpy(imagefile.read(p).rgb).permute(2, 0, 1), SIZE) for p in paths]


def mean_activations(images: list[Tensor]) -> dict[str, Tensor]:
    """The mean of every rectified channel: what Gatys' normalization makes 1."""
    raw, taps = encoder_of(None), [name.replace("conv", "relu") for name in CHANNELS]
    with torch.no_grad():
        means = [{k: x.mean((0, 2, 3)) for k, x in raw(image, taps).items()} for image in images]
    return {
        name: torch.stack([each[name.replace("conv", "relu")] for each in means])
        .mean(0)
        .clamp(min=1e-3)  # a channel that is never on
        for name in CHANNELS
    }


def scales(images: Path) -> dict[str, Any]:
    """Per normalization and layer, the share of features beyond ±6, over the six pictures."""
    shown = pictures(images)
    ways = {
        "raw": encoder_of(None),
        "mean activation 1 (Gatys)": encoder_of(mean_activations(shown)),
        "deviation 2.5 before rectification (ours)": encoder_of(checkpoints.oxford_scales()),
    }
    found = {}
    for way, encoder in ways.items():
        shares = [saturation(encoder, image) for image in shown]
        found[way] = {
            layer: round(sum(each[layer] for each in shares) / len(shares), 3)
            for layer in shares[0]
        }
    return found


def paint(images: Path, pair: str, **settings: Any) -> api.Result:
    common = {"size": SIZE, "stop": "never", "scales": 1, "shallow": 0}
    return api.stylize(*paths_of(images, pair), **common, **settings)


def optimizers(images: Path) -> dict[str, Any]:
    """The lowest total losses of 30 and of 60 steps from the color start."""

    def lowest(pair: str, steps: int, **settings: Any) -> float:
        history = paint(images, pair, steps=steps, **settings).history
        return round(min(losses.total for losses in history), 4)

    ways = {"Adam 0.05, cosine": ADAM, "L-BFGS": {}}
    return {
        pair: {
            f"{way}, {steps} steps": lowest(pair, steps, **settings)
            for steps in (30, 60)
            for way, settings in ways.items()
        }
        for pair in PAIRS
    }


def margin(images: Path) -> dict[str, Any]:
    """How far the outermost row or column is from the fifth, in levels of 255."""

    def frame(image: Tensor) -> dict[str, int]:
        return {
            name: round(255 * (edge(image, 0).mean(1) - edge(image, 4).mean(1)).abs().max().item())
            for name, edge in EDGES.items()
        }

    pair = "lighthouse × The Great Wave"
    job = api.open_job(*paths_of(images, pair), Recipe(size=SIZE))
    found = {"start": frame(job.scene.start)}
    for wide in (0, 1, 2):
        array = paint(images, pair, steps=60, margin=wide).array
        found[f"margin {wide}"] = frame(torch.from_numpy(array).permute(2, 0, 1) / 255)
    return found


PARTS = {"scales": scales, "optimizers": optimizers, "margin": margin}


def main(images: Path, *parts: str) -> None:
    data = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    for part in parts or PARTS:
        data[part] = PARTS[part](images)
        print(json.dumps({part: data[part]}, indent=1, ensure_ascii=False), flush=True)
        data["machine"] = f"torch {torch.__version__}, {SIZE} pixels"
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        files.write_atomically(OUTPUT, text.encode())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
