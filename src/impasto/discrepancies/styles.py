"""Discrepancies as style losses: what a recipe means on the features of an image.

A style loss is Σ_l w_l u_l D_l with the layer weights w_l = 1000 / C_l² of the paper's code. D
comes in different units: a norm over channels (cmd) grows with √C, a sum of squares (mm) with C,
a mean over directions (swd) not at all. u_l = unit · C_l^power brings them together: the power
makes every D grow with √C as cmd does (Gatys' own mean over C² entries is kept), and the unit
makes the loss of an unpainted photo as large as cmd's, in the median of the pairs of
``scripts/calibrate_units.py``, which prints these numbers. So one α means the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from impasto.discrepancies.central_moments import CentralMoments, JointCentralMoments
from impasto.discrepancies.gaussian import GaussianTransport
from impasto.discrepancies.gram import Gram
from impasto.discrepancies.kernels import MeanEmbedding
from impasto.discrepancies.sliced import SlicedWasserstein
from impasto.discrepancies.statistics import MeanDeviation
from impasto.recipe import CHANNELS, KERNELS, Recipe, convolution
from impasto.types import Discrepancy


class Style(NamedTuple):
    """A discrepancy of feature maps and its units."""

    build: Callable[[Recipe], Discrepancy]
    unit: float
    power: float

    def weights(self, recipe: Recipe) -> dict[str, float]:
        """w_l u_l: the factor of each layer."""
        return {
            tap: weight * self.unit * CHANNELS[convolution(tap)] ** self.power
            for tap, weight in recipe.style_layers.items()
        }


def _cmd(recipe: Recipe) -> Discrepancy:
    return CentralMoments(order=recipe.order, weights=recipe.moment_weights, activation="sigmoid")


def _cmd_joint(recipe: Recipe) -> Discrepancy:
    return JointCentralMoments(
        order=recipe.order,
        weights=recipe.moment_weights,
        projections=recipe.projections,
        seed=recipe.seed,
        activation="sigmoid",
    )


def _mmd(recipe: Recipe) -> Discrepancy:
    return MeanEmbedding(kernel=recipe.kernel, seed=recipe.seed)


def _swd(recipe: Recipe) -> Discrepancy:
    return SlicedWasserstein(projections=recipe.projections, seed=recipe.seed)


STYLES: dict[str, Style] = {
    "cmd": Style(_cmd, 1.0, 0.0),
    "gram": Style(lambda recipe: Gram(), 0.884, -2.0),
    "mmd-linear": Style(_mmd, 0.349, -0.5),
    "mmd-polynomial": Style(_mmd, 0.884, -2.0),
    "mmd-gaussian": Style(_mmd, 1.2, 0.5),
    "mm": Style(lambda recipe: MeanDeviation(), 0.221, -0.5),
    "gaussian-ot": Style(lambda recipe: GaussianTransport(), 0.183, -0.5),
    "swd": Style(_swd, 0.245, 0.5),
    "cmd-joint": Style(_cmd_joint, 1.01, 0.0),
}


def style_of(recipe: Recipe) -> Style:
    """The style loss that a recipe names."""
    return STYLES[f"mmd-{recipe.kernel}" if recipe.method == "mmd" else recipe.method]


def recipes() -> dict[str, Recipe]:
    """A recipe for every entry of the table."""
    named = {name: Recipe(method=name) for name in STYLES if not name.startswith("mmd-")}
    return named | {f"mmd-{kernel}": Recipe(method="mmd", kernel=kernel) for kernel in KERNELS}
