"""Training of the decoders: encode pieces of pictures, solve for the maps that give them back.

Least squares of the colors on 3×3 features. All that is learned from a piece are sums of products,
so that a training can end at any piece and go on from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.blocks import STRIDE
from impasto.maths.raster import resize
from impasto.networks import decoder
from impasto.networks.vgg import Encoder
from impasto.recipe import CHANNELS
from impasto.types import Features, Image

SIDE = 256  # of a piece, in pixels
POSITIONS = 250  # of every level of a piece
RIDGE = 1e-4  # of the mean square of the features: keeps directions that never vary small
SMALLEST_SCALE = 0.4  # to which pictures are shrunk before a piece is cut
TINY = 1e-6  # keeps a logarithm finite where nothing is left to learn

Kernels = dict[str, Tensor]


@dataclass(kw_only=True, eq=False)
class Student:
    """What was learned so far: of every level the products of features, with each other and with
    the colors, summed over positions."""

    features: dict[int, Tensor]
    colors: dict[int, Tensor]
    pieces: int = 0


def begin() -> Student:
    """A student that knows nothing."""
    sizes = {level: 9 * CHANNELS[f"conv{level}_1"] + 1 for level in decoder.LEVELS}
    return Student(
        features={level: torch.zeros(size, size) for level, size in sizes.items()},
        colors={
            level: torch.zeros(size, 3 * decoder.grid(level) ** 2) for level, size in sizes.items()
        },
    )


def learn(
    student: Student, encoder: Encoder, pictures: Sequence[Image], *, pieces: int, seed: int = 0
) -> Iterator[int]:
    """The number of pieces learned, after each; the student is changed in place."""
    while student.pieces < pieces:
        # A generator of its own for every piece: a run that was interrupted goes on as if not.
        generator = torch.Generator().manual_seed(seed * 1_000_003 + student.pieces)
        image = piece(pictures, generator)
        for level, features in encode(encoder, image).items():
            chosen = torch.randperm(features[0, 0].numel(), generator=generator)[:POSITIONS]
            x = torch.cat([_patches(features, chosen), torch.ones(len(chosen), 1)], 1)
            coarse = F.avg_pool2d(image[None], 2 ** (level - 1) // decoder.grid(level))
            colors = F.pixel_unshuffle(coarse, decoder.grid(level))[0].flatten(1).T
            student.features[level].addmm_(x.T, x)
            student.colors[level].addmm_(x.T, colors[chosen])
        student.pieces += 1
        yield student.pieces


def piece(pictures: Sequence[Image], generator: torch.Generator) -> Image:
    """A square at a random place, scale and orientation."""

    def draw(low: float, high: float) -> float:
        return low + (high - low) * torch.rand((), generator=generator).item()

    picture = pictures[int(draw(0, len(pictures)))]
    height, width = picture.shape[1:]
    shrink = min(1.0, max(draw(SMALLEST_SCALE, 1.2), SIDE / min(height, width)))
    side = min(int(SIDE / shrink), height, width)
    top, left = int(draw(0, height - side + 1)), int(draw(0, width - side + 1))
    found = resize(picture[:, top : top + side, left : left + side], (SIDE, SIDE))
    return found.flip(2) if draw(0, 1) < 0.5 else found


def encode(encoder: Encoder, image: Image) -> dict[int, Features]:
    """The features of every level."""
    with torch.no_grad():
        found = encoder(image, [f"relu{level}_1" for level in decoder.LEVELS])
    return {level: found[f"relu{level}_1"] for level in decoder.LEVELS}


def solve(student: Student) -> Kernels:
    """The best maps by what was learned: 'relu5_1.weight', 'relu5_1.bias', …"""
    kernels: Kernels = {}
    for level in decoder.LEVELS:
        weight, bias = _solved(student.features[level], student.colors[level])
        kernels |= {f"relu{level}_1.weight": weight, f"relu{level}_1.bias": bias}
    return kernels


def _solved(square: Tensor, cross: Tensor) -> tuple[Tensor, Tensor]:
    ridge = RIDGE * square.diagonal()[:-1].mean() * torch.eye(len(square))
    ridge[-1, -1] = 0
    solution = torch.linalg.solve((square + ridge).double(), cross.double()).float()
    return solution[:-1].T.reshape(cross.shape[1], -1, 3, 3).contiguous(), solution[-1].clone()


def _patches(features: Features, chosen: Tensor) -> Tensor:
    """The 3×3 neighborhoods (n, 9 C) of some positions, zeros beyond the border."""
    width = features.shape[3]
    padded = F.pad(features[0], (1, 1, 1, 1))
    row, column = chosen // width, chosen % width
    shifted = [padded[:, row + dy, column + dx] for dy in range(3) for dx in range(3)]
    return torch.stack(shifted, -1).transpose(0, 1).flatten(1)


def validate(kernels: Kernels, encoder: Encoder, pictures: Sequence[Image]) -> dict[str, float]:
    """The mean PSNR in dB of every level, encoded and decoded again."""
    network = decoder.Linear(name="student", sha256="", kernels=kernels)
    found: dict[str, list[float]] = {f"relu{level}_1": [] for level in decoder.LEVELS}
    for picture in pictures:
        height, width = (side // STRIDE * STRIDE for side in picture.shape[1:])
        image = picture[:, :height, :width].contiguous()
        for level, features in encode(encoder, image).items():
            with torch.no_grad():
                error = (network(features, level)[0].clamp(0, 1) - image).square().mean()
            found[f"relu{level}_1"].append(-10 * math.log10(max(error.item(), TINY)))
    return {tap: sum(values) / len(values) for tap, values in found.items()}
