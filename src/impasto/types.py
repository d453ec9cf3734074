"""The words that the rooms share: what flows between them, and the one error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

Points: TypeAlias = "Tensor"  # (n, d), or (h, w, d): samples of a law on R^d
Features: TypeAlias = "Tensor"  # (1, C, H, W): a tap of the encoder
Image: TypeAlias = "Tensor"  # (3, H, W): sRGB in [0, 1]


class ImpastoError(ValueError):
    """A problem with what was given, said in one sentence that tells what to do."""


class Discrepancy(Protocol):
    """A distance between two laws that are known by samples."""

    def summarize(self, points: Points) -> Any:
        """What the distance needs to know of one law."""

    def compare(self, image: Any, style: Any) -> Tensor:
        """The distance between two summarized laws: a scalar, never negative."""


@runtime_checkable
class Additive(Discrepancy, Protocol):
    """A discrepancy whose summary follows from sums over points: those of parts add up."""

    def gather(self, points: Points, about: Any) -> tuple[Tensor, ...]:
        """The sums over some points, about a pivot that keeps them small."""

    def settle(self, sums: tuple[Tensor, ...], count: int, about: Any) -> Any:
        """The summary of all points, from the sums of their parts."""

    def pivot(self, points: Points) -> Any:
        """A pivot for points like these: a constant."""


@runtime_checkable
class Spreading(Additive, Protocol):
    """An additive one that knows the gradient of its sums without taking them again."""

    def spread(self, points: Points, about: Any, slopes: tuple[Tensor, ...], onto: Points) -> None:
        """Add to something the gradient in the points of their sums times slopes."""


@dataclass(frozen=True)
class Picture:
    """A decoded image: sRGB in [0, 1], its transparency apart."""

    rgb: np.ndarray  # (H, W, 3) float32
    alpha: np.ndarray | None = None  # (H, W) float32, None where all is opaque

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, as people say it."""
        height, width = self.rgb.shape[:2]
        return width, height


@dataclass(frozen=True)
class Losses:
    """The objective and its parts at one image."""

    total: float
    content: float
    style: float
    layers: Mapping[str, float] = field(default_factory=dict)  # unweighted, per style layer

    @property
    def known(self) -> bool:
        """Whether anything was measured: a feed-forward method descends on nothing."""
        return not math.isnan(self.total)


UNKNOWN = Losses(math.nan, math.nan, math.nan)  # of what is not measured on the way


@dataclass(frozen=True)
class Step:
    """One state of the optimization; the losses are those of this very image."""

    index: int  # updates made so far
    steps: int  # updates planned
    losses: Losses
    image: Image
    best: Image  # the image of the lowest total loss so far, at the present size
    best_losses: Losses
    progress: float = 0.0  # share of the work that is done, pixels counted
    reason: str = ""  # why this step is the last one; empty while it goes on
