"""Descent on an image: a generator of steps, pure in its state, so that a run can be resumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from impasto.maths.raster import resize
from impasto.maths.spectrum import energies, reweight_
from impasto.recipe import Recipe
from impasto.types import Image, ImpastoError, Losses, Step

Evaluate = Callable[[Image], tuple[Losses, Tensor]]
Evaluation = tuple[Losses, Tensor]

WINDOW = 20  # steps over which the slope of the style loss is taken
FLAT = 0.01  # a relative fall of the style loss over the window that is not worth going on for
PART = 2**24  # numbers of an image that are multiplied at a time
SHALLOW = 0.45  # what a look at the shallow layers costs, in looks at all of them
PAPER_AVERAGE, PAPER_DIFFERENCE = 0.99, 0.001  # of the public code


@dataclass(frozen=True)
class State:
    """All that the rest of a run depends on; nothing in it is ever changed in place."""

    image: Image
    index: int = 0  # updates made in all
    seen: int = -1  # the index whose losses are in styles already: a resumed run looks again
    stage: int = 0
    memory: tuple[Any, ...] = ()  # of the optimizer
    styles: tuple[float, ...] = ()  # style losses of this stage so far
    best: Image | None = None
    best_losses: Losses | None = None


@dataclass(frozen=True)
class Stage:
    """One size of the image and the number of updates made at it."""

    size: tuple[int, int]
    steps: int
    shallow: bool = False  # of the shallow layers alone

    @property
    def work(self) -> float:
        """What an update costs, in pixels that the whole network looks at."""
        return math.prod(self.size) * (SHALLOW if self.shallow else 1)


class Optimizer(Protocol):
    """A rule for the next image."""

    def step(
        self, evaluate: Evaluate, image: Image, at: Evaluation, memory: tuple[Any, ...], rate: float
    ) -> tuple[Image, Evaluation | None, tuple[Any, ...]]:
        """The next image, its evaluation if it was made, and the memory for the step after."""

    def enlarge(self, memory: tuple[Any, ...], size: tuple[int, int]) -> tuple[Any, ...]:
        """The memory for the same image at another size."""

    def bytes(self, numbers: int) -> float:
        """What is kept of an image of so many numbers while it is looked at, itself included."""


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam (Kingma and Ba 2015), kept to colors that exist."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8  # the step is bounded where the gradient has always been 0

    def step(
        self, evaluate: Evaluate, image: Image, at: Evaluation, memory: tuple[Any, ...], rate: float
    ) -> tuple[Image, Evaluation | None, tuple[Any, ...]]:
        """One update, which needs no evaluation of its own."""
        gradient = at[1]
        count, first, second = memory or (0, torch.zeros_like(image), torch.zeros_like(image))
        count += 1
        first = first.lerp(gradient, 1 - self.beta1)
        second = second.lerp(gradient.square(), 1 - self.beta2)
        mean = first / (1 - self.beta1**count)
        spread = (second / (1 - self.beta2**count)).sqrt()
        return (image - rate * mean / (spread + self.eps)).clamp(0, 1), None, (count, first, second)

    def enlarge(self, memory: tuple[Any, ...], size: tuple[int, int]) -> tuple[Any, ...]:
        """Averages of gradients, resampled; the count of steps goes on."""
        if not memory:
            return memory
        count, first, second = memory
        larger = [
            torch.nn.functional.interpolate(part[None], size, mode="bilinear")[0]
            for part in (first, second)
        ]
        return count, *larger

    def bytes(self, numbers: int) -> float:
        """The image, the best, both averages, those of the step before, and gradients."""
        return 9 * 4.0 * numbers


@dataclass(frozen=True, kw_only=True)
class LBFGS:
    """Limited-memory BFGS with a line search that makes every step a descent.

    Its first guess of the curvature is one number per band of frequency and color, from the same
    pairs of changes (:mod:`impasto.maths.spectrum`). The image is kept to [0, 1] by projection;
    steps that the projection spoils are shortened.
    """

    history: int = 8
    numbers: int = 20 * 3 * 2**20  # remembered at most: beyond a megapixel the history is shorter
    exact: int = 3 * 2**20  # numbers of an image from which on it is remembered in 16 bits
    armijo: float = 1e-4  # part of the promised descent that a step must keep
    trials: int = 12
    longest: float = 0.1  # root mean square of a step: the first estimate of curvature may be wild
    contrast: float = 1000.0  # of a band's curvature to that of all: a band may be empty

    def step(
        self, evaluate: Evaluate, image: Image, at: Evaluation, memory: tuple[Any, ...], rate: float
    ) -> tuple[Image, Evaluation | None, tuple[Any, ...]]:
        """One line search along the quasi-Newton direction."""
        losses, gradient = at
        for trial in range(self.trials):
            # Made anew for each trial: that is quick, and to keep it would take an image more.
            candidate, memory = self._candidate(image, gradient, memory, rate, 3.0**-trial)
            promised = _dot(gradient, candidate - image)
            found = evaluate(candidate)
            if found[0].total <= losses.total + self.armijo * promised:
                moved, change = self._kept(candidate - image), self._kept(found[1] - gradient)
                return candidate, found, self._remember(memory, moved, change)
        return image, at, ()  # no descent along it: the next step begins anew

    def _candidate(
        self, image: Image, gradient: Tensor, memory: tuple[Any, ...], rate: float, share: float
    ) -> tuple[Image, tuple[Any, ...]]:
        """The image a share of the way along the direction, and the memory that is worth it."""
        # Pixels that would leave [0, 1] at once take no part in what is promised. Those on which
        # nothing depends stay what they are: a filter of frequencies would move them too.
        bound = ((image <= 0) & (gradient > 0)) | ((image >= 1) & (gradient < 0))
        bound |= gradient == 0
        direction = self._direction(gradient.masked_fill(bound, 0), memory).masked_fill_(bound, 0)
        if not memory or _dot(direction, gradient) >= 0:
            memory = ()
            direction = gradient.masked_fill(bound, 0).neg_()
            direction *= rate / direction.abs().max().clamp_min(1e-30)
        length = share / max(1.0, direction.square().mean().sqrt().item() / self.longest)
        return torch.add(image, direction, alpha=length).clamp_(0, 1), memory

    def enlarge(self, memory: tuple[Any, ...], size: tuple[int, int]) -> tuple[Any, ...]:
        """Curvature is that of one size: another begins anew."""
        return ()

    def bytes(self, numbers: int) -> float:
        """The image, the one that is tried, the gradients of both, and the pairs."""
        width = 4.0 if numbers <= self.exact else 2.0
        return (4 * 4.0 + 2 * width * self._pairs(numbers)) * numbers

    def _pairs(self, numbers: int) -> int:
        return max(1, min(self.history, self.numbers // numbers))

    def _kept(self, difference: Tensor) -> Tensor:
        """A difference as it is remembered."""
        return difference if difference.numel() <= self.exact else difference.bfloat16()

    def _remember(self, memory: tuple[Any, ...], moved: Tensor, change: Tensor) -> tuple[Any, ...]:
        if _dot(moved, change) <= 1e-10 * _dot(change, change):
            return memory  # not convex along it
        bands = torch.stack([energies(moved), energies(change)])
        return (*memory, (moved, change, bands))[-self._pairs(moved.numel()) :]

    def _direction(self, gradient: Tensor, memory: tuple[Any, ...]) -> Tensor:
        """Two-loop recursion (Nocedal 1980); the gradient is used up."""
        q, products, shares = gradient.neg_(), [], []
        for moved, change, _ in reversed(memory):
            products.append(_dot(moved, change))
            shares.append(_dot(moved, q) / products[-1])
            q.sub_(change, alpha=shares[-1])
        if memory:
            softness = self._softness(torch.stack([bands for *_, bands in memory]))
            newest = (softness * memory[-1][2][1]).sum()  # the last change of gradients, softened
            reweight_(q, softness * (products[0] / newest))
        for moved, change, _ in memory:
            q.add_(moved, alpha=shares.pop() - _dot(change, q) / products.pop())
        return q

    def _softness(self, bands: Tensor) -> Tensor:
        """How far a band moves for a change of its gradient, by the pairs: (3, BANDS)."""
        lengths = bands[:, :1].sum((2, 3), keepdim=True)  # of the moves: each pair counts alike
        moved, change = (bands / lengths).sum(0)
        usual = (moved.sum() / change.sum()).sqrt()
        softness = (moved / change).sqrt().nan_to_num(nan=usual.item())
        return softness.clamp(usual / self.contrast, usual * self.contrast)


def _dot(a: Tensor, b: Tensor) -> float:
    kind = torch.promote_types(torch.promote_types(a.dtype, b.dtype), torch.float32)
    parts = zip(a.flatten().split(PART), b.flatten().split(PART), strict=True)
    return sum(torch.dot(x.to(kind), y.to(kind)).item() for x, y in parts)


OPTIMIZERS: dict[str, Optimizer] = {"adam": Adam(), "lbfgs": LBFGS()}


def descend(
    state: State,
    *,
    recipe: Recipe,
    stages: Sequence[Stage],
    objective: Callable[[Stage], Evaluate],
    enlarge: Callable[[Image, tuple[int, int]], Image] = resize,
    until: int | None = None,
) -> Iterator[tuple[Step, State]]:
    """Steps from a state through the stages; the losses of a step are those of its image.

    ``objective`` gives the function to descend on in a stage, ``enlarge`` the image with which
    one of another size begins. The last step says why it is the last. ``until`` ends after so many
    updates, whatever the plan says.
    """
    optimizer = OPTIMIZERS[recipe.optimizer]
    steps = sum(stage.steps for stage in stages)
    until = steps if until is None else min(until, steps)
    evaluate = objective(stages[state.stage])
    at: Evaluation | None = None
    stuck = False  # no way down was found, and there is no memory of curvature to blame
    while True:
        at = at or evaluate(state.image)
        state = _witness(state, at[0])
        last = state.stage == len(stages) - 1
        reason = _reason(state, recipe, until, last) or ("converged" if stuck and last else "")
        step = _step(state, at[0], stages, reason)
        yield step, state
        if reason:
            return
        rate = recipe.learning_rate * _decay(recipe.decay, _stage_progress(state, stages))
        image, at, memory = optimizer.step(evaluate, state.image, at, state.memory, rate)
        stuck = image is state.image and not state.memory
        state = replace(state, image=image, memory=memory, index=state.index + 1)
        if not last and state.index >= sum(stage.steps for stage in stages[: state.stage + 1]):
            before, stage = stages[state.stage : state.stage + 2]
            if stage.size != before.size:
                image, memory = enlarge(image, stage.size), optimizer.enlarge(memory, stage.size)
            state = State(image=image, index=state.index, stage=state.stage + 1, memory=memory)
            del evaluate, at  # of the size before: there may be no room for both
            evaluate, at = objective(stage), None


def _step(state: State, losses: Losses, stages: Sequence[Stage], reason: str) -> Step:
    """What the outside sees of a state that has been witnessed."""
    assert state.best is not None
    assert state.best_losses is not None
    return Step(
        index=state.index,
        steps=sum(stage.steps for stage in stages),
        losses=losses,
        image=state.image,
        best=state.best,
        best_losses=state.best_losses,
        progress=_progress(state.index, stages),
        reason=reason,
    )


def _witness(state: State, losses: Losses) -> State:
    """The state after a look at its losses."""
    if not math.isfinite(losses.total):
        raise ImpastoError(
            f"the loss became {losses.total} after {state.index} steps; try a smaller learning rate"
        )
    if state.seen == state.index:
        return state
    state = replace(state, seen=state.index)
    styles = (*state.styles, losses.style)
    if state.best_losses is None or losses.total < state.best_losses.total:
        return replace(state, styles=styles, best=state.image, best_losses=losses)
    return replace(state, styles=styles)


def _stage_progress(state: State, stages: Sequence[Stage]) -> float:
    before = sum(stage.steps for stage in stages[: state.stage])
    return (state.index - before) / stages[state.stage].steps


def _progress(index: int, stages: Sequence[Stage]) -> float:
    done = work = 0.0
    for stage in stages:
        work += stage.steps * stage.work
        done += min(stage.steps, max(0, index)) * stage.work
        index -= stage.steps
    return done / work if work else 1.0


def _decay(name: str, progress: float) -> float:
    return (1 + math.cos(math.pi * progress)) / 2 if name == "cosine" else 1.0


def _reason(state: State, recipe: Recipe, until: int, last: bool) -> str:
    if state.index >= until:
        return "steps"
    if last and state.best_losses is not None and state.best_losses.total == 0:
        return "zero"
    if last and recipe.stop == "slope" and is_flat(state.styles):
        return "flat"
    if last and recipe.stop == "paper" and is_settled(state.styles):
        return "settled"
    return ""


def is_flat(styles: Sequence[float]) -> bool:
    """Whether the style loss has fallen by less than a hundredth over the window."""
    if len(styles) < WINDOW:
        return False
    half = WINDOW // 2
    before, after = sum(styles[-WINDOW:-half]), sum(styles[-half:])
    return before - after < FLAT / 2 * before


def is_settled(styles: Sequence[float]) -> bool:
    """The rule of the public code: the loss has met its moving average."""
    average = styles[0]
    for loss in styles:
        average = PAPER_AVERAGE * average + (1 - PAPER_AVERAGE) * loss
    return len(styles) > 1 and abs(average - styles[-1]) <= PAPER_DIFFERENCE
