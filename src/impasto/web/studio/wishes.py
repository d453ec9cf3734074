"""What a request may ask for: settings as the recipe knows them, without any path among them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from impasto.recipe import (
    DECODERS,
    EVERY_METHOD,
    FEED_FORWARD,
    LAYERS,
    PRESETS,
    Recipe,
    default_layers,
)
from impasto.types import ImpastoError

STARTS = ("content", "color", "noise", *FEED_FORWARD)
# The settings that may name a file on the command line: here only these words, and for the start
# the id of a picture.
WORDS: dict[str, tuple[str, ...]] = {
    "start": STARTS,
    "weights": ("oxford", "torchvision"),
    "decoder": DECODERS,
    "device": (),
}
PATTERNS: dict[str, str] = {
    "start": r"[0-9a-z]{1,32}",
    "device": r"auto|cpu|mps|cuda(:\d{1,2})?",
}
SKETCH_SIDE = 112  # pixels: a step takes a tenth of a second or two
SKETCH_STEPS, SKETCH_LEAST = 12, 4
SKETCH_SECONDS = 1.4  # after which no further step is begun
SMALLEST = 32  # the short side that the network needs


def recipe_of(preset: str, settings: Mapping[str, Any]) -> Recipe:
    """The recipe that a request describes, or a sentence on what is wrong with it."""
    if preset and preset not in PRESETS:
        raise ImpastoError(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}")
    recipe = Recipe.from_dict({**PRESETS.get(preset, {}), **settings})
    for name, words in WORDS.items():
        given = getattr(recipe, name)
        if given not in words and not re.fullmatch(PATTERNS.get(name, ""), given):
            raise ImpastoError(f"{name}: {given!r} is not known here")
    return recipe


def sketch_of(recipe: Recipe, content: tuple[int, int], style: tuple[int, int]) -> Recipe:
    """The same recipe, small and quick; sizes are width and height of the pictures."""
    size = max(content) if recipe.size == "original" else int(recipe.size)
    side = min(size, max(SKETCH_SIDE, _least_side(content)))
    strokes = max(style) if recipe.style_size == "original" else int(recipe.style_size) or size
    return recipe.but(
        size=side,
        style_size=max(round(strokes * side / size), _least_side(style)),
        steps=min(recipe.steps, SKETCH_STEPS),
        scales=1,
        shallow=0,  # it must show what every setting does
        budget=0.0,
    )


def schema() -> dict[str, Any]:
    """Everything that a page needs to ask for a recipe: it is read off the recipe itself."""
    return {
        "settings": [_described(each) for each in fields(Recipe)],
        "presets": PRESETS,
        "methods": {
            name: {
                "description": method.description,
                "layers": default_layers(name),
                "feed_forward": name in FEED_FORWARD,
            }
            for name, method in EVERY_METHOD.items()
        },
        "layer_weights": Recipe(layers=LAYERS).style_layers,
    }


def _described(each: Any) -> dict[str, Any]:
    meta = each.metadata
    assert each.default is not MISSING
    many = isinstance(each.default, tuple)
    choices = [*(meta["choices"] or WORDS.get(each.name, ()))]
    return {
        "name": each.name,
        "group": meta["group"],
        "help": meta["help"],
        "kind": "list" if many else type(each.default).__name__,
        "numeric": not isinstance(each.default, str) and not (many and choices),
        "free": meta["parse"].__name__ in ("side", "seconds", "size_in_bytes"),  # 'original', '2m'
        "default": list(each.default) if many else each.default,
        "choices": choices,
        "methods": _methods(meta["help"]),
        "low": meta["low"] if math.isfinite(meta["low"]) else None,
        "high": meta["high"] if math.isfinite(meta["high"]) else None,
    }


def _methods(help: str) -> list[str]:
    """The methods that a setting is for: its help begins with them, or it is for all."""
    first = help.partition(":")[0]
    names = list(FEED_FORWARD) if first == "feed-forward methods" else first.split(", ")
    return names if all(name in EVERY_METHOD for name in names) else list(EVERY_METHOD)


def _least_side(size: tuple[int, int]) -> int:
    """The long side at which the short one is enough for the network."""
    return math.ceil((SMALLEST + 1) * max(size) / min(size))
