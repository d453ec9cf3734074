"""Eq. 1 on the real network."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from impasto import objective
from impasto.discrepancies.styles import STYLES, recipes, style_of
from impasto.networks import convolution
from impasto.recipe import Recipe


@pytest.mark.parametrize("name", STYLES)
def test_an_image_is_at_distance_zero_from_itself(encoder, photo, name):
    losses, gradient = objective.build(recipes()[name], encoder, photo, photo)(photo)
    scale = objective.build(recipes()[name], encoder, photo, photo.flip(0)).losses(photo).style
    assert losses.content == 0
    assert losses.style <= 1e-5 * scale
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", STYLES)
def test_the_gradient_is_the_slope(encoder, photo, painting, name):
    recipe = recipes()[name].but(alpha=0.2)
    function = objective.build(recipe, encoder, photo, painting)
    image = photo.flip(2) * 0.8 + 0.1
    losses, gradient = function(image)
    direction = gradient / gradient.norm()
    length = 1e-2
    ahead = function.losses(image + length * direction).total
    behind = function.losses(image - length * direction).total
    slope = (ahead - behind) / (2 * length)
    assert slope == pytest.approx(gradient.norm().item(), rel=0.03)
    assert losses.total == pytest.approx(function.losses(image).total, rel=1e-5)


@given(alpha=st.floats(0, 1))
def test_alpha_is_the_weight_of_the_content(encoder, photo, painting, alpha):
    recipe = Recipe(alpha=alpha, layers="conv1_1,conv2_1", content_layer="conv2_1")
    losses = objective.build(recipe, encoder, photo, painting).losses(photo.flip(1))
    assert losses.total == pytest.approx(
        alpha * losses.content + (1 - alpha) * losses.style, rel=1e-5
    )


def test_the_style_is_the_weighted_sum_of_the_layers(encoder, photo, painting):
    recipe = Recipe(layers="conv1_1,relu2_1", layer_weights="2,0.5")
    losses = objective.build(recipe, encoder, photo, painting).losses(photo)
    assert set(losses.layers) == {"conv1_1", "relu2_1"}
    expected = 2 * losses.layers["conv1_1"] + 0.5 * losses.layers["relu2_1"]
    assert losses.style == pytest.approx(expected, rel=1e-5)


def test_layer_weights_of_the_paper(encoder):
    weights = style_of(Recipe()).weights(Recipe())
    assert weights == {
        "conv1_1": 1000 / 64**2,
        "conv2_1": 1000 / 128**2,
        "conv3_1": 1000 / 256**2,
        "conv4_1": 1000 / 512**2,
        "conv5_1": 1000 / 512**2,
    }


def test_the_content_loss_is_a_mean_of_squares_on_the_raw_convolution(encoder, photo, painting):
    image = photo.flip(2)
    function = objective.build(Recipe(), encoder, photo, painting)
    ours = encoder(image, ["conv4_1"])["conv4_1"]
    theirs = encoder(photo, ["conv4_1"])["conv4_1"]
    assert theirs.min() < 0
    expected = torch.nn.functional.mse_loss(ours, theirs).item()
    assert function.losses(image).content == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", STYLES)
def test_values_do_not_depend_on_the_size(encoder, photo, painting, name):
    """Four copies of a picture have its statistics, but for the seams."""
    function = objective.build(recipes()[name], encoder, photo, painting)
    tiled = photo.repeat(1, 2, 2)
    larger = objective.build(recipes()[name], encoder, tiled, painting.repeat(1, 2, 2))
    assert larger.losses(tiled).style == pytest.approx(function.losses(photo).style, rel=0.15)


def test_units_make_the_methods_comparable(encoder, photo, painting):
    """One α for all: at the start no style loss is ten times that of cmd, or a tenth of it."""
    style = {
        name: objective.build(recipe, encoder, photo, painting).losses(photo).style
        for name, recipe in recipes().items()
    }
    assert all(0.1 < value / style["cmd"] < 10 for value in style.values()), style


def test_transparent_places_do_not_count(encoder, photo, painting):
    visible = torch.ones(photo.shape[1:])
    visible[:, 32:] = 0
    recipe = Recipe(layers="conv1_1", content_layer="conv1_1")
    function = objective.build(recipe, encoder, photo, painting, visible=visible)
    other = photo.clone()
    other[:, :, 34:] = 1 - other[:, :, 34:]  # conv1_1 sees one pixel around
    assert function.losses(other) == function.losses(photo)
    other = photo.clone()
    other[:, :, :30] = 1 - other[:, :, :30]
    assert function.losses(other).content > 0.1
    style = objective.build(recipe, encoder, photo, photo, visible_style=visible)
    half = objective.build(recipe, encoder, photo, photo[:, :, :32])
    assert style.losses(photo).style == pytest.approx(half.losses(photo).style, rel=0.2)


def test_smoothing_terms(encoder, photo, painting):
    base = objective.build(Recipe(), encoder, photo, painting).losses(photo.flip(1)).total
    flat = torch.full_like(photo, 0.3)
    assert objective.total_variation(flat) == 0
    assert objective.laplacian_loss(photo, photo) == 0
    smooth = objective.build(Recipe(tv=2.0, laplacian=3.0), encoder, photo, painting)
    image = photo.flip(1)
    expected = (
        base
        + 2 * objective.total_variation(image).item()
        + 3 * objective.laplacian_loss(image, photo).item()
    )
    assert smooth.losses(image).total == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", STYLES)
def test_a_lean_trail_leads_to_the_same_gradient(encoder, photo, painting, name, monkeypatch):
    function = objective.build(recipes()[name].but(alpha=0.2), encoder, photo, painting)
    _, expected = function(photo.flip(2))
    monkeypatch.setattr(objective, "LARGE", 0)
    assert torch.equal(function(photo.flip(2))[1], expected)


@pytest.mark.parametrize(
    "taps",
    [
        {"conv1_1"},
        {"relu1_1", "conv2_1"},
        {"conv1_1", "relu1_1", "conv1_2", "relu1_2"},
        {"conv1_2", "relu3_1", "conv3_1", "conv4_4"},
    ],
)
def test_a_watched_trail_leads_to_the_same_gradient(encoder, photo, taps, monkeypatch):
    """The taps of the first convolution are shown row by row, each row once, and not given."""
    monkeypatch.setattr(convolution, "LARGEST_BAND", 12 * 64 * 128)  # rows of the photo
    monkeypatch.setattr(convolution, "FEWEST_ROWS", 6)
    gradients, slope, seen = [], torch.cos, []
    for watch in (None, lambda *rows: seen.append((*rows[:2], rows[2].clone()))):
        found, trail = encoder.trace(photo, taps, watch=watch)

        def add(tap, total, found=found):
            if tap not in found:
                return total
            part = slope(found[tap])
            return part if total is None else total.add_(part)

        def add_rows(tap, top, features, total):
            return total + slope(features)

        assert set(found) == taps - ({"conv1_1", "relu1_1"} if seen else set())
        gradients.append(encoder.back(trail, add, add_rows))
    one, other = gradients
    assert (one - other).norm() < 1e-5 * one.norm()
    for name, whole in encoder(photo, {"conv1_1", "relu1_1"} & taps).items() if seen else ():
        parts = [(top, rows) for tap, top, rows in seen if tap == name]
        assert len(parts) > 1
        assert torch.allclose(torch.cat([rows for _, rows in parts], 2), whole, atol=1e-5)
        assert [top for top, _ in parts] == [
            sum(rows.shape[2] for _, rows in parts[:k]) for k in range(len(parts))
        ]
