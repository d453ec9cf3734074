"""Feed-forward methods: seconds per picture beside the plain procedure, and what decoders keep.

python benchmarks/feedforward.py [ROUNDS [IMAGES]]

IMAGES is a folder with photos/kodim01 … kodim24: then the PSNR of encoding and decoding is taken,
at a long side of 512. Writes benchmarks/data/feedforward.json.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

from impasto import process

process.tune()

import torch
from plain import DATA, alternately, machine, plain_features, plain_moments, plain_step

from impasto import api, feedforward, imagefile
from impasto.blocks import STRIDE
from impasto.maths.raster import fit
from impasto.networks import checkpoints, decoders, vgg
from impasto.recipe import FEED_FORWARD, Recipe
from impasto.samples import locate

PLAIN_STEPS = 500
FRAME = 256  # pixels: many pictures of one style, as in a film
LEVELS = (1, 2, 3, 4, 5)


def load(path: Path | str, side: int) -> torch.Tensor:
    return fit(torch.from_numpy(imagefile.read(path).rgb).permute(2, 0, 1), side).contiguous()


def square(name: str, side: int) -> torch.Tensor:
    image = load(locate(name), 2 * side)
    return torch.nn.functional.interpolate(image[None], (side, side), mode="area")[0]


def times(encoder: vgg.Encoder, side: int, rounds: int) -> dict[str, Any]:
    """One picture by every method, and one step of the plain procedure, in turn."""
    content, style = square("astronaut", side), square("cypresses", side)
    checkpoint = checkpoints.load()
    with torch.no_grad():
        target = {k: plain_moments(v) for k, v in plain_features(checkpoint, style).items()}
    image = content.clone().requires_grad_()
    optimizer = torch.optim.Adam([image], lr=0.0225)

    def forward(method: str) -> Any:
        recipe = Recipe(method=method)
        networks = {
            level: api.load_decoder(name, "cpu") for level, name in api.decoders_of(recipe).items()
        }
        settings = {"recipe": recipe, "encoder": encoder, "decoders": networks, "style": style}
        frames = feedforward.Passes(**settings)
        # A frame of many has its style read already; a picture has not.
        return lambda: list((frames if side == FRAME else feedforward.Passes(**settings))(content))

    things = [lambda: plain_step(checkpoint, image, optimizer, target), *map(forward, FEED_FORWARD)]
    step, *seconds = alternately(rounds, *things)
    return {
        "side": side,
        "seconds of the plain procedure": PLAIN_STEPS * step,
        "seconds": dict(zip(FEED_FORWARD, seconds, strict=True)),
        "plain ÷ ours": {
            method: PLAIN_STEPS * step / each
            for method, each in zip(FEED_FORWARD, seconds, strict=True)
        },
    }


def kept(encoder: vgg.Encoder, folder: Path) -> dict[str, Any]:
    """The mean PSNR of the Kodak photos, encoded and decoded."""
    ours, original = decoders.load("impasto"), api.load_decoder("adain-original", "cpu")
    found: dict[str, list[float]] = {}
    paths = sorted(folder.glob("photos/kodim*.jpg"))
    for path in paths:
        image = load(path, 512)
        height, width = (side // STRIDE * STRIDE for side in image.shape[1:])
        image = image[:, :height, :width].contiguous()
        with torch.no_grad():
            taps = encoder(image, [f"relu{level}_1" for level in LEVELS])
            for network, levels in ((ours, LEVELS), (original, (4,))):
                for level in levels:
                    again = network(taps[f"relu{level}_1"], level)[0].clamp(0, 1)
                    error = (again - image).square().mean().item()
                    name = f"{network.name} relu{level}_1"
                    found.setdefault(name, []).append(-10 * math.log10(error))
    return {
        "photos": len(paths),
        "decoder sha256": ours.sha256,
        "PSNR": {name: statistics.mean(values) for name, values in found.items()},
    }


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    encoder = vgg.build(checkpoints.load())
    path = DATA / "feedforward.json"
    data = json.loads(path.read_text()) if path.exists() else {}
    data["machine"] = machine()
    if len(sys.argv) > 2:
        data["decoders"] = kept(encoder, Path(sys.argv[2]))
        path.write_text(json.dumps(data, indent=1) + "\n")
    if rounds:
        data["512"] = times(encoder, 512, rounds)
        data["256"] = times(encoder, FRAME, rounds)
    path.write_text(json.dumps(data, indent=1) + "\n")
    print(json.dumps(data, indent=1))


if __name__ == "__main__":
    main()
