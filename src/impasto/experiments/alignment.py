"""The central claim, measured: how far the features of the results are from those of the style."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from impasto.evaluation import HELD_OUT
from impasto.experiments import Caption, Data, Row, distances, figures, listed
from impasto.experiments.comparison import orders_of
from impasto.experiments.distances import RAW, RECTIFIED
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import SYSTEMS, Order, Pair, Plan, extensions, missing, title_of
from impasto.maths.votes import CONFIDENCE, RESAMPLES, Interval
from impasto.types import Features, Image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEFORE, HALVES = "content", "halves of the style"  # beside the methods: the scale's two ends
DARK = 1.2  # what is left, at the dark end of a map
LEAST = 1e-9  # of an error whose logarithm is taken
SCORES: dict[str, str] = {  # what one number per picture is a mean of
    "held-out layers": "sliced Wasserstein where no method looks",
    "style layers": "sliced Wasserstein on relu1_1 … relu5_1",
    "moments 1–5": "errors of what CMD matches",
    "moments 6–8": "errors of what no method matches",
    "correlations": "errors of covariances between channels",
    "classifier": "how well it tells the two apart",
}


class Summary(NamedTuple):
    """A mean over pairs with its interval."""

    mean: float
    interval: Interval


def orders(plan: Plan) -> list[Order]:
    """Every method on every pair that is measured: those of the comparison and more."""
    return [order for pair in plan.pairs[: plan.measured] for order in orders_of(pair, plan)]


def measure(plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
    """All distances of all pictures to their styles."""
    pairs = plan.pairs[: plan.measured]
    found, fallen = [], []
    for number, pair in enumerate(pairs):
        fallen.append({"pair": pair.name, **own_losses(gallery, pair)})
        images = {order.recipe.method: gallery.image(order) for order in orders_of(pair, plan)}
        images[BEFORE] = gallery.source(pair.content)
        style = gallery.source(pair.style)
        theirs = distances.features_of(gallery.encoder, style)
        for place, (method, image) in enumerate(images.items()):
            yield (number + place / len(images)) / len(pairs)
            ours = distances.features_of(gallery.encoder, image)
            found.append({"pair": pair.name, "method": method, **measured(ours, theirs)})
        left, right = (distances.features_of(gallery.encoder, half) for half in halves(style))
        found.append({"pair": pair.name, "method": HALVES, **measured(left, right)})
    names = [pair.name for pair in pairs]
    return {"pictures": found, "pairs": names, "own": fallen, "missing": missing()}


def own_losses(gallery: Gallery, pair: Pair) -> dict[str, float]:
    """What each method that descends left of its own style loss: whether it came to its end."""
    found = {}
    for order in orders_of(pair, gallery.plan):
        if losses := gallery.facts(order).get("losses"):
            start, end = (losses[name]["style"] for name in ("start", "end"))
            found[order.recipe.method] = end / max(start, LEAST)
    return found


def measured(ours: dict[str, Features], theirs: dict[str, Features]) -> dict[str, Any]:
    """Every distance between two pictures."""
    return {
        "sliced": distances.sliced(ours, theirs),
        "moments": distances.moment_errors(ours, theirs),
        "correlations": distances.correlation_errors(ours, theirs),
        "classifier": distances.classifier_errors(ours, theirs),
    }


def halves(image: Image) -> tuple[Image, Image]:
    """The left and the right half: how far apart two parts of one style are."""
    middle = image.shape[2] // 2
    return image[..., :middle], image[..., middle:]


def scores(picture: dict[str, Any], before: dict[str, Any]) -> dict[str, float]:
    """One number per measure: what is left of the distance of the content, 0 being the style.

    Geometric means of ratios over layers and orders; of the classifier 1 − 2·error, 0 being
    chance, as it is.
    """
    sliced, moments = picture["sliced"], picture["moments"]
    ratio = {layer: sliced[layer] / max(before["sliced"][layer], LEAST) for layer in sliced}
    orders_left = {
        (layer, k): moments[layer][k] / max(before["moments"][layer][k], LEAST)
        for layer in RAW
        for k in range(distances.MOMENTS)
    }
    errors = picture["classifier"].values()
    return {
        "held-out layers": _geometric([ratio[layer] for layer in HELD_OUT]),
        "style layers": _geometric([ratio[layer] for layer in RECTIFIED]),
        "moments 1–5": _geometric([value for (_, k), value in orders_left.items() if k < 5]),
        "moments 6–8": _geometric([value for (_, k), value in orders_left.items() if k >= 5]),
        "correlations": _geometric(
            [
                picture["correlations"][layer] / max(before["correlations"][layer], LEAST)
                for layer in RAW
            ]
        ),
        "classifier": 1 - 2 * sum(errors) / len(errors),
    }


def table(data: Data) -> dict[str, dict[str, list[float]]]:
    """Method -> score -> a number per pair."""
    before = {each["pair"]: each for each in data["pictures"] if each["method"] == BEFORE}
    found: dict[str, dict[str, list[float]]] = {}
    for picture in data["pictures"]:
        for name, value in scores(picture, before[picture["pair"]]).items():
            found.setdefault(picture["method"], {}).setdefault(name, []).append(value)
    return found


def summary(values: Sequence[float], seed: int = 0) -> Summary:
    """The mean over pairs and its interval by a bootstrap of pairs."""
    array = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(len(array), size=(RESAMPLES, len(array)))
    ends = np.quantile(array[drawn].mean(1), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Summary(float(array.mean()), Interval(*map(float, ends)))


def lead(first: Sequence[float], second: Sequence[float]) -> Summary:
    """How much more the second leaves than the first, pair by pair: above 0 the first is nearer."""
    return summary([b - a for a, b in zip(first, second, strict=True)])


def rows(data: Data) -> list[Row]:
    """A line per method and score."""
    found = table(data)
    lines = []
    for method, each in found.items():
        for name, values in each.items():
            told = summary(values)
            ahead = lead(found["cmd"][name], values)
            lines.append(
                {
                    "method": title_of(method),
                    "measure": name,
                    "left": told.mean,
                    "low": told.interval.low,
                    "high": told.interval.high,
                    "CMD nearer by": ahead.mean,
                    "from": ahead.interval.low,
                    "to": ahead.interval.high,
                    "pairs where CMD is nearer": sum(
                        a < b for a, b in zip(found["cmd"][name], values, strict=True)
                    ),
                }
            )
    return lines


def caption(data: Data) -> Caption:
    """Where CMD wins, where it does not, and what marginal moments lose."""
    found = table(data)
    rivals = [name for name in SYSTEMS.values() if name in found and name != "cmd"]
    verdicts = {name: verdict(found, name, rivals) for name in SCORES}
    told = "; ".join(f"{name}: {text}" for name, (text, _) in verdicts.items())
    clear = [name for name, (_, wins) in verdicts.items() if wins]
    rest = [name for name in SCORES if name not in clear]
    absent = f" Not here yet: {listed(data['missing'])}." if data["missing"] else ""
    ends = {
        name: _geometric([each[name] for each in data["own"]])
        for name in data["own"][0]
        if name != "pair"
    }
    rivals_told = listed([title_of(name) for name in rivals])
    own = listed([f"{title_of(name)} {value:.1%}" for name, value in ends.items()])
    return Caption(
        paper="Claims, without a measurement, that methods of first and second moments align the "
        "features only in part and that CMD aligns them better; it leaves open how much is lost by "
        "taking the moments of each channel alone.",
        seen=f"{len(data['pairs'])} pairs; what is left of the content's distance to the style, "
        f"means with 95 % intervals over pairs. {told}. {_marginal(found)} Of its own style loss "
        f"each method left: {own}.",
        differs=(f"CMD is clearly nearer than each of {rivals_told} by {listed(clear)}. "
        if clear else f"By no measure is CMD clearly nearer than each of {rivals_told}. ")
        + (f"It is not by {listed(rest)}. " if rest and clear else "")
        + ("The moments 1 to 5 are what it descends on. " if "moments 1–5" in clear else "")
        + better_ones(found)
        + "Clearly: the 95 % interval of the difference over pairs is on one side, each comparison "
        "by itself; a photo or a painting may be in more than one pair. "
        f"One procedure and one content weight for all methods.{absent}",
    )  # fmt: skip


def better_ones(found: dict[str, dict[str, list[float]]]) -> str:
    """Which methods that the paper does not have are clearly nearer than CMD, and by what."""
    told = []
    for method in extensions():
        if method in found:
            leads = {name: lead(found["cmd"][name], found[method][name]) for name in SCORES}
            nearer = [name for name, ahead in leads.items() if ahead.interval.high < 0]
            told += [f"{title_of(method)} by {listed(nearer)}"] if nearer else []
    return f"Of ours, clearly nearer than CMD: {'; '.join(told)}. " if told else ""


def verdict(
    found: dict[str, dict[str, list[float]]], name: str, rivals: Sequence[str]
) -> tuple[str, bool]:
    """What CMD leaves by one measure beside its rivals, and whether it beats all clearly."""
    own = summary(found["cmd"][name]).mean
    nearer, farther = [], []
    for rival in rivals:
        ahead = lead(found["cmd"][name], found[rival][name])
        told = f"{title_of(rival)} ({summary(found[rival][name]).mean:.2f})"
        nearer += [told] if ahead.interval.low > 0 else []
        farther += [told] if ahead.interval.high < 0 else []
    text = f"CMD leaves {own:.2f}"
    text += f", clearly less than {listed(nearer)}" if nearer else ""
    text += f", clearly more than {listed(farther)}" if farther else ""
    return text, len(nearer) == len(rivals) > 0


def draw(data: Data, gallery: Gallery) -> Figure:
    """Six scores as points with intervals, and two maps of where the rest is."""
    found = table(data)
    methods = [name for name in found if name != BEFORE]
    figure = figures.blank(11, 0.96 * len(methods) + 2.2)
    parts = figure.subfigures(2, 1, squeeze=False, height_ratios=[1.9, 1])
    places = parts[0, 0].subplots(2, 3, sharey=True)
    for place, (name, text) in zip(places.flat, SCORES.items(), strict=True):
        for y, method in enumerate(reversed(methods)):
            told = summary(found[method][name])
            color = {"cmd": figures.AFTER, HALVES: figures.QUIET}.get(method, figures.TARGET)
            place.plot(told.interval, [y, y], color=color)
            place.plot(told.mean, y, "o", color=color, markersize=4)
        place.set_title(f"{name}:\n{text}")
        place.set_yticks(range(len(methods)), [title_of(each) for each in reversed(methods)])
        place.set_xlim(left=min(0.0, place.get_xlim()[0]))
        place.grid(axis="x", color="#dddddd", linewidth=0.6)
    left, right = parts[1, 0].subplots(1, 2, sharey=True, width_ratios=[9, 8])
    _draw_maps(left, right, data, methods)
    return figure


def _draw_maps(left: Axes, right: Axes, data: Data, methods: Sequence[str]) -> None:
    names = [title_of(each) for each in methods]
    layers = [*RECTIFIED, *HELD_OUT]
    short = [layer.removeprefix("relu") + ("*" if layer in HELD_OUT else "") for layer in layers]
    orders = [f"c{k}" for k in range(1, distances.MOMENTS + 1)]
    values = layer_map(data, methods, layers)
    figures.heatmap(left, values, rows=names, columns=short, high=DARK)
    left.set_title("left of the sliced Wasserstein distance by layer (* held out)")
    figures.heatmap(right, moment_map(data, methods), rows=names, columns=orders, high=DARK)
    right.set_title("left of the error of each moment, mean of the layers")


def layer_map(data: Data, methods: Sequence[str], layers: Sequence[str]) -> np.ndarray:
    """What is left by method and layer: geometric means over pairs."""
    return _map(data, methods, [lambda each, k=layer: each["sliced"][k] for layer in layers])


def moment_map(data: Data, methods: Sequence[str]) -> np.ndarray:
    """What is left by method and order: geometric means over pairs and layers."""
    return _map(
        data,
        methods,
        [
            lambda each, k=k: _geometric([each["moments"][layer][k] for layer in RAW])
            for k in range(distances.MOMENTS)
        ],
    )


def _map(data: Data, methods: Sequence[str], readings: Sequence[Any]) -> np.ndarray:
    before = {each["pair"]: each for each in data["pictures"] if each["method"] == BEFORE}
    return np.array(
        [
            [
                _geometric(
                    [
                        reading(each) / max(reading(before[each["pair"]]), LEAST)
                        for each in data["pictures"]
                        if each["method"] == method
                    ]
                )
                for reading in readings
            ]
            for method in methods
        ]
    )


def _marginal(found: dict[str, dict[str, list[float]]]) -> str:
    """What the moments of single channels lose against those of projections."""
    if "cmd-joint" not in found:
        return ""
    told = []
    for name in ("correlations", "held-out layers", "classifier"):
        ahead = lead(found["cmd-joint"][name], found["cmd"][name])
        low, high = ahead.interval
        told.append(f"{name} {ahead.mean:+.2f} ({low:+.2f} to {high:+.2f})")
    return f"What marginal moments leave more than those of projections: {listed(told)}."


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(value, LEAST)) for value in values) / len(values))
