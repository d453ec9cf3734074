"""How far the features of two pictures are apart, by measures that no method descends on."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from impasto.discrepancies.sliced import SlicedWasserstein
from impasto.evaluation import HELD_OUT, HELD_OUT_SEED
from impasto.maths.linalg import flat, mean_and_covariance
from impasto.maths.moments import central_moments
from impasto.networks.vgg import Encoder
from impasto.objective import points_of
from impasto.recipe import default_layers
from impasto.types import Features, Image, Points

MOMENTS = 8  # the paper matches five
DIRECTIONS = 128
SORTED = 10_000  # positions of a layer that are sorted at most: at equal distances
HIDDEN, RIDGE, KNOWN, FITS = 256, 0.01, 1000, 30  # of the classifier
RAW, RECTIFIED = default_layers("cmd"), default_layers("gram")


def features_of(encoder: Encoder, image: Image) -> dict[str, Features]:
    """All that the measures look at."""
    with torch.no_grad():
        return encoder(image, {*RAW, *RECTIFIED, *HELD_OUT})


def sliced(
    image: dict[str, Features],
    style: dict[str, Features],
    layers: Iterable[str] = (*RECTIFIED, *HELD_OUT),
) -> dict[str, float]:
    """The root of the sliced Wasserstein distance at each layer.

    Rectified maps, which the rivals of CMD look at and it does not; along directions that no
    optimization has seen.
    """
    measure = SlicedWasserstein(projections=DIRECTIONS, seed=HELD_OUT_SEED)
    return {
        layer: math.sqrt(
            measure.compare(
                *(
                    measure.summarize(few(flat(points_of(side[layer])), SORTED))
                    for side in (image, style)
                )
            )
        )
        for layer in layers
    }


def moment_errors(image: dict[str, Features], style: dict[str, Features]) -> dict[str, list[float]]:
    """‖c_k − c_k‖₂ of sigmoid features at each layer, k = 1 … 8."""
    found = {}
    for layer in RAW:
        ours, theirs = (
            central_moments(points_of(side[layer]), MOMENTS, activation="sigmoid")
            for side in (image, style)
        )
        found[layer] = torch.linalg.vector_norm(ours - theirs, dim=1).tolist()
    return found


def correlation_errors(image: dict[str, Features], style: dict[str, Features]) -> dict[str, float]:
    """The Frobenius distance of the covariances between different channels, sigmoid features.

    It is what marginal moments do not see.
    """
    found = {}
    for layer in RAW:
        ours, theirs = (
            mean_and_covariance(flat(points_of(side[layer])).sigmoid())[1]
            for side in (image, style)
        )
        apart = ours - theirs
        found[layer] = (apart - apart.diag().diag()).norm().item()
    return found


def classifier_errors(image: dict[str, Features], style: dict[str, Features]) -> dict[str, float]:
    """How often a classifier cannot tell the two apart at each held-out layer: 0.5 is chance.

    It learns from one half of both pictures and is asked about the other, both ways around:
    neighbors see almost the same, and must not stand on both sides.
    """
    found = {}
    for layer in HELD_OUT:
        ours, theirs = (_halves(side[layer]) for side in (image, style))
        errors = [
            classifier_error((ours[a], theirs[a]), (ours[1 - a], theirs[1 - a])) for a in (0, 1)
        ]
        found[layer] = sum(errors) / 2
    return found


def classifier_error(known: tuple[Points, Points], asked: tuple[Points, Points]) -> float:
    """The balanced error of a logistic regression on random rectified features.

    ``known`` and ``asked`` hold points (n, d) of either law; it learns from the first.
    """
    both = torch.cat([few(points, KNOWN) for points in known]).double()
    mean, deviation = both.mean(0), both.std(0) + 1e-9  # a channel may be constant
    generator = torch.Generator().manual_seed(HELD_OUT_SEED)
    hidden = torch.randn(both.shape[1], HIDDEN, generator=generator, dtype=both.dtype)
    hidden = hidden.to(both.device) / math.sqrt(both.shape[1])

    def seen(points: Points) -> Tensor:
        units = (few(points, KNOWN).double() - mean) / deviation
        return F.pad(F.relu(units @ hidden), (0, 1), value=1.0)

    weights = _logistic(seen(known[0]), seen(known[1]))
    first, second = ((seen(points) @ weights > 0).double().mean() for points in asked)
    return (((1 - first) + second) / 2).item()


def _logistic(first: Tensor, second: Tensor) -> Tensor:
    """The weights of a ridge-penalized logistic regression that is positive on the first."""
    weights = first.new_zeros(first.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=FITS, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimizer.zero_grad()
        value = F.softplus(-first @ weights).mean() + F.softplus(second @ weights).mean()
        value = value + RIDGE * weights.square().sum()
        value.backward()
        return value.item()

    optimizer.step(loss)
    return weights.detach()


def few(points: Points, most: int) -> Points:
    """At most so many points, at equal distances."""
    return points[:: -(-len(points) // most)]


def _halves(features: Features) -> tuple[Points, Points]:
    """The points of the left and of the right half of a map."""
    middle = features.shape[3] // 2
    return flat(points_of(features[..., :middle])), flat(points_of(features[..., middle:]))
