"""Milliseconds of the routes of a convolution for the shapes of VGG-19.

    python benchmarks/layers.py [ROUNDS]

NNPACK, torch's own with maps that lie channel by channel and position by position, and our compiled
loops there and back.
"""

from __future__ import annotations

import math
import sys

from impasto import process

process.tune()

import torch
import torch.nn.functional as F
from plain import alternately

from impasto.maths.raster import laid
from impasto.networks.convolution import winograd
from impasto.networks.winograd import Kernel, available

SHAPES = [  # channels in, channels out, side of the map
    *((64, 64, side) for side in (256, 512)),
    (128, 128, 256),
    (128, 256, 128),
    *((256, 256, side) for side in (24, 32, 40, 64, 128)),
    *((512, 512, side) for side in (8, 12, 16, 24, 32, 40, 48, 64)),
]


def main(rounds: int) -> None:
    print("in   out  side  NNPACK  torch by channel  by position  loops  back")
    native = winograd()
    for incoming, outgoing, side in SHAPES:
        x = torch.randn(1, incoming, side, side)
        weight = torch.randn(outgoing, incoming, 3, 3) / math.sqrt(9 * incoming)
        bias = torch.zeros(outgoing)
        routes = [lambda x=x, w=weight: native(x, w, None)] if native else []
        for interleaved in (False, True):
            lies, kernel = laid(x, interleaved), laid(weight, interleaved)
            routes += [lambda x=lies, w=kernel, b=bias: F.conv2d(x, w, b, padding=1)]
        if available():
            gradient = laid(torch.randn(1, outgoing, side, side), True)
            transformed = Kernel.of(weight)
            routes += [
                lambda x=lies, k=transformed, b=bias: k.convolve(x, b),
                lambda g=gradient, k=transformed: k.back(g),
            ]
        taken = [f"{1000 * seconds:7.1f}" for seconds in alternately(rounds, *routes)]
        print(f"{incoming:<4} {outgoing:<4} {side:<4}", *taken, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
