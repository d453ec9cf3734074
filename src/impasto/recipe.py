"""All settings of a painting: plain data, checked when built, written into every output.

Nothing here imports torch, so that ``impasto --help`` answers at once. A setting is a field of
:class:`Recipe`; the command line, the record and the documentation follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from impasto.settings import (
    checked,
    names,
    number,
    numbers,
    seconds,
    setting,
    side,
    size_in_bytes,
)
from impasto.types import ImpastoError


class Method(NamedTuple):
    """A way to measure style: what it compares, and where it looks."""

    description: str
    taps: str  # 'conv': raw convolutions, as the paper has it for cmd; 'relu': rectified ones


METHODS: dict[str, Method] = {
    "cmd": Method("central moments of every channel (Kalischek et al. 2021)", "conv"),
    "gram": Method("Gram matrices, the original (Gatys et al. 2016)", "relu"),
    "mmd": Method("maximum mean discrepancy under --kernel (Li et al. 2017)", "relu"),
    "mm": Method("mean and deviation of every channel (Li et al. 2017)", "relu"),
    "gaussian-ot": Method("optimal transport between Gaussians, eq. 8 of the paper", "relu"),
    "swd": Method("sliced Wasserstein distance (Bonneel et al. 2015)", "relu"),
    "cmd-joint": Method("central moments of random projections: sees correlations", "conv"),
}
FEED_FORWARD: dict[str, Method] = {
    "adain": Method("one pass: mean and deviation (Huang and Belongie 2017)", "relu"),
    "wct": Method("five passes: whitening and coloring (Li et al. 2017)", "relu"),
    "ost": Method("five passes: optimal transport of Gaussians (Lu et al. 2019)", "relu"),
    "histogram": Method("one pass: the whole distribution of every channel", "relu"),
    "ost+histogram": Method("five passes: both, one after the other", "relu"),
}  # a transfer of the features and a decoder; nothing is optimized
ONE_PASS = ("adain", "histogram")  # at relu4_1
PASSES = ("relu5_1", "relu4_1", "relu3_1", "relu2_1", "relu1_1")
EVERY_METHOD = {**METHODS, **FEED_FORWARD}
SETTINGS_OF = {
    "order": ("cmd", "cmd-joint"),
    "moment_weights": ("cmd", "cmd-joint"),
    "projections": ("swd", "cmd-joint"),
    "kernel": ("mmd",),
}  # and of no other methods
STEPS, ONE_GO = "optimization", "feed-forward"  # groups of settings
DECODERS = ("auto", "impasto", "adain-original")
KERNELS = ("linear", "polynomial", "gaussian")
CHANNELS: dict[str, int] = {
    f"conv{block}_{index}": channels
    for block, (count, channels) in enumerate(
        [(2, 64), (2, 128), (4, 256), (4, 512), (4, 512)], start=1
    )
    for index in range(1, count + 1)
}  # the sixteen convolutions of VGG-19 and the number of channels of each
LAYERS = tuple(CHANNELS) + tuple(name.replace("conv", "relu") for name in CHANNELS)
LARGEST_SIDE = 32_768
SHALLOW_LAYER = "conv3_1"  # up to it a look costs little, and the weights say most


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to paint with: the same recipe on the same machine gives the same pixels."""

    method: str = setting(
        "cmd",
        "how style is measured or transferred; see `impasto methods`",
        group="look",
        choices=tuple(EVERY_METHOD),
    )
    alpha: float = setting(
        0.002,
        "weight of the content in [0, 1]: 0 is style only, 1 returns the content",
        group="look",
        parse=number,
        low=0,
        high=1,
    )
    order: int = setting(
        5, "cmd, cmd-joint: highest moment K", group="look", parse=int, low=1, high=100
    )
    moment_weights: tuple[float, ...] = setting(
        (),
        "cmd, cmd-joint: weights a_1,…,a_K of the moments, 0 turns one off (all 1)",
        group="look",
        parse=numbers,
        low=0,
        placeholder="A,…",
    )
    projections: int = setting(
        64, "swd, cmd-joint: random directions", group="look", parse=int, low=1, high=4096
    )
    kernel: str = setting("gaussian", "mmd: the kernel", group="look", choices=KERNELS)
    layers: tuple[str, ...] = setting(
        (),
        "layers whose statistics are the style (1_1 … 5_1; raw for cmd, rectified for others)",
        group="look",
        parse=names,
        choices=LAYERS,
        placeholder="NAME,…",
    )
    layer_weights: tuple[float, ...] = setting(
        (),
        "their weights (1000/C² for a layer of C channels)",
        group="look",
        parse=numbers,
        low=0,
        placeholder="W,…",
    )
    margin: int = setting(
        2,
        "positions at the border of every layer that are no style: zero padding made them",
        group="look",
        parse=int,
        low=0,
        high=8,
    )
    content_layer: str = setting(
        "conv4_1",
        "layer that holds the content",
        group="look",
        choices=LAYERS,
        placeholder="NAME",
    )
    tv: float = setting(
        0.0, "weight of total variation: smoother", group="look", parse=number, low=0
    )
    laplacian: float = setting(
        0.0,
        "weight of the Laplacian loss: keeps the edges of the content",
        group="look",
        parse=number,
        low=0,
    )

    strength: float = setting(
        1.0,
        "feed-forward methods: how much of the style, 0 is a mere copy",
        group=ONE_GO,
        parse=number,
        low=0,
        high=1,
    )
    decoder: str = setting(
        "auto",
        "from features to the picture: 'impasto', 'adain-original' (relu4_1 only), the better one "
        "of both, or a file of `impasto train-decoders`",
        group=ONE_GO,
    )
    decode: str = setting(
        "network",
        "'optimize' needs no decoder: steps towards the transferred features",
        group=ONE_GO,
        choices=("network", "optimize"),
    )

    size: int | str = setting(
        512,
        "long side of the result in pixels, or 'original'",
        group="size",
        parse=side,
        low=32,
        high=LARGEST_SIDE,
    )
    style_size: int | str = setting(
        0,
        "long side of the style: larger gives larger strokes; 0 is that of the result",
        group="size",
        parse=side,
        low=0,
        high=LARGEST_SIDE,
    )

    steps: int = setting(60, "most steps to take", group=STEPS, parse=int, low=1, high=100_000)
    shallow: int = setting(
        30,
        "lbfgs: so many of the first steps, at most two in three, look at the layers up to 3_1 "
        "alone: quick, and most of the way; 0: none",
        group=STEPS,
        parse=int,
        low=0,
        high=100_000,
    )
    optimizer: str = setting("lbfgs", "how steps are taken", group=STEPS, choices=("adam", "lbfgs"))
    learning_rate: float = setting(
        0.05, "length of the first step in RGB [0, 1]", group=STEPS, parse=number, low=1e-6
    )
    decay: str = setting(
        "cosine",
        "course of the step length",
        group=STEPS,
        choices=("cosine", "none"),
    )
    scales: int = setting(
        0,
        "coarse to fine: sizes to paint at, each twice the one before; 0: begin near 512",
        group=STEPS,
        parse=int,
        low=0,
        high=6,
    )
    start: str = setting(
        "color",
        "'content', 'color' (the content in the colors of the style), 'noise', a feed-forward "
        "method, or an image file",
        group=STEPS,
        placeholder="START",
    )
    stop: str = setting(
        "slope",
        "when to end early: the style loss has become flat, the rule of the paper, never",
        group=STEPS,
        choices=("slope", "paper", "never"),
    )
    budget: float = setting(
        0.0,
        "seconds for everything, set-up included (90s, 2m); 0 is no limit",
        group=STEPS,
        parse=seconds,
        low=0,
    )
    seed: int = setting(
        0, "of noise and random projections", group=STEPS, parse=int, low=0, high=2**31
    )

    device: str = setting(
        "auto", "'auto' (the best one present), 'cpu', 'cuda', 'cuda:1', 'mps'", group="machine"
    )
    memory: float = setting(
        0.0,
        "what may be used, e.g. 4GB; a picture that needs more is painted in blocks; 0: most of "
        "what is free",
        group="machine",
        parse=size_in_bytes,
        low=0,
    )
    weights: str = setting(
        "oxford",
        "network: 'oxford' (embedded), 'torchvision', or a file; see `impasto weights`",
        group="machine",
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            value = checked(each.name, each.metadata, getattr(self, each.name), each.default)
            object.__setattr__(self, each.name, value)
        _check_lengths(self)

    def to_dict(self) -> dict[str, Any]:
        """The recipe as JSON data."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        """The recipe that :meth:`to_dict` described; an unknown setting is an error."""
        known = [each.name for each in fields(cls)]
        for name in data:
            if name not in known:
                raise ImpastoError(f"unknown setting '{name}'; known: {', '.join(known)}")
        return cls(**data)

    @classmethod
    def of(cls, preset: str = "", **settings: Any) -> Recipe:
        """A preset with some settings changed."""
        if preset and preset not in PRESETS:
            raise ImpastoError(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}")
        return cls.from_dict({**PRESETS.get(preset, {}), **settings})

    def but(self, **changes: Any) -> Recipe:
        """The same recipe with some settings changed."""
        return Recipe.from_dict({**self.to_dict(), **changes}) if changes else self

    @property
    def style_layers(self) -> dict[str, float]:
        """The layers of the style and w_l of eq. 3: 1000 / C_l² where nothing else was said."""
        taps = self.layers or default_layers(self.method, self.decode)
        weights = self.layer_weights or [1000 / CHANNELS[convolution(tap)] ** 2 for tap in taps]
        return dict(zip(taps, weights, strict=True))

    @property
    def early(self) -> Recipe | None:
        """Of the steps that come first: the shallow layers alone; None where all are alike.

        Where time is short all are: what it allows should have been looked at as a whole.
        """
        if not self.shallow or self.budget or self.alpha == 1 or self.method in FEED_FORWARD:
            return None
        names = list(CHANNELS)

        def is_shallow(tap: str) -> bool:
            return names.index(convolution(tap)) <= names.index(SHALLOW_LAYER)

        counting = {tap: weight for tap, weight in self.style_layers.items() if weight}
        layers = {tap: weight for tap, weight in counting.items() if is_shallow(tap)}
        if self.optimizer != "lbfgs" or len(layers) in (0, len(counting)):
            return None
        return self.but(
            layers=tuple(layers),
            layer_weights=tuple(layers.values()),
            content_layer=self.content_layer if is_shallow(self.content_layer) else SHALLOW_LAYER,
        )

    @property
    def passes(self) -> tuple[int, ...]:
        """The levels at which a feed-forward method transfers, coarse to fine; else none."""
        if self.method not in FEED_FORWARD or self.decode == "optimize":
            return ()
        return tuple(sorted((int(tap[4]) for tap in self.style_layers), reverse=True))

    @property
    def idle(self) -> set[str]:
        """Settings that change nothing: of other methods, or of steps where none are taken."""
        idle = {name for name, methods in SETTINGS_OF.items() if self.method not in methods}
        if self.passes:
            steps = {each.name for each in fields(self) if each.metadata["group"] == STEPS}
            return idle | steps - {"seed"} | {"alpha", "layer_weights", "tv", "laplacian"}
        if not {self.method, self.start} & FEED_FORWARD.keys():
            idle |= {each.name for each in fields(self) if each.metadata["group"] == ONE_GO}
        return idle


PRESETS: dict[str, dict[str, Any]] = {
    # By the number of steps alone: the strokes are there early, the rest is a lower loss.
    "fast": {"steps": 27},
    "balanced": {},
    "best": {"steps": 200},
    # The procedure of the public code, in our units: Adam with 0.1 in ImageNet-normalized
    # units is 0.0225 in RGB; α of the public code weighs the *style* and is 1.
    "paper": {
        "optimizer": "adam",
        "alpha": 0.0,
        "margin": 0,
        "steps": 500,
        "learning_rate": 0.0225,
        "decay": "none",
        "scales": 1,
        "shallow": 0,
        "start": "content",
        "stop": "paper",
    },
}


def default_layers(method: str, decode: str = "network") -> tuple[str, ...]:
    """The five layers of the paper, raw or rectified, or those of the passes."""
    if method in FEED_FORWARD and decode == "network":
        return ("relu4_1",) if method in ONE_PASS else PASSES
    return tuple(f"{EVERY_METHOD[method].taps}{block}_1" for block in range(1, 6))


def convolution(layer: str) -> str:
    """The convolution behind a tap: relu4_1 is conv4_1 rectified."""
    return layer.replace("relu", "conv")


def _check_lengths(recipe: Recipe) -> None:
    if len(set(recipe.layers)) < len(recipe.layers):
        raise ImpastoError(f"layers names one twice: {', '.join(recipe.layers)}")
    if recipe.layer_weights and len(recipe.layer_weights) != len(
        recipe.layers or default_layers(recipe.method, recipe.decode)
    ):
        raise ImpastoError(
            f"layer_weights has {len(recipe.layer_weights)} numbers for "
            f"{len(recipe.layers or default_layers(recipe.method, recipe.decode))} layers"
        )
    if recipe.moment_weights and len(recipe.moment_weights) != recipe.order:
        raise ImpastoError(
            f"moment_weights has {len(recipe.moment_weights)} numbers, order is {recipe.order}"
        )
    if recipe.style_size not in (0, "original") and int(recipe.style_size) < 32:
        raise ImpastoError(f"style_size is {recipe.style_size}; it must be at least 32, or 0")
    known = {f"relu{level}_1" for level in recipe.passes}
    if recipe.passes and not known.issuperset(recipe.layers):
        raise ImpastoError(
            f"method '{recipe.method}' works at relu1_1 … relu5_1, not at "
            f"{', '.join(recipe.layers)}"
        )
    if recipe.decoder == "adain-original" and set(recipe.passes) - {4}:
        raise ImpastoError(
            f"the decoder of AdaIN knows relu4_1 alone and '{recipe.method}' works at "
            f"{', '.join(recipe.style_layers)}; add --layers relu4_1"
        )
    if recipe.decoder == "adain-original" and recipe.start in FEED_FORWARD.keys() - set(ONE_PASS):
        raise ImpastoError(
            f"the decoder of AdaIN knows relu4_1 alone, which is not enough for a start by "
            f"'{recipe.start}'; leave --decoder out, or start with adain"
        )
