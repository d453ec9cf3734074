"""The plan of a painting and its steps on the real network."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from impasto.course import SMALLEST_COARSE_SIDE, paint, plan
from impasto.recipe import Recipe
from impasto.scene import arrange

from .conftest import picture


def last(scene, **rest):
    *_, (step, _) = paint(scene, **rest)
    return step


@given(
    size=st.tuples(st.integers(32, 5000), st.integers(32, 5000)),
    steps=st.integers(1, 500),
    scales=st.integers(0, 6),
    shallow=st.integers(0, 50),
)
def test_a_plan_makes_all_steps_from_coarse_to_fine(size, steps, scales, shallow):
    stages = plan(size, Recipe(steps=steps, scales=scales, shallow=shallow))
    assert sum(stage.steps for stage in stages) == steps
    assert all(stage.steps >= 1 for stage in stages)
    assert stages[-1].size == size
    assert not any(stage.shallow for stage in stages[1:])
    if stages[0].shallow:
        early, late = stages.pop(0), stages[0]
        assert early.size == late.size
        assert early.steps <= min(shallow, 2 * late.steps)
    for coarse, fine in pairwise(stages):
        assert max(fine.size) / max(coarse.size) == pytest.approx(2, rel=0.05)
    assert all(min(stage.size) >= min(SMALLEST_COARSE_SIDE, *size) for stage in stages)
    if scales:
        assert len(stages) <= scales


def test_the_style_loss_falls(encoder, photo, painting):
    steps = [
        step
        for step, _ in paint(
            arrange(Recipe(size=64, steps=12, shallow=0), encoder, *map(picture, (photo, painting)))
        )
    ]
    assert steps[-1].losses.style < 0.5 * steps[0].losses.style
    assert steps[-1].image.min() >= 0
    assert steps[-1].image.max() <= 1


class Clock:
    """A clock that every look moves on."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
def test_a_budget_is_kept(encoder, photo, painting, optimizer):
    recipe = Recipe(size=64, budget=20, steps=50, optimizer=optimizer)
    scene = arrange(recipe, encoder, picture(photo), picture(painting))
    clock = Clock(1.0)
    steps = [step for step, _ in paint(scene, clock=clock)]
    assert clock.now <= 20
    assert 3 < steps[-1].index < 20
    assert steps[-1].reason in ("budget", "steps")
    if optimizer == "adam":  # the rate decays over a plan that fits
        assert steps[-1].steps < 20
    rich = arrange(recipe.but(budget=1e6, steps=3), encoder, picture(photo), picture(painting))
    assert last(rich, clock=Clock(1.0)).reason == "steps"


def test_a_budget_that_is_already_spent_still_gives_a_picture(encoder, photo, painting):
    scene = arrange(Recipe(size=64, budget=0.5), encoder, picture(photo), picture(painting))
    step = last(scene, clock=Clock(1.0))
    assert step.best.shape == photo.shape
    assert step.index <= 1


def test_same_recipe_same_pixels(encoder, photo, painting):
    scene = arrange(Recipe(size=64, steps=4), encoder, picture(photo), picture(painting))
    assert torch.equal(last(scene).best, last(scene).best)


def test_first_steps_look_at_shallow_layers_alone(encoder, photo, painting):
    recipe = Recipe(size=64, steps=9, shallow=4)
    steps = [step for step, _ in paint(arrange(recipe, encoder, picture(photo), picture(painting)))]
    layers = [list(step.losses.layers) for step in steps]
    assert layers[:4] == [["conv1_1", "conv2_1", "conv3_1"]] * 4
    assert layers[4:] == [list(recipe.style_layers)] * 6
    assert steps[-1].best_losses.layers.keys() == recipe.style_layers.keys()


def test_shallow_steps_are_cheap_and_lead_most_of_the_way(encoder, photo, painting):
    def style(**settings):
        recipe = Recipe(size=96, stop="never", **settings)
        scene = arrange(recipe, encoder, picture(photo), picture(painting))
        *_, (step, _) = paint(scene)
        return step.losses.style

    assert style(steps=18, shallow=12) < style(steps=6 + 5, shallow=0)


def test_shallow_steps_in_blocks_are_those_of_the_whole(encoder, photo, painting):
    recipe = Recipe(size=300, scales=1, steps=3, shallow=2)
    whole, blocks = (
        [
            step.losses
            for step, _ in paint(
                arrange(recipe, encoder, picture(photo), picture(painting), memory=memory)
            )
        ]
        for memory in (math.inf, 1e8)
    )
    assert [len(losses.layers) for losses in blocks] == [3, 3, 5, 5]
    for one, other in zip(whole, blocks, strict=True):
        assert other.total == pytest.approx(one.total, rel=0.01)
