"""The course of a painting: the plan of its steps, the steps, and the time they take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace

from impasto import heap
from impasto.maths.raster import resize, scaled
from impasto.optimize import Stage, State, descend
from impasto.recipe import Recipe
from impasto.scene import COARSE, Scene
from impasto.types import UNKNOWN, Step

SMALLEST_COARSE_SIDE = 64  # a coarser start than this has lost the content
RESERVE = 0.06  # of a budget is kept for what cannot be measured before: enlarging, saving


def paint(
    scene: Scene,
    *,
    state: State | None = None,
    until: int | None = None,
    began: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[Step, State]]:
    """Steps of a scene from its start or from a state.

    A budget counts from ``began``; it shortens a plan of several sizes or of a decaying rate by
    what a step at the coarsest size takes, and it ends the run before a step that would not fit.
    """
    with heap.apart() if scene.in_blocks else nullcontext():
        yield from _paint(scene, state, until, clock() if began is None else began, clock)


def _paint(
    scene: Scene,
    state: State | None,
    until: int | None,
    began: float,
    clock: Callable[[], float],
) -> Iterator[tuple[Step, State]]:
    recipe = scene.recipe
    if recipe.passes:
        yield from _forward(scene, state or State(scene.content), until or len(recipe.passes))
        return
    deadline = began + recipe.budget * (1 - RESERVE) if recipe.budget else None
    stages = plan(scene.size, recipe)
    if deadline is not None and (len(stages) > 1 or recipe.optimizer == "adam"):
        stages = _within(scene, stages, deadline, clock)  # the others need no plan to end well
    last = clock()
    ends = {sum(stage.steps for stage in stages[: k + 1]) for k in range(len(stages) - 1)}
    for step, after in descend(
        state or State(resize(scene.start, stages[0].size)),  # no name of ours holds on to it
        recipe=recipe,
        stages=stages,
        objective=scene.objectives(),
        enlarge=scene.enlarge,
        until=until,
    ):
        now = clock()
        next_takes = (now - last) * (5 if step.index + 1 in ends else 1)  # then four times as large
        if deadline is not None and not step.reason and now + next_takes > deadline:
            yield replace(step, reason="budget"), after
            return
        yield step, after
        last = now


def _forward(scene: Scene, state: State, until: int) -> Iterator[tuple[Step, State]]:
    """The passes of a feed-forward method as steps; nothing is measured on the way."""
    levels, index = scene.recipe.passes, state.index
    for image in scene.passes(scene.size, done=index, image=state.image):
        index += 1
        step = Step(
            index=index,
            steps=len(levels),
            losses=UNKNOWN,
            image=image,
            best=image,
            best_losses=UNKNOWN,
            progress=index / len(levels),
            reason="done" if index >= min(until, len(levels)) else "",
        )
        yield step, State(image, index=index)
        if step.reason:
            return


def plan(size: tuple[int, int], recipe: Recipe, steps: int = 0) -> list[Stage]:
    """Sizes from coarse to fine, each twice the one before, and the updates made at each.

    The first ones at the coarsest size are shallow. In all there are those of the recipe, or as
    many as are asked for.
    """
    steps = steps or recipe.steps
    scales = recipe.scales or 1 + max(0, round(math.log2(max(size) / COARSE)))
    sizes = [size]
    while len(sizes) < min(scales, steps):
        half = scaled(size, round(max(size) / 2 ** len(sizes)))
        if min(half) < SMALLEST_COARSE_SIDE:
            break
        sizes.append(half)
    counts, left = [], steps
    for number in range(len(sizes)):  # each size gets half the steps of the coarser one before it
        rest = len(sizes) - number - 1
        counts.append(min(max(1, round(left / (2 - 0.5**rest))), left - rest))
        left -= counts[-1]
    stages = [Stage(size, count) for size, count in zip(reversed(sizes), counts, strict=True)]
    first = stages[0]
    shallow = min(recipe.shallow, first.steps * 2 // 3) if recipe.early else 0
    if shallow:
        early, late = Stage(first.size, shallow, shallow=True), first.steps - shallow
        stages[:1] = [early, replace(first, steps=late)]
    return stages


def forecast(scene: Scene, clock: Callable[[], float] = time.monotonic) -> float:
    """The seconds that the plan of a scene will take, judged by a step at its coarsest size."""
    if scene.recipe.passes:
        size = min(scene.size, scaled(scene.size, COARSE))
        before = clock()
        for _ in scene.passes(size):
            pass
        return (clock() - before) * math.prod(scene.size) / math.prod(size)
    stages = plan(scene.size, scene.recipe)
    return _pace(scene, stages[0].size, clock) * _work(scene, stages)


def _within(
    scene: Scene, stages: list[Stage], deadline: float, clock: Callable[[], float]
) -> list[Stage]:
    """The longest plan that ends before the deadline, judged by one step at the coarsest size."""
    recipe = scene.recipe
    pace = _pace(scene, stages[0].size, clock)
    left = deadline - clock()
    for steps in range(recipe.steps, len(stages) - 1, -1):
        shorter = plan(scene.size, recipe, steps)
        if _work(scene, shorter) * pace <= left:
            return shorter
    # Not even a step at the final size: the deadline ends it before, and the coarse is enlarged.
    return stages


def _pace(scene: Scene, size: tuple[int, int], clock: Callable[[], float]) -> float:
    """The seconds that a step takes per pixel."""
    evaluate, start = scene.objective_at(size), resize(scene.start, size)
    evaluate(start)  # the first one also warms up
    before = clock()
    evaluate(start)
    return (clock() - before) / math.prod(size) / _in_blocks(scene, size)


def _in_blocks(scene: Scene, size: tuple[int, int]) -> float:
    """What a look costs in the blocks of a size, in looks at the same picture as a whole."""
    division = scene.division_at(size)
    return 1.0 if division is None else division.work


def _work(scene: Scene, stages: list[Stage]) -> float:
    """What a plan costs, in pixels that are looked at as a whole.

    A build costs about a step: content and style are encoded once per size.
    """
    return sum((stage.steps + 1) * stage.work * _in_blocks(scene, stage.size) for stage in stages)
