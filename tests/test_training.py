"""Training of the decoders, on few and small pictures with the real network."""

import json

import pytest
import torch
from safetensors.torch import load_file

from impasto import imagefile, training
from impasto.cli import main, train_decoders
from impasto.networks import decoder

from .conftest import sample

NAMES = ("coffee", "cypresses", "chelsea")


@pytest.fixture(scope="module")
def pictures():
    return [sample(name, 96) for name in NAMES]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(training, "SIDE", 64)
    monkeypatch.setattr(train_decoders, "EVERY", 2)


def test_least_squares_find_a_linear_map():
    """Where the colors are a linear map of features there is nothing left to learn."""
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.randn(500, 36, generator=generator), torch.ones(500, 1)], 1).double()
    truth = torch.randn(37, 12, generator=generator).double()
    weight, bias = training._solved(x.T @ x, x.T @ (x @ truth))
    assert torch.allclose(weight.flatten(1).T, truth[:-1].float(), atol=2e-3)
    assert torch.allclose(bias, truth[-1].float(), atol=2e-3)


def test_patches_are_what_a_convolution_sees():
    features = torch.randn(1, 5, 6, 7, generator=torch.Generator().manual_seed(1))
    kernel = torch.randn(2, 5, 3, 3, generator=torch.Generator().manual_seed(2))
    whole = torch.nn.functional.conv2d(features, kernel, padding=1)[0].flatten(1).T
    chosen = torch.tensor([0, 6, 20, 41])
    found = training._patches(features, chosen) @ kernel.flatten(1).T
    assert torch.allclose(found, whole[chosen], atol=1e-5)


def test_an_interrupted_run_goes_on_as_if_it_were_not(encoder, pictures):
    whole, halved = training.begin(), training.begin()
    assert list(training.learn(whole, encoder, pictures, pieces=3)) == [1, 2, 3]
    assert list(training.learn(halved, encoder, pictures, pieces=1)) == [1]
    assert list(training.learn(halved, encoder, pictures, pieces=3)) == [2, 3]
    for level in decoder.LEVELS:
        assert torch.equal(halved.features[level], whole.features[level])
        assert torch.equal(halved.colors[level], whole.colors[level])


def test_the_command(tmp_path, pictures, capsys):
    for name, picture in zip(NAMES, pictures, strict=True):
        imagefile.write(tmp_path / f"{name}.png", picture.permute(1, 2, 0).numpy())
    out = tmp_path / "out"
    words = ["train-decoders", str(tmp_path), "-o", str(out)]
    assert main([*words, "--pieces", "1"]) == 0
    assert main([*words, "--pieces", "3"]) == 0  # goes on
    log = (out / "log.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in log] == ["pieces", "1", "2", "3"]
    card = json.loads((out / "card.json").read_text())
    assert card["pieces"] == 3
    # Two pictures tell little of a third; a constant would be at 10 dB or so.
    assert card["PSNR of the held-out pictures"]["relu1_1"] > 20
    made = load_file(out / "decoders.safetensors")
    assert {name: tuple(made[f"{name}.weight"].shape) for name in decoder.shapes()} == (
        decoder.shapes()
    )
    assert {kernel.dtype for kernel in made.values()} == {torch.float16}
    assert (out / "curves.png").exists()

    capsys.readouterr()
    assert main([*words, "--seed", "1"]) == 1
    assert "choose another folder" in capsys.readouterr().err
    (out / "checkpoint.safetensors").write_bytes(b"nothing")
    assert main(words) == 1
    assert "remove it to begin anew" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "-o", "out"], "is not a folder"),
        ([".", "-o", "out"], "2 are needed"),
        ([".", "-o", "out", "--pieces", "0"], "at least 1"),
    ],
)
def test_wrong_words(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train-decoders", *words]) == 1
    assert sentence in capsys.readouterr().err
