"""Descent: on functions whose minimum is known, and as a law on states."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from impasto import runfile
from impasto.maths.spectrum import BANDS, reweight_
from impasto.optimize import LBFGS, OPTIMIZERS, Adam, Stage, State, descend, is_flat, is_settled
from impasto.recipe import Recipe
from impasto.types import ImpastoError, Losses

SIZE = (6, 5)


def bowl(size):
    """A quadratic with a condition number of 1000 and its minimum inside [0, 1]."""
    generator = torch.Generator().manual_seed(3)
    target = torch.rand(3, *size, generator=generator, dtype=torch.float64) * 0.6 + 0.2
    curvature = torch.logspace(0, 3, target.numel(), dtype=torch.float64).view_as(target)

    def evaluate(image):
        value = (curvature * (image - target) ** 2).sum().item() / 2
        return Losses(value, 0.0, value), curvature * (image - target)

    evaluate.target = target
    return evaluate


def bowl_of(stage):
    return bowl(stage.size)


def start(size=SIZE):
    return State(torch.full((3, *size), 0.5, dtype=torch.float64))


LONG = (Stage(SIZE, 200),)


def run(recipe, stages=LONG, state=None, **rest):
    return list(
        descend(
            state or start(stages[0].size), recipe=recipe, stages=stages, objective=bowl_of, **rest
        )
    )


def test_lbfgs_really_converges():
    steps = run(Recipe(optimizer="lbfgs", stop="never"))
    last = steps[-1][0]
    assert (last.image - bowl(SIZE).target).abs().max() < 1e-5
    totals = [step.losses.total for step, _ in steps]
    assert all(b <= a for a, b in pairwise(totals))  # always a descent


def test_lbfgs_converges_on_what_it_remembers_in_16_bits(monkeypatch):
    monkeypatch.setitem(OPTIMIZERS, "lbfgs", LBFGS(exact=0))
    steps = run(Recipe(optimizer="lbfgs", stop="never"))
    assert all(x.dtype == torch.bfloat16 for *pair, _ in steps[9][1].memory for x in pair)
    totals = [step.losses.total for step, _ in steps]
    assert all(b <= a for a, b in pairwise(totals))
    assert totals[-1] < 1e-6 * totals[0]


def test_lbfgs_knows_that_fine_and_coarse_bend_differently(monkeypatch):
    """On a bowl that is a thousand times steeper for fine changes than for coarse ones."""
    steepness = torch.logspace(3, 0, BANDS, dtype=torch.float64).expand(3, BANDS)
    target = 0.5 + 0.05 * torch.randn((3, 48, 32), generator=torch.Generator().manual_seed(0))

    def evaluate(image):
        gradient = reweight_(image - target, steepness)
        value = (gradient * (image - target)).sum().item() / 2
        return Losses(total=value, content=0.0, style=value, layers={}), gradient

    def end(contrast):
        """After twenty steps; with no contrast all bands are alike."""
        monkeypatch.setitem(OPTIMIZERS, "lbfgs", LBFGS(contrast=contrast))
        begin = State(torch.full_like(target, 0.5))
        stages = [Stage((48, 32), 20)]
        recipe = Recipe(stop="never")
        *_, (last, _) = descend(begin, recipe=recipe, stages=stages, objective=lambda _: evaluate)
        return last.losses.total

    assert end(1000.0) < 1e-3 * end(1.0)


def test_pixels_on_which_nothing_depends_stay_what_they_are():
    def evaluate(image):
        gradient = (image - 0.3) * 2
        gradient[:, :4] = 0
        value = (image[:, 4:] - 0.3).square().sum().item()
        return Losses(total=value, content=0.0, style=value, layers={}), gradient

    first = torch.rand((3, 12, 9), generator=torch.Generator().manual_seed(1))
    image, at, memory = first, evaluate(first), ()
    for _ in range(4):
        image, at, memory = LBFGS().step(evaluate, image, at, memory, 0.05)
        at = at or evaluate(image)
    assert torch.equal(image[:, :4], first[:, :4])
    assert (image[:, 4:] - 0.3).abs().max() < 0.01


def test_what_descent_keeps_is_what_it_says():
    """Beside the image, the one that is tried and both gradients: the pairs."""
    for exact, width in ((10**6, 8), (0, 2)):
        optimizer, numbers = LBFGS(exact=exact, history=3), 3 * SIZE[0] * SIZE[1]
        state, evaluate, memory = start(), bowl(SIZE), ()
        image, at = state.image, evaluate(state.image)
        for _ in range(6):
            image, at, memory = optimizer.step(evaluate, image, at, memory, 0.01)
        kept = sum(x.nbytes for *pair, _ in memory for x in pair)
        assert kept == 3 * 2 * width * numbers
    assert optimizer.bytes(numbers) == 4 * 4 * numbers + kept


def test_lbfgs_finds_the_best_color_that_exists():
    """A minimum outside [0, 1] is met at the border, where the others go on."""

    def evaluate(image):
        target = torch.tensor([-0.5, 0.5, 1.7], dtype=torch.float64)[:, None, None]
        value = ((image - target) ** 2).sum().item()
        return Losses(value, 0.0, value), 2 * (image - target)

    *_, (step, _) = descend(
        start(),
        recipe=Recipe(optimizer="lbfgs", stop="never"),
        stages=[Stage(SIZE, 40)],
        objective=lambda stage: evaluate,
    )
    expected = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)[:, None, None]
    assert (step.best - expected).abs().max() < 1e-6


def test_adam_is_that_of_torch():
    recipe = Recipe(optimizer="adam", decay="none", stop="never", learning_rate=0.01)
    image = torch.full((3, *SIZE), 0.5, dtype=torch.float64, requires_grad=True)
    theirs = torch.optim.Adam([image], lr=0.01, betas=(Adam().beta1, Adam().beta2))
    for step, _ in run(recipe, [Stage(SIZE, 15)]):
        assert torch.allclose(step.image, image.detach(), atol=1e-9)
        image.grad = bowl(SIZE)(image.detach())[1]
        theirs.step()


def test_the_losses_of_a_step_are_those_of_its_image():
    for step, _ in run(Recipe(optimizer="lbfgs"), [Stage((3, 2), 4), Stage(SIZE, 5)]):
        size = tuple(step.image.shape[1:])
        assert step.losses == bowl(size)(step.image)[0]
        assert step.best_losses == bowl(size)(step.best)[0]
        assert step.best_losses.total <= step.losses.total


def test_stages_of_one_size_are_one_descent():
    one, two = (
        run(Recipe(stop="never"), stages)
        for stages in ([Stage(SIZE, 9)], [Stage(SIZE, 4, shallow=True), Stage(SIZE, 5)])
    )
    assert torch.equal(one[-1][0].image, two[-1][0].image)
    assert two[4][0].progress < one[4][0].progress  # the first ones are cheap


def test_indices_progress_and_the_last_reason():
    steps = [step for step, _ in run(Recipe(stop="never"), [Stage((3, 2), 4), Stage(SIZE, 5)])]
    assert [step.index for step in steps] == list(range(10))
    assert all(step.steps == 9 for step in steps)
    assert steps[0].progress == 0
    assert steps[-1].progress == 1
    assert [step.reason for step in steps] == [""] * 9 + ["steps"]


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
@pytest.mark.parametrize("cut", range(9))
def test_a_resumed_run_ends_like_an_uninterrupted_one(tmp_path, optimizer, cut):
    recipe = Recipe(optimizer=optimizer, stop="never")
    stages = [Stage((3, 2), 2, shallow=True), Stage((3, 2), 2), Stage(SIZE, 5)]
    whole = run(recipe, stages)
    path = tmp_path / "run"
    history = [step.losses for step, _ in whole[: cut + 1]]
    runfile.save(path, facts={"a": 1}, state=whole[cut][1], history=history)
    facts, state, known = runfile.load(path)
    assert facts == {"a": 1}
    assert known == history
    rest = run(recipe, stages, state=state)
    assert rest[0][0].index == cut
    assert torch.equal(rest[-1][0].image, whole[-1][0].image)
    assert torch.equal(rest[-1][0].best, whole[-1][0].best)


def test_a_broken_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(ImpastoError, match="no file"):
        runfile.load(path)
    for data in (b"", b"hello", b"PK\x03\x04" + bytes(50)):
        path.write_bytes(data)
        with pytest.raises(ImpastoError, match="not a checkpoint"):
            runfile.load(path)
    torch.save({"kind": "something else"}, path)
    with pytest.raises(ImpastoError, match="not a checkpoint"):
        runfile.load(path)


def test_until_ends_sooner():
    steps = run(Recipe(stop="never"), until=3)
    assert steps[-1][0].index == 3
    assert steps[-1][0].steps == 200


def test_a_loss_of_nan_is_an_error():
    def broken(stage):
        return lambda image: (Losses(float("nan"), 0.0, 0.0), image)

    with pytest.raises(ImpastoError, match="smaller learning rate"):
        list(descend(start(), recipe=Recipe(), stages=[Stage(SIZE, 3)], objective=broken))


def test_zero_is_the_end():
    def nothing(stage):
        return lambda image: (Losses(0.0, 0.0, 0.0), torch.zeros_like(image))

    steps = list(descend(start(), recipe=Recipe(), stages=[Stage(SIZE, 3)], objective=nothing))
    assert [step.reason for step, _ in steps] == ["zero"]


def test_lbfgs_without_a_way_down_stays():
    """A gradient that points the wrong way: the line search finds nothing and gives up."""
    image = torch.full((3, 2, 2), 0.5)

    def liar(image):
        value = image.sum().item()
        return Losses(value, 0.0, value), -torch.ones_like(image)

    after, _, memory = LBFGS().step(liar, image, liar(image), (), 0.05)
    assert torch.equal(after, image)
    assert memory == ()


def test_stop_rules():
    falling = [0.9**k for k in range(60)]
    level = [0.5 * (1 + 1e-4 * (-1) ** k) for k in range(60)]
    assert not is_flat(falling)
    assert is_flat(level)
    assert not is_flat(level[:10])
    assert is_flat([100 * loss for loss in level])  # a relative rule
    assert is_settled([0.3, 0.3, 0.3])
    assert not is_settled([1.0])
    assert not is_settled([1.0, 0.2])


def test_a_flat_run_stops_early():
    generator = torch.Generator().manual_seed(0)

    def plateau(stage):
        return lambda image: (
            Losses(1.0, 0.0, 1.0),
            torch.randn(image.shape, generator=generator).to(image),
        )

    recipe = Recipe(optimizer="adam")
    steps = list(descend(start(), recipe=recipe, stages=[Stage(SIZE, 99)], objective=plateau))
    assert steps[-1][0].reason == "flat"
    assert steps[-1][0].index < 30
    never = replace(recipe, stop="never")
    steps = list(descend(start(), recipe=never, stages=[Stage(SIZE, 40)], objective=plateau))
    assert steps[-1][0].reason == "steps"
