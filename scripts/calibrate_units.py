"""Find the units in which every method's style loss is as large as that of cmd.

For each pair of a sample photo and a sample painting (they install with `impasto[demo]`), the
discrepancy of the photo to the painting is measured at the five layers under every method. The
unit of a method is the median over pairs of cmd's style loss divided by the method's, so that the
loss at the beginning, and with it the meaning of α, is the same for all. Prints the table of
shares of the layers and the units that stand in `src/impasto/discrepancies/styles.py`.
"""

from __future__ import annotations

from statistics import median

import torch

from impasto import imagefile
from impasto.discrepancies import styles
from impasto.evaluation import Taps, per_layer
from impasto.maths.raster import fit
from impasto.networks import checkpoints, vgg
from impasto.recipe import default_layers
from impasto.samples import PAINTINGS, PHOTOS, locate

SIDE = 256


def image(name: str) -> torch.Tensor:
    return fit(torch.from_numpy(imagefile.read(locate(name)).rgb).permute(2, 0, 1), SIDE)


def main() -> None:
    encoder = vgg.build(checkpoints.load())
    taps = [tap for method in ("cmd", "gram") for tap in default_layers(method)]
    with torch.no_grad():
        features = {name: Taps(encoder(image(name), taps)) for name in (*PHOTOS, *PAINTINGS)}
        found = {
            name: [
                per_layer(recipe, features[photo], features[painting])
                for photo in PHOTOS
                for painting in PAINTINGS
            ]
            for name, recipe in styles.recipes().items()
        }
    losses = {}
    for name, pairs in found.items():
        recipe = styles.recipes()[name]
        weights = styles.STYLES[name]._replace(unit=1.0).weights(recipe)
        terms = [{tap: weights[tap] * value for tap, value in pair.items()} for pair in pairs]
        losses[name] = [sum(each.values()) for each in terms]
        profile = [median(each[tap] / sum(each.values()) for each in terms) for tap in weights]
        print(f"{name:14}", "  ".join(f"{share:5.1%}" for share in profile))
    for name, own in losses.items():
        ratio = median(a / b for a, b in zip(losses["cmd"], own, strict=True))
        print(f"{name:14} unit {ratio:.3g}")


if __name__ == "__main__":
    main()
