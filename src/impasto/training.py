"""Training of the decoders: encode pieces of pictures, learn to give them back.

The levels learn in turn from the same pieces, so that what they share serves all of them. The loss
of a level is the logarithm of its squared error: decibels, which makes hard and easy levels equally
heavy. Squared error alone blurs where the truth cannot be known, so the deep levels are also asked
for the features of the truth. What the network makes of a level, one level finer, is drawn towards
what the door of that level makes of the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.blocks import STRIDE
from impasto.maths.raster import resize
from impasto.networks import decoder
from impasto.networks.vgg import Encoder
from impasto.recipe import CHANNELS
from impasto.types import Features, Image

LOOKS, LOOK = 300, 256  # pieces that the least squares see, and their side in pixels
POSITIONS = 60_000  # of a level in all of them together
RIDGE = 1e-4  # of the mean square of the features: keeps directions that never vary small
ALONG = 0.3  # weight of the states on the way
SHARP, SHARP_FROM = {"relu2_1": 0.5, "relu3_1": 0.5}, 3  # weights of features, and the levels
SMALLEST_SCALE = 0.4  # to which pictures are shrunk before a piece is cut
BETAS, EPS = (0.9, 0.99), 1e-8  # of Adam
TINY = 1e-6  # keeps a logarithm finite where nothing is left to learn
WARM_UP = 100  # steps until the rate is whole
FINE = 20.0  # what is left to paint is so much smaller than unit scale

Levels = dict[int, Features]


@dataclass(frozen=True, kw_only=True)
class Schooling:
    """How to train."""

    steps: int = 20_000
    batch: int = 2
    crop: int = 128  # pixels; a multiple of 16
    rate: float = 1e-3
    seed: int = 0


@dataclass(kw_only=True, eq=False)
class Student:
    """A decoder in training: all that is needed to go on."""

    kernels: dict[str, Tensor]  # 'door5.weight', 'door5.bias', …
    moments: dict[str, Tensor] = field(default_factory=dict)  # of Adam: 'door5.weight.1', …
    step: int = 0


def encode(encoder: Encoder, images: Sequence[Image]) -> Levels:
    """The features of pictures of one size, one after the other: NNPACK wants single images."""
    taps = [f"relu{level}_1" for level in decoder.LEVELS]
    with torch.no_grad():
        found = [encoder(image, taps) for image in images]
    return {
        level: torch.cat([each[tap] for each in found])
        for level, tap in zip(decoder.LEVELS, taps, strict=True)
    }


def begin(encoder: Encoder, pictures: Sequence[Image], *, seed: int = 0) -> Student:
    """A student that knows the linear maps and nothing else."""
    generator = torch.Generator().manual_seed(seed)
    kernels = {}
    for name, shape in decoder.shapes().items():
        if not name.startswith("skip"):
            # Nothing is painted at first: the student begins with what the linear maps know.
            spread = 0.0 if name == "paint" else math.sqrt(2 / math.prod(shape[1:]))
            kernels[f"{name}.weight"] = torch.randn(shape, generator=generator) * spread
            kernels[f"{name}.bias"] = torch.zeros(shape[0])
    for level, (weight, bias, scale) in fit_linear(encoder, pictures, generator).items():
        kernels[f"skip{level}.weight"], kernels[f"skip{level}.bias"] = weight, bias
        if level in decoder.WIDTHS:  # a door gets features of unit scale
            kernels[f"door{level}.weight"] /= scale[:, None, None]
            kernels[f"scale{level}"] = scale
    return Student(kernels=kernels)


def fit_linear(
    encoder: Encoder, pictures: Sequence[Image], generator: torch.Generator
) -> dict[int, tuple[Tensor, Tensor, Tensor]]:
    """Least squares of the colors on 3×3 features: kernel, bias, root mean square by channel."""
    sums = {}
    for level in decoder.LEVELS:
        size = 9 * CHANNELS[f"conv{level}_1"] + 1
        sums[level] = torch.zeros(size, size), torch.zeros(size, 3 * decoder.grid(level) ** 2)
    for _ in range(LOOKS):
        image = pieces(pictures, crop=LOOK, count=1, generator=generator)
        for level, features in encode(encoder, list(image)).items():
            square, cross = sums[level]
            chosen = torch.randperm(features[0, 0].numel(), generator=generator)
            chosen = chosen[: POSITIONS // LOOKS]
            x = torch.cat([_patches(features, chosen), torch.ones(len(chosen), 1)], 1)
            coarse = F.avg_pool2d(image, 2 ** (level - 1) // decoder.grid(level))
            colors = F.pixel_unshuffle(coarse, decoder.grid(level))[0].flatten(1).T
            square.addmm_(x.T, x)
            cross.addmm_(x.T, colors[chosen])
    return {level: _solved(*sums[level]) for level in decoder.LEVELS}


def _solved(square: Tensor, cross: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    ridge = RIDGE * square.diagonal()[:-1].mean() * torch.eye(len(square))
    ridge[-1, -1] = 0
    solution = torch.linalg.solve((square + ridge).double(), cross.double()).float()
    weight = solution[:-1].T.reshape(cross.shape[1], -1, 3, 3).contiguous()
    centers = square.diagonal()[:-1].reshape(-1, 3, 3)[:, 1, 1] / square[-1, -1]
    return weight, solution[-1].clone(), centers.sqrt().clamp_min(1e-3)


def _patches(features: Features, chosen: Tensor) -> Tensor:
    """The 3×3 neighborhoods (n, 9 C) of some positions, zeros beyond the border."""
    width = features.shape[3]
    padded = F.pad(features[0], (1, 1, 1, 1))
    row, column = chosen // width, chosen % width
    shifted = [padded[:, row + dy, column + dx] for dy in range(3) for dx in range(3)]
    return torch.stack(shifted, -1).transpose(0, 1).flatten(1)


def pieces(
    pictures: Sequence[Image], *, crop: int, count: int, generator: torch.Generator
) -> Tensor:
    """Squares (n, 3, crop, crop) at random places, scales and orientations."""

    def draw(low: float, high: float) -> float:
        return low + (high - low) * torch.rand((), generator=generator).item()

    found = []
    for _ in range(count):
        picture = pictures[int(draw(0, len(pictures)))]
        height, width = picture.shape[1:]
        shrink = min(1.0, max(draw(SMALLEST_SCALE, 1.2), crop / min(height, width)))
        side = min(int(crop / shrink), height, width)
        top, left = int(draw(0, height - side + 1)), int(draw(0, width - side + 1))
        piece = resize(picture[:, top : top + side, left : left + side], (crop, crop))
        found.append(piece.flip(2) if draw(0, 1) < 0.5 else piece)
    return torch.stack(found)


def losses(
    kernels: dict[str, Tensor], encoder: Encoder, features: Levels, images: Tensor, level: int
) -> dict[str, Tensor]:
    """The logarithms of what a level leaves: of the image, its features, the states on the way."""

    def convolve(name: str, x: Tensor) -> Tensor:
        weight = kernels[f"{name}.weight"]
        return F.conv2d(x, weight, kernels[f"{name}.bias"], padding=weight.shape[-1] // 2)

    found: dict[str, Tensor] = {}
    state = decoder.enter(convolve, features[level], level)
    for coarse in range(level, 2, -1):
        state = decoder.rise(convolve, state, coarse)
        with torch.no_grad():
            wanted = decoder.enter(convolve, features[coarse - 1], coarse - 1)
        found[f"way{coarse}"] = ALONG * _left(state, wanted)
    with torch.no_grad():
        base = decoder.decode_linearly(convolve, features[level], level)
    painted = base + decoder.paint(convolve, state)
    found[f"relu{level}_1"] = (painted - images).square().mean().log()
    if level >= SHARP_FROM:
        seen = [encoder(image, SHARP) for image in painted]
        for tap, weight in SHARP.items():
            again = torch.cat([each[tap] for each in seen])
            found[f"relu{level}_1 by {tap}"] = weight * _left(again, features[int(tap[4])])
    return found


def _left(found: Tensor, wanted: Tensor) -> Tensor:
    """The logarithm of the share of the truth that is not there."""
    return ((found - wanted).square().mean() / (wanted.square().mean() + TINY) + TINY).log()


def validate(
    kernels: dict[str, Tensor], encoder: Encoder, pictures: Sequence[Image]
) -> dict[str, float]:
    """The mean PSNR in dB of every level, encoded and decoded again."""
    network = decoder.Doors(name="student", sha256="", kernels=kernels)
    found: dict[str, list[float]] = {f"relu{level}_1": [] for level in decoder.LEVELS}
    for picture in pictures:
        height, width = (side // STRIDE * STRIDE for side in picture.shape[1:])
        image = picture[:, :height, :width].contiguous()
        for level, features in encode(encoder, [image]).items():
            with torch.no_grad():
                error = (network(features, level)[0].clamp(0, 1) - image).square().mean()
            found[f"relu{level}_1"].append(-10 * math.log10(max(error.item(), TINY)))
    return {tap: sum(values) / len(values) for tap, values in found.items()}


def finished(student: Student) -> dict[str, Tensor]:
    """What is shipped: the kernels in half precision; a network without training is left out."""
    names = decoder.shapes() if student.step else decoder.LINEAR
    return {
        f"{name}.{part}": student.kernels[f"{name}.{part}"].detach().half().contiguous()
        for name in names
        for part in ("weight", "bias")
    }


def learn(
    student: Student, encoder: Encoder, pictures: Sequence[Image], schooling: Schooling
) -> Iterator[dict[str, float]]:
    """Steps of Adam under a cosine: the losses of each, the student changed in place."""
    names = [name for name in student.kernels if not name.startswith(("skip", "scale"))]
    turns, drawn = list(decoder.WIDTHS), -1
    while student.step < schooling.steps:
        lesson, turn = divmod(student.step, len(turns))
        if lesson != drawn:
            # A generator of its own for every lesson: a run that was interrupted goes on as if not.
            generator = torch.Generator().manual_seed(schooling.seed * 1_000_003 + lesson)
            images = pieces(
                pictures, crop=schooling.crop, count=schooling.batch, generator=generator
            )
            features, drawn = encode(encoder, list(images)), lesson
        leaves = {name: student.kernels[name].detach().requires_grad_() for name in names}
        found = losses({**student.kernels, **leaves}, encoder, features, images, turns[turn])
        total = torch.stack(list(found.values())).sum()
        gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        student.step += 1
        share = student.step / schooling.steps
        rate = schooling.rate * min(1.0, student.step / WARM_UP) * (1 + math.cos(math.pi * share))
        for name, gradient in zip(names, gradients, strict=True):
            if gradient is not None:  # of the doors only one was open
                _update(student, name, gradient, rate / 2)
        yield {name: loss.item() for name, loss in found.items()}


def _update(student: Student, name: str, gradient: Tensor, rate: float) -> None:
    """One step of Adam (Kingma and Ba 2015), as if features and what is painted had unit scale."""
    kernel = student.kernels[name]
    scale = torch.tensor(FINE if name.startswith("paint") else 1.0)
    if name.startswith("door") and name.endswith("weight"):
        scale = student.kernels[f"scale{name[4]}"][:, None, None]
    gradient = gradient / scale
    first = student.moments.setdefault(f"{name}.1", torch.zeros_like(gradient))
    second = student.moments.setdefault(f"{name}.2", torch.zeros_like(gradient))
    first.lerp_(gradient, 1 - BETAS[0])
    second.lerp_(gradient.square(), 1 - BETAS[1])
    mean = first / (1 - BETAS[0] ** student.step)
    spread = (second / (1 - BETAS[1] ** student.step)).sqrt()
    kernel.sub_(rate * mean / (spread + EPS) / scale)
