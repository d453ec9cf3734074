"""How well a picture has the style of one and the content of another, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from impasto.discrepancies import STYLES, UNITS
from impasto.discrepancies.sliced import SlicedWasserstein
from impasto.maths.similarity import ssim
from impasto.networks.vgg import Encoder
from impasto.objective import points_of
from impasto.recipe import CHANNELS, METHODS, Recipe, convolution, default_layers
from impasto.types import Features, Image

HELD_OUT = ("relu1_2", "relu2_2", "relu3_3", "relu4_3")  # no method looks at these by default
HELD_OUT_SEED = 20_210_619  # directions that no optimization has seen


@dataclass(frozen=True, kw_only=True)
class Score:
    """Lower is better, except for SSIM. Values do not depend on the size of the picture."""

    size: tuple[int, int]  # width and height at which it was measured
    style: dict[str, float]  # method -> the style loss that `stylize --method` descends on
    layers: dict[str, dict[str, float]]  # method -> layer -> discrepancy
    content: float
    ssim: float  # to the content; 1 is equal
    held_out: dict[str, float]  # layer -> sliced Wasserstein distance

    @property
    def held_out_mean(self) -> float:
        """One number for what no method optimized."""
        return sum(self.held_out.values()) / len(self.held_out)


def evaluate(
    image: Image, content: Image, style: Image, *, encoder: Encoder, recipe: Recipe | None = None
) -> Score:
    """The score of an image (3, H, W) beside a content of the same size."""
    recipe = recipe or Recipe()
    taps = {tap for method in METHODS for tap in default_layers(method)}
    taps |= {recipe.content_layer, *HELD_OUT}
    with torch.no_grad():
        ours, theirs = encoder(image, taps), encoder(style, taps)
        target = encoder(content, [recipe.content_layer])[recipe.content_layer]
        layers = {method: _per_layer(method, recipe, ours, theirs) for method in METHODS}
        held = SlicedWasserstein(projections=128, seed=HELD_OUT_SEED)
        held_out = {
            tap: held.compare(
                held.summarize(points_of(ours[tap])), held.summarize(points_of(theirs[tap]))
            ).item()
            for tap in HELD_OUT
        }
    return Score(
        size=(image.shape[2], image.shape[1]),
        style={
            method: sum(
                1000
                / CHANNELS[convolution(tap)] ** 2
                * UNITS[method](CHANNELS[convolution(tap)])
                * value
                for tap, value in values.items()
            )
            for method, values in layers.items()
        },
        layers=layers,
        content=(ours[recipe.content_layer] - target).square().mean().item(),
        ssim=ssim(image, content),
        held_out=held_out,
    )


def _per_layer(
    method: str, recipe: Recipe, ours: dict[str, Features], theirs: dict[str, Features]
) -> dict[str, float]:
    measure = STYLES[method](recipe)
    return {
        tap: measure.compare(
            measure.summarize(points_of(ours[tap])), measure.summarize(points_of(theirs[tap]))
        ).item()
        for tap in default_layers(method)
    }
