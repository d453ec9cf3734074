"""Distances between laws that are known by samples: the table of all, and one function for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from impasto.discrepancies.central_moments import CentralMoments, JointCentralMoments
from impasto.discrepancies.gaussian import GaussianTransport
from impasto.discrepancies.gram import Gram
from impasto.discrepancies.kernels import KernelMeans, MeanEmbedding
from impasto.discrepancies.sliced import SlicedWasserstein
from impasto.discrepancies.statistics import MeanDeviation
from impasto.recipe import Recipe
from impasto.types import Discrepancy, ImpastoError

DISCREPANCIES: dict[str, Callable[..., Discrepancy]] = {
    "cmd": CentralMoments,
    "gram": Gram,
    "mmd": KernelMeans,
    "mm": MeanDeviation,
    "gaussian-ot": GaussianTransport,
    "swd": SlicedWasserstein,
    "cmd-joint": JointCentralMoments,
}

STYLES: dict[str, Callable[[Recipe], Discrepancy]] = {
    "cmd": lambda recipe: CentralMoments(
        order=recipe.order, weights=recipe.moment_weights, activation="sigmoid"
    ),
    "gram": lambda recipe: Gram(),
    "mmd": lambda recipe: MeanEmbedding(kernel=recipe.kernel, seed=recipe.seed),
    "mm": lambda recipe: MeanDeviation(),
    "gaussian-ot": lambda recipe: GaussianTransport(),
    "swd": lambda recipe: SlicedWasserstein(projections=recipe.projections, seed=recipe.seed),
    "cmd-joint": lambda recipe: JointCentralMoments(
        order=recipe.order,
        weights=recipe.moment_weights,
        projections=recipe.projections,
        seed=recipe.seed,
        activation="sigmoid",
    ),
}
"""The discrepancy that a recipe means, on the features of an image."""

UNITS: dict[str, Callable[[int], float]] = {
    "cmd": lambda channels: 1.0,
    "gram": lambda channels: 1.0 / channels**2,
    "mmd": lambda channels: 1.0,
    "mm": lambda channels: 1.0,
    "gaussian-ot": lambda channels: 1.0,
    "swd": lambda channels: 1.0,
    "cmd-joint": lambda channels: 1.0,
}


@overload
def discrepancy(name: str, x: Tensor, y: Tensor, **settings: Any) -> Tensor: ...
@overload
def discrepancy(name: str, x: np.ndarray, y: np.ndarray, **settings: Any) -> float: ...
def discrepancy(name: str, x: Any, y: Any, **settings: Any) -> Any:
    """The distance between two samples, points as rows: x (n, d) and y (m, d).

    Tensors give a differentiable scalar, NumPy arrays a number. Names and settings are those of
    :data:`DISCREPANCIES`, e.g. ``discrepancy("cmd", x, y, order=3)``.
    """
    if name not in DISCREPANCIES:
        raise ImpastoError(f"unknown discrepancy '{name}'; known: {', '.join(DISCREPANCIES)}")
    if not isinstance(x, Tensor):
        return float(discrepancy(name, _tensor(x), _tensor(y), **settings))
    _check(x, y)
    try:
        measure = DISCREPANCIES[name](**settings)
    except TypeError as error:
        raise ImpastoError(f"{name}: {error}") from None
    return measure.compare(measure.summarize(x), measure.summarize(y)).to(x.dtype)


def _tensor(values: Any) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.result_type(values, np.float32)))


def _check(x: Tensor, y: Tensor) -> None:
    for points in (x, y):
        if points.ndim != 2 or 0 in points.shape:
            raise ImpastoError(f"points must have the shape (n, d), not {tuple(points.shape)}")
        if not points.isfinite().all():
            raise ImpastoError("points must be finite; these hold NaN or infinity")
    if x.shape[1] != y.shape[1]:
        raise ImpastoError(f"points of {x.shape[1]} and of {y.shape[1]} coordinates do not compare")
