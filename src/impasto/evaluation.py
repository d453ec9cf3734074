"""How well a picture has the style of one and the content of another, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from impasto.discrepancies.sliced import SlicedWasserstein
from impasto.discrepancies.styles import style_of
from impasto.maths.similarity import ssim
from impasto.networks.vgg import Encoder
from impasto.objective import points_of
from impasto.recipe import METHODS, Recipe, default_layers
from impasto.types import Features, Image, Points

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


@dataclass(frozen=True, eq=False)
class Taps:
    """The features of one image, and where it can be seen."""

    features: dict[str, Features]
    visible: Tensor | None = None

    def points(self, tap: str, margin: int = 0) -> Points:
        """The points of a layer."""
        return points_of(self.features[tap], self.visible, margin)


def evaluate(
    image: Image,
    content: Image,
    style: Image,
    *,
    encoder: Encoder,
    recipe: Recipe | None = None,
    visible: Tensor | None = None,
    visible_style: Tensor | None = None,
) -> Score:
    """The score of an image (3, H, W) beside a content of the same size.

    What is transparent in the image or in the style does not count, except for SSIM.
    """
    recipe = (recipe or Recipe()).but(layers=(), layer_weights=())
    taps = {tap for method in METHODS for tap in default_layers(method)}
    taps |= {recipe.content_layer, *HELD_OUT}
    with torch.no_grad():
        ours = Taps(encoder(image, taps), visible)
        theirs = Taps(encoder(style, taps), visible_style)
        target = encoder(content, [recipe.content_layer])[recipe.content_layer]
        squares = (ours.features[recipe.content_layer] - target).square()
        layers = {method: per_layer(recipe.but(method=method), ours, theirs) for method in METHODS}
        held = SlicedWasserstein(projections=128, seed=HELD_OUT_SEED)
        held_out = {
            tap: held.compare(*(held.summarize(side.points(tap)) for side in (ours, theirs))).item()
            for tap in HELD_OUT
        }
    return Score(
        size=(image.shape[2], image.shape[1]),
        style={
            method: style_loss(recipe.but(method=method), each) for method, each in layers.items()
        },
        layers=layers,
        content=points_of(squares, visible).mean().item(),
        ssim=ssim(image, content),
        held_out=held_out,
    )


def per_layer(recipe: Recipe, ours: Taps, theirs: Taps) -> dict[str, float]:
    """The discrepancy of a recipe's method at each of its layers."""
    measure = style_of(recipe).build(recipe)
    return {
        tap: measure.compare(
            *(measure.summarize(side.points(tap, recipe.margin)) for side in (ours, theirs))
        ).item()
        for tap in recipe.style_layers
    }


def style_loss(recipe: Recipe, layers: dict[str, float]) -> float:
    """The loss that `stylize` descends on, from the discrepancies of the layers."""
    return sum(weight * layers[tap] for tap, weight in style_of(recipe).weights(recipe).items())


def saturation(encoder: Encoder, image: Image) -> dict[str, float]:
    """The share of features of each layer of cmd that the sigmoid maps to within 0.0025 of 0 or 1.

    Where it is large, CMD sees signs instead of values: |x| > 6.
    """
    taps = default_layers("cmd")
    with torch.no_grad():
        features = encoder(image.to(encoder.mean.device), taps)
    return {tap: (features[tap].abs() > 6).float().mean().item() for tap in taps}
