"""Settings: laws over every field of the recipe."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impasto import recipe as recipes
from impasto.discrepancies import DISCREPANCIES
from impasto.discrepancies.styles import STYLES, style_of
from impasto.recipe import (
    CHANNELS,
    FEED_FORWARD,
    KERNELS,
    LAYERS,
    METHODS,
    PRESETS,
    Recipe,
)
from impasto.transfers import TRANSFERS
from impasto.types import ImpastoError

FIELDS = {each.name: each for each in fields(Recipe)}
LISTS = [name for name, each in FIELDS.items() if isinstance(each.default, tuple)]
CHOICES = [name for name, each in FIELDS.items() if each.metadata["choices"]]
WORDS = [name for name, each in FIELDS.items() if isinstance(each.default, str)]
FREE_WORDS = [name for name in WORDS if name not in CHOICES]
NUMBERS = [name for name in FIELDS if name not in LISTS + WORDS]
LARGE = 1e9  # stands for a bound where there is none


def bounds(name: str) -> tuple[float, float]:
    meta = FIELDS[name].metadata
    return max(meta["low"], -LARGE), min(meta["high"], LARGE)


def values_of(name: str) -> st.SearchStrategy[Any]:
    """What a field other than a list accepts."""
    each, (low, high) = FIELDS[name], bounds(name)
    if name in CHOICES:
        return st.sampled_from(each.metadata["choices"])
    if name in FREE_WORDS:
        return st.text(min_size=1)
    if name == "style_size":
        return st.sampled_from([0, "original"]) | st.integers(32, int(high))
    if name == "size":
        return st.just("original") | st.integers(int(low), int(high))
    if isinstance(each.default, int):
        return st.integers(int(low), int(high))
    return st.floats(low, high)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """Any settings that go together."""
    plain = {name: values_of(name) for name in FIELDS if name not in LISTS}
    chosen = draw(st.fixed_dictionaries({}, optional=plain))
    weights = st.floats(0, LARGE)
    chosen["layers"] = draw(st.lists(st.sampled_from(LAYERS), unique=True, max_size=6))
    for name, count in [
        ("layer_weights", len(chosen["layers"]) or 5),
        ("moment_weights", chosen.get("order", FIELDS["order"].default)),
    ]:
        chosen[name] = draw(st.just([]) | st.lists(weights, min_size=count, max_size=count))
    if chosen.get("method") in FEED_FORWARD:  # works at few layers, and not with every decoder
        chosen |= {"layers": [], "layer_weights": [], "decoder": "auto"}
    return chosen


# ── What is right ────────────────────────────────────────────────────────────────────────────────


@given(settings())
def test_a_recipe_survives_json(chosen):
    recipe = Recipe(**chosen)
    told = json.dumps(recipe.to_dict(), allow_nan=False)
    assert Recipe.from_dict(json.loads(told)) == recipe
    assert hash(Recipe.from_dict(json.loads(told))) == hash(recipe)


@given(settings())
def test_a_recipe_holds_what_it_was_given(chosen):
    recipe = Recipe(**chosen)
    for name, value in chosen.items():
        assert getattr(recipe, name) == (tuple(value) if name in LISTS else value)
        assert isinstance(getattr(recipe, name), type(FIELDS[name].default) | str)


@given(settings())
def test_a_recipe_can_be_written_in_words(chosen):
    """As on the command line, where everything is text."""
    words = {
        name: ",".join(map(str, value)) if name in LISTS else str(value)
        for name, value in chosen.items()
    }
    assert Recipe(**words) == Recipe(**chosen)


@given(settings(), settings())
def test_but_changes_what_it_names_and_nothing_else(chosen, other):
    recipe = Recipe(**chosen)
    assert recipe.but() == recipe
    alpha = other.get("alpha", 0.5)
    assert recipe.but(alpha=alpha).to_dict() == {**recipe.to_dict(), "alpha": alpha}


@given(settings())
def test_style_layers_pair_names_and_weights(chosen):
    recipe = Recipe(**chosen)
    found = recipe.style_layers
    assert tuple(found) == (recipe.layers or recipes.default_layers(recipe.method, recipe.decode))
    if recipe.layer_weights:
        assert tuple(found.values()) == recipe.layer_weights
    else:
        assert all(
            weight == 1000 / CHANNELS[name.replace("relu", "conv")] ** 2
            for name, weight in found.items()
        )


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("budget", "90", 90),
        ("budget", "90s", 90),
        ("budget", "2m", 120),
        ("budget", "1.5h", 5400),
        ("budget", "0", 0),
        ("layers", "conv1_1,conv2_1", ("conv1_1", "conv2_1")),
        ("layers", " conv1_1 , relu5_4,", ("conv1_1", "relu5_4")),
        ("layers", "", ()),
        ("layer_weights", "1,0.5,1e-3,0,2", (1, 0.5, 0.001, 0, 2)),
        ("moment_weights", "1, 1, 0, 0, 1", (1, 1, 0, 0, 1)),
        ("size", "original", "original"),
        ("size", "1024", 1024),
        ("style_size", "original", "original"),
        ("style_size", "0", 0),
        ("alpha", "5e-3", 0.005),
        ("steps", "100", 100),
        ("seed", "0", 0),
        ("start", "a picture.png", "a picture.png"),
    ],
)
def test_text_is_understood(name, text, value):
    found = getattr(Recipe(**{name: text}), name)
    assert found == value
    assert type(found) is type(value) or isinstance(found, float)


@pytest.mark.parametrize(
    ("name", "given", "value"), [("steps", 10.0, 10), ("alpha", 1, 1.0), ("size", 64.0, 64)]
)
def test_numbers_take_the_type_of_the_field(name, given, value):
    found = getattr(Recipe(**{name: given}), name)
    assert found == value
    assert type(found) is type(value)


def test_defaults_are_valid_and_stand_once():
    assert Recipe().to_dict() == Recipe.from_dict({}).to_dict()
    for name, each in FIELDS.items():
        assert Recipe(**{name: each.default}) == Recipe()
        assert getattr(Recipe(), name) == each.default


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name):
    recipe = Recipe(**PRESETS[name])
    assert all(getattr(recipe, key) == value for key, value in PRESETS[name].items())
    assert (recipe == Recipe()) == (name == "balanced")


def test_the_preset_of_the_paper_is_what_the_paper_did():
    """Adam from the content by style alone, for at most 500 steps at one size."""
    recipe = Recipe(**PRESETS["paper"])
    assert (recipe.method, recipe.order, recipe.optimizer) == ("cmd", 5, "adam")
    assert (recipe.alpha, recipe.start, recipe.stop) == (0, "content", "paper")
    assert (recipe.steps, recipe.scales) == (500, 1)
    assert list(recipe.style_layers) == [f"conv{block}_1" for block in range(1, 6)]


def test_a_recipe_does_not_change():
    with pytest.raises(FrozenInstanceError):
        Recipe().alpha = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_explains_itself(name):
    meta = FIELDS[name].metadata
    assert meta["help"]
    assert meta["help"][0] != " "
    assert "\n" not in meta["help"]
    assert not meta["help"].endswith(".")
    assert meta["group"] in ("look", "feed-forward", "size", "optimization", "machine")


# ── What is wrong ────────────────────────────────────────────────────────────────────────────────


def wrong_of(name: str) -> st.SearchStrategy[Any]:
    """What a field must refuse: beyond its bounds, of another type, or of no meaning."""
    low, high = FIELDS[name].metadata["low"], FIELDS[name].metadata["high"]
    strange = st.sampled_from([None, object(), {"a": 1}, 1j, b"\xff", math.nan, [[1]], [None]])
    if name in CHOICES:
        known = FIELDS[name].metadata["choices"]
        unknown = st.text(min_size=1).filter(lambda text: text not in known and text.strip(", "))
        if name not in LISTS:
            return unknown | strange | st.integers() | st.just("")
        texts = unknown.filter(lambda text: "," not in text)
        return strange | st.integers() | st.lists(texts | st.integers(), min_size=1)
    if name in FREE_WORDS:
        return strange | st.integers() | st.floats() | st.just("")
    beyond = []
    if math.isfinite(low):
        beyond.append(st.floats(max_value=low, exclude_max=True, allow_nan=False))
        beyond.append(st.integers(max_value=math.ceil(low) - 1))
    if math.isfinite(high):
        beyond.append(st.floats(min_value=high, exclude_min=True, allow_nan=False))
        beyond.append(st.integers(min_value=math.floor(high) + 1))
    text = st.sampled_from(["", "x", "nan", "inf", "-inf", "1,x", "1 2", "--", "0x10", "9" * 400])
    beyond += [st.just(10**400), st.just(-(10**400)), st.just(math.inf)]
    if name in LISTS:
        wrong = st.lists(st.one_of(beyond), min_size=5, max_size=5)
        return wrong | strange | st.just("1,2,nan,4,5") | st.just("x") | st.just(["a"] * 5)
    if isinstance(FIELDS[name].default, int):
        beyond.append(st.floats(0, 100).filter(lambda value: value != int(value)))
        text = text | st.just("1.5")
    return st.one_of(beyond) | text | strange | st.just([1])


@pytest.mark.parametrize("name", FIELDS)
@given(data=st.data())
def test_a_wrong_value_is_one_sentence_about_its_field(name, data):
    value = data.draw(wrong_of(name))
    with pytest.raises(ImpastoError) as caught:
        Recipe(**{name: value})
    text = str(caught.value)
    assert text.startswith(name)
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"layers": ["conv1_1", "conv1_1"]}, "layers"),
        ({"layers": ["conv1_1"], "layer_weights": [1, 2]}, "layer_weights"),
        ({"layer_weights": [1]}, "layer_weights"),
        ({"order": 3, "moment_weights": [1] * 5}, "moment_weights"),
        ({"order": 3, "moment_weights": "1,2"}, "moment_weights"),
        ({"style_size": 31}, "style_size"),
        ({"style_size": 1}, "style_size"),
        ({"budget": "2 weeks"}, "budget"),
        ({"budget": "m"}, "budget"),
        ({"start": ""}, "start"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(settings, named):
    with pytest.raises(ImpastoError) as caught:
        Recipe(**settings)
    assert str(caught.value).startswith(named)
    assert "\n" not in str(caught.value)


def test_an_unknown_setting_is_an_error_that_lists_the_known():
    with pytest.raises(ImpastoError, match="unknown setting 'colour'") as caught:
        Recipe.from_dict({"colour": 1})
    assert all(name in str(caught.value) for name in FIELDS)
    with pytest.raises(ImpastoError, match="unknown setting"):
        Recipe().but(colour=1)


def test_an_unknown_choice_is_an_error_that_lists_the_known():
    with pytest.raises(ImpastoError) as caught:
        Recipe(method="cmdd")
    assert all(name in str(caught.value) for name in METHODS)


# ── One table of methods ─────────────────────────────────────────────────────────────────────────


def test_methods_are_the_discrepancies_and_the_transfers():
    assert set(METHODS) == set(DISCREPANCIES)
    assert set(FEED_FORWARD) == set(TRANSFERS)


def test_every_method_has_a_style_loss_and_none_is_left_over():
    """Every method under every kernel: settings of one method do not hinder another."""
    used = {
        id(style_of(Recipe(method=method, kernel=kernel)))
        for method in METHODS
        for kernel in KERNELS
    }
    assert used == {id(style) for style in STYLES.values()}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_built(method):
    recipe = Recipe(method=method)
    measure = style_of(recipe).build(recipe)
    assert hasattr(measure, "summarize")
    assert hasattr(measure, "compare")
    assert style_of(recipe).weights(recipe).keys() == recipe.style_layers.keys()
    assert METHODS[method].taps in ("conv", "relu")
    assert METHODS[method].description


def test_the_words_need_no_torch():
    script = "import sys, impasto.recipe; print(*({'torch', 'numpy', 'PIL'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


class TestEarly:
    def test_the_layers_up_to_the_third_block_with_their_weights(self):
        recipe = Recipe(method="gram", alpha=0.01)
        assert recipe.early.style_layers == {
            name: recipe.style_layers[name] for name in ("relu1_1", "relu2_1", "relu3_1")
        }
        assert recipe.early.content_layer == "conv3_1"
        assert recipe.early.alpha == recipe.alpha

    def test_a_content_layer_that_is_shallow_stays(self):
        assert Recipe(content_layer="relu2_2").early.content_layer == "relu2_2"

    @pytest.mark.parametrize(
        "settings",
        [
            {"shallow": 0},
            {"alpha": 1.0},
            {"optimizer": "adam"},
            {"budget": 60.0},
            {"layer_weights": (0, 0, 0, 1, 1)},
            {"layer_weights": (1, 1, 1, 0, 0)},
            {"method": "wct"},
            {"method": "wct", "decode": "optimize"},
            {"layers": ("conv4_1", "conv5_1")},
            {"layers": ("conv1_1", "conv2_2")},
        ],
    )
    def test_none_where_all_steps_are_alike(self, settings):
        assert Recipe(**settings).early is None

    def test_none_in_the_procedure_of_the_paper(self):
        assert Recipe.of("paper").early is None
