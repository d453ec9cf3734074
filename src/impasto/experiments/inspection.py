"""One picture in the light of feature distributions: before, after, target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from impasto import api, imagefile, process
from impasto.experiments import figures
from impasto.maths.linalg import flat
from impasto.maths.moments import central_moments
from impasto.networks.vgg import Encoder
from impasto.objective import points_of
from impasto.recipe import Recipe, default_layers
from impasto.scene import arrange, to_image
from impasto.types import Image, ImpastoError, Points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOMENTS = 8
BINS = np.linspace(0, 1, 51)
LEAST = 1e-5  # of an error that is drawn on a logarithmic scale
LAYERS = default_layers("cmd")
BYTES = 3000.0  # per pixel of a look at a picture, with what is kept of the others


def inspect(image: Any, content: Any, style: Any, **settings: Any) -> dict[str, Any]:
    """The features of an image beside those of its content and its style, as plain data.

    Pictures and settings are those of :func:`impasto.score`: paths, PIL images, arrays; ``size``,
    ``style_size``, ``weights``, ``device``. Features are σ(conv), the light in which CMD looks.
    """
    recipe = Recipe.from_dict({"size": "original", **settings})
    encoder = api.load_encoder(recipe.weights, recipe.device)
    read = [imagefile.read(each, name="picture") for each in (image, style, content)]
    scene = arrange(recipe, encoder, read[0], read[1], called="inspected")
    height, width = scene.size
    if BYTES * max(height * width, math.prod(scene.style_size)) > process.free_memory():
        raise ImpastoError(
            f"{width}×{height} pixels are too many to inspect in the memory that is free; choose "
            f"a smaller --size"
        )
    wanted = to_image(read[2], scene.size, scene.device)
    looks = {
        "before": (wanted, scene.visible),
        "after": (scene.content, scene.visible),
        "target": (scene.style, scene.visible_style),
    }
    sides = {name: _points(encoder, *look) for name, look in looks.items()}
    layers = {layer: described({n: side[layer] for n, side in sides.items()}) for layer in LAYERS}
    return {"size": [width, height], "bins": BINS.tolist(), "layers": layers}


def described(sides: dict[str, Points]) -> dict[str, Any]:
    """Histograms and moment errors of one layer, from points (n, C) before, after and target.

    Histograms are of all channels together and of the one whose mean had the longest way to go.
    """
    moments = {
        name: central_moments(points, MOMENTS, activation="sigmoid")
        for name, points in sides.items()
    }
    channel = int((moments["before"][0] - moments["target"][0]).abs().argmax())
    units = {name: torch.sigmoid(flat(points)) for name, points in sides.items()}
    return {
        "histograms": {name: _histogram(points) for name, points in units.items()},
        "channel": {
            "index": channel,
            "histograms": {name: _histogram(points[:, channel]) for name, points in units.items()},
        },
        "residuals": {
            name: torch.linalg.vector_norm(moments[name] - moments["target"], dim=1).tolist()
            for name in ("before", "after")
        },
    }


def sentence(data: dict[str, Any]) -> str:
    """How much of the errors is left, for people."""
    told = []
    for layer, each in data["layers"].items():
        before, after = (sum(each["residuals"][name][:5]) for name in ("before", "after"))
        told.append(f"{layer} {after / before:.0%}" if before else f"{layer} –")
    return "left of the errors of the moments 1 … 5: " + ", ".join(told)


def draw(data: dict[str, Any]) -> Figure:
    """Histograms of every layer, of one channel of each, and what is left of the moments."""
    colors = {"before": figures.BEFORE, "target": figures.TARGET, "after": figures.AFTER}
    figure = figures.blank(2.3 * len(data["layers"]), 6.2)
    axes = figure.subplots(3, len(data["layers"]), sharey="row")
    for column, (layer, each) in enumerate(data["layers"].items()):
        parts = (each["histograms"], each["channel"]["histograms"])
        titles = (f"σ({layer}), all channels", f"σ({layer}), channel {each['channel']['index']}")
        for place, part, title in zip(axes[:2, column], parts, titles, strict=True):
            for name, color in colors.items():
                filled = name == "before"
                place.stairs(
                    part[name], data["bins"], color=color, fill=filled, linewidth=1.3, label=name
                )
            place.set_title(title)
            place.set_yscale("symlog", linthresh=1)
            place.tick_params(left=False, labelleft=False, which="both")
        orders = np.arange(1, MOMENTS + 1)
        for name, shift in (("before", -0.2), ("after", 0.2)):
            left = [max(value, LEAST) for value in each["residuals"][name]]
            axes[2, column].bar(orders + shift, left, 0.4, color=colors[name])
        axes[2, column].set_yscale("log")
        axes[2, column].set_xticks(orders)
        axes[2, column].set_title("error of moment k")
    axes[0, 0].legend(fontsize=7.5)
    return figure


def _points(encoder: Encoder, image: Image, visible: torch.Tensor | None) -> dict[str, Points]:
    with torch.no_grad():
        taps = encoder(image, LAYERS)
    return {layer: points_of(taps[layer], visible) for layer in LAYERS}


def _histogram(values: torch.Tensor) -> list[float]:
    counts = np.histogram(values.cpu().numpy(), BINS)[0]
    return (counts / counts.sum() / np.diff(BINS)).tolist()
