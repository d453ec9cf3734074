"""The library: pictures of any kind in, a picture with its record out."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

import impasto
from impasto import imagefile, objective
from impasto.api import Result, open_job, score, steps_of, stylize, stylize_steps
from impasto.course import paint
from impasto.maths.raster import resize
from impasto.optimize import Stage, State, descend
from impasto.recipe import METHODS, Recipe
from impasto.scene import Scene, arrange
from impasto.types import ImpastoError, Losses

SMALL: dict[str, Any] = {"size": 64, "steps": 2}


@pytest.fixture(scope="session")
def content(files) -> np.ndarray:
    """The content as everybody else reads it: (H, W, 3), uint8."""
    with PIL.Image.open(files["content"]) as image:
        return np.array(image.convert("RGB"))


@pytest.fixture(scope="session")
def result(files) -> Result:
    return stylize(files["content"], files["style"], size=64, steps=4)


@pytest.fixture(scope="session")
def scene(files, encoder) -> Scene:
    """Two pictures at 64 pixels, their start beside them."""
    pictures = [imagefile.read(files[name]) for name in ("content", "style")]
    return arrange(Recipe(size=64, steps=4), encoder, *pictures)


def python(script: str) -> subprocess.CompletedProcess[str]:
    """A program of somebody else."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


# ── The package ──────────────────────────────────────────────────────────────────────────────────


def test_importing_is_instant():
    done = python("import impasto, sys; print({'torch', 'numpy', 'PIL'} & set(sys.modules))")
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.parametrize("name", impasto.__all__)
def test_public_names_are_there(name):
    assert getattr(impasto, name) is not None


@pytest.mark.parametrize("first", ["impasto.score", "impasto.Result", "import impasto.api"])
def test_the_function_stylize_is_there_whatever_was_used_before(first):
    """A module of the same name must not take its place."""
    done = python(f"import impasto; {first}; print(type(impasto.stylize).__name__)")
    assert (done.stdout, done.stderr) == ("function\n", "")


def test_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="colour"):
        impasto.colour  # noqa: B018
    assert not hasattr(impasto, "colour")


def test_the_error_is_a_value_error():
    assert issubclass(impasto.ImpastoError, ValueError)


# ── stylize ──────────────────────────────────────────────────────────────────────────────────────


KINDS = {
    "path": lambda path, array: path,
    "pathlib": lambda path, array: Path(path),
    "PIL": lambda path, array: PIL.Image.fromarray(array),
    "uint8": lambda path, array: array,
    "float32": lambda path, array: array.astype(np.float32) / np.float32(255),
    "float64": lambda path, array: array / 255,
    "upside down": lambda path, array: array[::-1].copy()[::-1],  # strides that torch refuses
    "tensor": lambda path, array: torch.from_numpy(array).permute(2, 0, 1),
    "float tensor": lambda path, array: torch.from_numpy(array).permute(2, 0, 1) / 255,
    "batch of one": lambda path, array: torch.from_numpy(array).permute(2, 0, 1)[None] / 255,
}


@pytest.fixture(scope="session")
def expected(files) -> np.ndarray:
    return stylize(files["content"], files["style"], **SMALL).array


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_picture_gives_the_same_pixels(kind, files, content, expected):
    before = content.copy()
    found = stylize(KINDS[kind](files["content"], content), files["style"], **SMALL)
    assert np.array_equal(found.array, expected)
    assert np.array_equal(content, before)


def test_a_picture_with_a_gradient_is_a_picture(content, files, expected):
    tensor = (torch.from_numpy(content).permute(2, 0, 1) / 255).requires_grad_()
    assert np.array_equal(stylize(tensor, files["style"], **SMALL).array, expected)


def test_the_result(result, files):
    assert result.array.shape == (43, 64, 3)
    assert result.array.dtype == np.uint8
    assert (result.image.mode, result.image.size) == ("RGB", (64, 43))
    assert np.array_equal(np.asarray(result.image), result.array)
    assert len(result.history) == 1 + 4
    assert all(isinstance(losses, Losses) for losses in result.history)
    assert result.history[-1].total < result.history[0].total
    assert result.record["losses"]["start"] == asdict(result.history[0])
    assert result.record["inputs"]["content"]["path"] == files["content"]
    assert result.record["pixels"] == imagefile.pixels_sha256(result.array)
    assert Recipe.from_dict(result.record["recipe"]) == Recipe(size=64, steps=4)
    json.dumps(result.record, allow_nan=False)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tif"])
def test_a_result_is_saved_with_its_record(suffix, result, tmp_path):
    path = tmp_path / f"out{suffix}"
    result.save(path)
    assert imagefile.read_record(path) == json.loads(json.dumps(result.record))
    with PIL.Image.open(path) as image:
        error = np.abs(np.asarray(image).astype(int) - result.array)
    assert error.max() == 0 if suffix in (".png", ".tif") else error.mean() < 5


def test_a_result_that_cannot_be_saved_is_one_sentence(result, tmp_path):
    for path in (tmp_path / "out.gif", tmp_path / "nowhere" / "out.png", tmp_path):
        with pytest.raises(ImpastoError):
            result.save(path)
    assert not any(tmp_path.iterdir())


def test_two_results_can_be_compared(result, files):
    """By whatever rule, but without an error about the truth of arrays."""
    other = stylize(files["content"], files["style"], size=64, steps=1)
    assert result == result
    assert result != other


def test_transparency_is_kept(content, files, tmp_path):
    alpha = np.full(content.shape[:2], 255, np.uint8)
    alpha[:, :48] = 0
    found = stylize(np.dstack([content, alpha]), files["style"], size="original", steps=1)
    assert found.image.mode == "RGBA"
    assert np.array_equal(found.array[..., 3], alpha)
    found.save(tmp_path / "out.png")
    assert np.array_equal(np.asarray(PIL.Image.open(tmp_path / "out.png")), found.array)


def test_pictures_without_a_file_are_known_by_their_pixels(content, files):
    record = stylize(content, PIL.Image.fromarray(content[::-1]), size=64, steps=1).record
    assert record["inputs"]["content"]["path"] == ""
    assert record["inputs"]["content"]["sha256"] == imagefile.pixels_sha256(content)
    assert record["inputs"]["style"]["sha256"] == imagefile.pixels_sha256(content[::-1])


def test_settings_on_top_of_a_preset(files):
    record = stylize(files["content"], files["style"], preset="paper", size=64, steps=1).record
    assert (
        record["recipe"] == Recipe(**{**impasto.PRESETS["paper"], "size": 64, "steps": 1}).to_dict()
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 1.5},
        {"alpha": math.nan},
        {"method": "nonsense"},
        {"colour": "red"},
        {"preset": "nonsense"},
        {"layer_weights": [-1] * 5},
        {"layer_weights": ["heavy"] * 5},
        {"layers": ["conv9_1"]},
        {"layers": [1, 2]},
        {"size": 3},
        {"steps": 10**400},
        {"device": "nonsense"},
        {"device": "meta"},
        {"weights": "nowhere.pth"},
        {"start": "nowhere.png"},
    ],
    ids=lambda settings: "-".join(f"{key}-{str(value)[:20]}" for key, value in settings.items()),
)
def test_wrong_settings_are_an_error_of_ours(settings, files):
    with pytest.raises(ImpastoError) as caught:
        stylize(files["content"], files["style"], **{**SMALL, **settings})
    assert "\n" not in str(caught.value)


BAD_PICTURES = {
    "NaN": np.full((60, 60, 3), np.nan),
    "infinite": np.full((60, 60, 3), np.inf),
    "0 … 255 as floats": np.full((60, 60, 3), 200.0),
    "negative": np.full((60, 60, 3), -1.0),
    "five channels": np.zeros((60, 60, 5)),
    "no pixels": np.zeros((0, 60, 3)),
    "one dimension": np.zeros(60),
    "integers": np.zeros((60, 60, 3), np.int64),
    "words": np.full((60, 60, 3), "red"),
    "NaN tensor": torch.full((3, 60, 60), torch.nan),
    "channels last": torch.zeros(60, 60, 3),
    "two pictures": torch.zeros(2, 3, 60, 60),
    "nothing": None,
    "a number": 5,
    "a list": [[0, 0, 0]],
    "no such file": "nowhere.png",
    "too thin": np.zeros((1, 5000, 3)),
}


@pytest.mark.parametrize("role", ["content", "style"])
@pytest.mark.parametrize("name", BAD_PICTURES)
def test_a_bad_picture_is_an_error_of_ours(name, role, files):
    given = {**files, role: BAD_PICTURES[name]}
    with pytest.raises(ImpastoError) as caught:
        stylize(given["content"], given["style"], **SMALL)
    assert "\n" not in str(caught.value)
    assert (role if name != "no such file" else "nowhere.png") in str(caught.value)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_start_is_a_path_of_any_kind(kind, files):
    found = stylize(files["content"], files["style"], start=kind(files["style"]), **SMALL)
    assert found.record["inputs"]["start"]["path"] == files["style"]


# ── stylize_steps ────────────────────────────────────────────────────────────────────────────────


def objective_of(scene: Scene, recipe: Recipe, size: tuple[int, int]) -> objective.Objective:
    """The objective, built from the pictures alone."""
    factor = max(size) / max(scene.size)
    style = [round(length * factor) for length in scene.style.shape[-2:]]
    return objective.build(
        recipe,
        scene.encoder,
        resize(scene.content, size),
        resize(scene.style, (style[0], style[1])),
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 64, "steps": 3},
        {"size": 64, "steps": 3, "optimizer": "adam", "alpha": 0.3, "method": "gram"},
        {"size": 128, "steps": 3, "scales": 2},
    ],
    ids=["lbfgs", "adam", "two scales"],
)
def test_the_losses_of_a_step_are_those_of_its_image(settings, content, files):
    recipe, square = Recipe(**settings), content[:, :64]
    scene = open_job(square, files["style"], recipe).scene
    steps = list(stylize_steps(square, files["style"], **settings))
    sizes = {step.image.shape for step in steps}
    assert len(sizes) == max(1, recipe.scales)
    assert [step.index for step in steps] == list(range(recipe.steps + 1))
    for step in steps:
        size = (step.image.shape[-2], step.image.shape[-1])
        seen = recipe if len(step.losses.layers) == 5 else recipe.early
        found = objective_of(scene, seen, size).losses(step.image)
        for name, value in vars(step.losses).items():
            assert getattr(found, name) == pytest.approx(value, rel=1e-3, abs=1e-6)
        assert 0 <= step.image.min() <= step.image.max() <= 1
        assert step.best_losses.total <= step.losses.total
        assert step.best.shape == step.image.shape
    assert [step.reason for step in steps] == [""] * recipe.steps + ["steps"]
    assert steps[-1].progress == 1
    assert (steps[-1].image.shape[-2], steps[-1].image.shape[-1]) == scene.size


def test_a_loop_of_ones_own_ends_when_it_likes(files, result):
    """The generator makes one step after the other, those of `stylize`."""
    history = []
    for step in stylize_steps(files["content"], files["style"], size=64, steps=4):
        history.append(step.losses)
        if step.index == 2:
            break
    assert tuple(history) == result.history[:3]


def test_steps_do_not_share_memory(files):
    """Whoever keeps the images of all steps keeps different images."""
    images = [step.image for step in stylize_steps(files["content"], files["style"], **SMALL)]
    assert all(not torch.equal(a, b) for a, b in itertools.pairwise(images))
    assert not any(image.requires_grad for image in images)


def test_settings_are_checked_before_the_first_step(files):
    with pytest.raises(ImpastoError, match="alpha"):
        next(stylize_steps(files["content"], files["style"], alpha=2))


def test_global_randomness_is_neither_used_nor_changed(files):
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        settings = {**SMALL, "steps": 1, "start": "noise", "method": "cmd-joint"}
        results.append(stylize(files["content"], files["style"], **settings).array)
        assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(*results)


# ── A budget ─────────────────────────────────────────────────────────────────────────────────────


class Clock:
    """Time that passes only while an image is looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *prices: float) -> None:
        self.now, self.prices = 100.0, list(prices)
        self.looks = 0
        call = objective.Objective.__call__

        def look(this: objective.Objective, image: torch.Tensor) -> Any:
            self.now += self.prices[min(self.looks, len(self.prices) - 1)]
            self.looks += 1
            return call(this, image)

        monkeypatch.setattr(objective.Objective, "__call__", look)

    def __call__(self) -> float:
        return self.now


def painted(scene: Scene, clock: Clock, **settings: Any) -> list[Any]:
    recipe = scene.recipe.but(optimizer="adam", stop="never", **settings)
    again = replace(scene, recipe=recipe)
    return [step for step, _ in paint(again, clock=clock)]


def test_a_budget_is_kept_and_used(scene, monkeypatch):
    clock = Clock(monkeypatch, 1.0)
    steps = painted(scene, clock, budget=12, steps=1000)
    assert clock.now - 100 <= 12
    assert clock.now - 100 >= 6  # what is left unused is less than half
    assert steps[-1].reason in ("budget", "steps")
    assert steps[-1].losses.total < steps[0].losses.total


def test_a_budget_is_kept_when_the_machine_slows_down(scene, monkeypatch):
    clock = Clock(monkeypatch, 1.0, 1.0, 1.0, 2.0)
    steps = painted(scene, clock, budget=12, steps=1000)
    assert clock.now - 100 <= 12
    assert steps[-1].reason == "budget"
    assert steps[-1].index >= 2


def test_a_budget_that_is_ample_changes_nothing(scene, monkeypatch):
    clock = Clock(monkeypatch, 1.0)
    with_budget, without = (
        painted(scene, clock, budget=budget, steps=3)[-1] for budget in (1000, 0)
    )
    assert with_budget.reason == without.reason == "steps"
    assert torch.equal(with_budget.image, without.image)


# ── A pause ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 64, "steps": 4, "optimizer": "adam", "stop": "paper"},
        {"size": 128, "steps": 3, "scales": 2},
        {"size": 128, "steps": 3, "scales": 2, "optimizer": "adam"},
    ],
    ids=["paper", "two scales lbfgs", "two scales adam"],
)
def test_a_run_goes_on_from_any_state_as_if_nothing_had_been(settings, content, files):
    job = open_job(content[:, :64], files["style"], Recipe(**settings))
    whole = list(steps_of(job))
    for cut in range(len(whole) - 1):
        rest = list(steps_of(job, state=whole[cut][1]))
        assert [step.index for step, _ in rest] == [step.index for step, _ in whole[cut:]]
        for (step, _), (same, _) in zip(rest, whole[cut:], strict=True):
            assert torch.equal(step.image, same.image)
            assert torch.equal(step.best, same.best)
            assert (step.losses, step.reason) == (same.losses, same.reason)


@pytest.mark.parametrize("stop", ["slope", "paper", "never"])
def test_a_stop_rule_does_not_notice_a_pause(stop):
    """A bowl in place of a picture: the run ends at the same step from wherever it goes on."""
    target = torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(1))

    def look(image: torch.Tensor) -> tuple[Losses, torch.Tensor]:
        away = image - target
        loss = away.square().mean().item() + 0.001
        return Losses(total=loss, content=0, style=loss), 2 * away / away.numel()

    def ends(state: State) -> list[Any]:
        recipe = Recipe(stop=stop, optimizer="adam", learning_rate=0.02, decay="none")
        stages = [Stage((4, 4), 120)]
        return [*descend(state, recipe=recipe, stages=stages, objective=lambda stage: look)]

    whole = ends(State(torch.full((3, 4, 4), 0.5)))
    last = whole[-1][0]
    for _, state in whole[:-1]:
        step = ends(state)[-1][0]
        assert (step.index, step.reason) == (last.index, last.reason)
        assert torch.equal(step.best, last.best)


# ── score ────────────────────────────────────────────────────────────────────────────────────────


def test_score_of_the_result(result, content, files):
    found = score(result.image, files["content"], files["style"])
    before = score(content, content, files["style"], size=64)
    assert isinstance(found, impasto.Score)
    assert found.size == (64, 43)
    assert found.style.keys() == METHODS.keys()
    assert all(found.style[name] < before.style[name] for name in METHODS)
    assert found.held_out_mean < before.held_out_mean
    assert (before.content, before.ssim) == (0, pytest.approx(1))
    assert found.content > 0
    assert found.ssim < 1


def test_score_takes_every_kind_of_picture(content, files):
    values = [
        score(KINDS[kind](files["content"], content), files["content"], files["style"])
        for kind in ("path", "tensor")
    ]
    assert all(value == values[0] for value in values)


def test_score_names_the_picture_that_is_wrong(files):
    thin = np.zeros((1, 5000, 3))
    with pytest.raises(ImpastoError, match="scored"):
        score(thin, files["content"], files["style"])
    with pytest.raises(ImpastoError, match="content"):
        score(files["style"], np.full((60, 60, 3), np.nan), files["style"])
    with pytest.raises(ImpastoError, match="colour"):
        score(files["style"], files["content"], files["style"], colour=1)


# ── The losses in other people's loops ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", METHODS)
def test_a_discrepancy_can_be_descended_on(name):
    """Ten steps of an optimizer of torch bring two samples nearer to each other."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(50, 3, generator=generator).requires_grad_()
    y = torch.rand(40, 3, generator=generator) ** 2
    optimizer = torch.optim.SGD([x], lr=1e-3)
    before = impasto.discrepancy(name, x, y)
    for _ in range(10):
        optimizer.zero_grad()
        impasto.discrepancy(name, x, y).backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()
        optimizer.step()
    assert impasto.discrepancy(name, x, y) < before
