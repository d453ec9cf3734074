"""Training of the decoders, on few and small pictures with the real network."""

import json

import pytest
import torch
from safetensors.torch import load_file

from impasto import imagefile, training
from impasto.cli import main
from impasto.networks import decoder

from .conftest import sample

NAMES = ("coffee", "cypresses", "chelsea")


@pytest.fixture(scope="module")
def pictures():
    return [sample(name, 96) for name in NAMES]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {"LOOKS": 3, "LOOK": 64, "POSITIONS": 600}.items():
        monkeypatch.setattr(training, name, value)


@pytest.fixture(scope="module")
def begun(encoder, pictures):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LOOKS": 3, "LOOK": 64, "POSITIONS": 600}.items():
            patch.setattr(training, name, value)
        return training.begin(encoder, pictures).kernels


def student(begun):
    return training.Student(kernels={name: kernel.clone() for name, kernel in begun.items()})


def test_least_squares_find_a_linear_map(begun):
    """Where the colors are a linear map of features there is nothing left to learn."""
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.randn(500, 36, generator=generator), torch.ones(500, 1)], 1).double()
    truth = torch.randn(37, 12, generator=generator).double()
    weight, bias, _ = training._solved(x.T @ x, x.T @ (x @ truth))
    assert torch.allclose(weight.flatten(1).T, truth[:-1].float(), atol=2e-3)
    assert torch.allclose(bias, truth[-1].float(), atol=2e-3)


def test_a_student_begins_with_the_linear_maps(begun):
    assert not begun["paint.weight"].any()
    assert {name.split(".")[0] for name in begun} >= set(decoder.shapes())


def test_patches_are_what_a_convolution_sees(begun):
    features = torch.randn(1, 5, 6, 7, generator=torch.Generator().manual_seed(1))
    kernel = torch.randn(2, 5, 3, 3, generator=torch.Generator().manual_seed(2))
    whole = torch.nn.functional.conv2d(features, kernel, padding=1)[0].flatten(1).T
    chosen = torch.tensor([0, 6, 20, 41])
    found = training._patches(features, chosen) @ kernel.flatten(1).T
    assert torch.allclose(found, whole[chosen], atol=1e-5)


def test_steps_teach(begun, encoder, pictures):
    pupil = student(begun)
    schooling = training.Schooling(steps=24, batch=1, crop=64, rate=3e-3)
    losses = list(training.learn(pupil, encoder, pictures, schooling))
    way = [each["way4"] for each in losses if "way4" in each]
    assert len(way) == 12  # relu4_1 and relu5_1 come by, each in every fourth step
    assert sum(way[-4:]) < sum(way[:4])
    assert pupil.kernels["paint.weight"].any()
    assert torch.equal(pupil.kernels["skip3.weight"], begun["skip3.weight"])


def test_an_interrupted_run_goes_on_as_if_it_were_not(begun, encoder, pictures):
    schooling = training.Schooling(steps=4, batch=1, crop=48)
    whole, halved = student(begun), student(begun)
    for _ in training.learn(whole, encoder, pictures, schooling):
        pass
    part = training.learn(halved, encoder, pictures, schooling)
    next(part), next(part)
    part.close()
    again = training.Student(
        kernels=dict(halved.kernels), moments=dict(halved.moments), step=halved.step
    )
    for _ in training.learn(again, encoder, pictures, schooling):
        pass
    assert again.step == whole.step == 4
    assert all(torch.equal(again.kernels[name], whole.kernels[name]) for name in whole.kernels)


def test_the_command(tmp_path, pictures, capsys):
    for name, picture in zip(NAMES, pictures, strict=True):
        imagefile.write(tmp_path / f"{name}.png", picture.permute(1, 2, 0).numpy())
    words = ["train-decoders", str(tmp_path), "-o", str(tmp_path / "out"), "--crop", "32"]
    assert main([*words, "--steps", "0"]) == 0
    assert set(load_file(tmp_path / "out" / "decoders.safetensors")) == {
        f"{name}.{part}" for name in decoder.LINEAR for part in ("weight", "bias")
    }
    assert main([*words, "--batch", "1", "--steps", "1"]) == 0  # goes on
    assert main([*words, "--batch", "1", "--steps", "2"]) == 0  # goes on
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["steps"] == 2
    assert [look["step"] for look in card["PSNR of the held-out pictures"]] == [0, 1, 2]
    made = load_file(tmp_path / "out" / "decoders.safetensors")
    assert {name: tuple(made[f"{name}.weight"].shape) for name in decoder.shapes()} == (
        decoder.shapes()
    )
    assert made["mix3.weight"].dtype == torch.float16
    assert (tmp_path / "out" / "log.csv").read_text().count("\n") == 3
    assert (tmp_path / "out" / "curves.png").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "-o", "out"], "is not a folder"),
        ([".", "-o", "out", "--crop", "50"], "multiple of 16"),
    ],
)
def test_wrong_words(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train-decoders", *words]) == 1
    assert sentence in capsys.readouterr().err
