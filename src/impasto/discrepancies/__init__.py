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
from impasto.discrepancies.kernels import KernelMeans
from impasto.discrepancies.sliced import SlicedWasserstein
from impasto.discrepancies.statistics import MeanDeviation
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
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        return float(discrepancy(name, _tensor(x), _tensor(y), **settings))
    x, y = _alike(x, y)
    _check(x, y)
    try:
        measure = DISCREPANCIES[name](**settings)
    except TypeError as error:
        raise ImpastoError(f"{name}: {error}") from None
    return measure.compare(measure.summarize(x), measure.summarize(y)).to(x.dtype)


def _tensor(values: Any) -> Tensor:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ImpastoError(f"points must be real numbers, not {array.dtype}")
    return torch.from_numpy(array.astype(np.float32 if array.dtype.itemsize < 8 else np.float64))


def _alike(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two tensors of one floating type, on the device of the first."""
    x, y = (part if isinstance(part, Tensor) else _tensor(part) for part in (x, y))
    if x.is_complex() or y.is_complex():
        raise ImpastoError("points must be real numbers, not complex ones")
    kind = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    return x.to(kind), y.to(x.device, kind)


def _check(x: Tensor, y: Tensor) -> None:
    for points in (x, y):
        if points.ndim != 2 or 0 in points.shape:
            raise ImpastoError(f"points must have the shape (n, d), not {tuple(points.shape)}")
        if not points.isfinite().all():
            raise ImpastoError("points must be finite; these hold NaN or infinity")
    if x.shape[1] != y.shape[1]:
        raise ImpastoError(f"points of {x.shape[1]} and of {y.shape[1]} coordinates do not compare")
