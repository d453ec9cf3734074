"""Feed-forward methods: encode, transfer, decode."""

import json
import math
from hashlib import sha256

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import impasto
from impasto import api, feedforward, imagefile
from impasto.discrepancies import discrepancy
from impasto.maths.linalg import flat
from impasto.networks import checkpoints, convolution, decoders, vgg
from impasto.objective import points_of
from impasto.recipe import FEED_FORWARD, Recipe
from impasto.types import ImpastoError

from .conftest import sample

OWN = {"adain": "mm", "wct": "gaussian-ot", "ost": "gaussian-ot", "histogram": "mm"}


@pytest.fixture(scope="module")
def ours():
    return decoders.load("impasto")


@pytest.fixture(scope="module")
def original():
    return api.load_decoder("adain-original", "cpu")


def passes(encoder, network, **settings):
    recipe = Recipe(**settings)

    def run(content, style, *, visible_style=None, side=None):
        return feedforward.Passes(
            recipe=recipe,
            encoder=encoder,
            decoders=dict.fromkeys(recipe.passes, network),
            style=style,
            visible_style=visible_style,
            side=side,
        )(content)

    run.recipe = recipe
    return run


def last(images):
    *_, image = images
    return image


def psnr(a, b):
    return -10 * math.log10(float((a - b).square().mean()))


# What each level keeps of this photo is asked for in dB, a little below what the decoders reach
# and far above what any wrong wiring gives.
@pytest.mark.parametrize(("level", "least"), [(1, 38), (2, 28), (3, 24), (4, 20), (5, 14)])
def test_ours_gives_back_what_was_encoded(encoder, ours, level, least):
    photo = sample("chelsea", 256)[:, :160]
    tap = f"relu{level}_1"
    with torch.no_grad():
        image = ours(encoder(photo, [tap])[tap], level)[0]
    assert image.shape == photo.shape
    assert psnr(image, photo) > least


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_an_image_changes_as_its_features_do(encoder, ours, level):
    tap = f"relu{level}_1"
    with torch.no_grad():
        before, after = (encoder(sample(name, 96), [tap])[tap] for name in ("coffee", "cypresses"))
        height, width = (
            min(sides) for sides in zip(before.shape[2:], after.shape[2:], strict=True)
        )
        before, after = before[..., :height, :width], after[..., :height, :width]
        image = torch.rand(1, 3, *(2 ** (level - 1) * side for side in (height, width)))
        assert torch.equal(ours.repaint(image, before, before, level), image)
        change = ours.repaint(image, before, after, level) - image
        assert torch.allclose(change, ours(after, level) - ours(before, level), atol=1e-4)


@pytest.mark.parametrize("level", [4, 5])
def test_a_feature_shows_no_further_than_the_halo(ours, original, level):
    """The deepest levels reach furthest."""
    features = torch.rand(1, 512, 11, 11, generator=torch.Generator().manual_seed(0))
    changed = features.clone()
    changed[..., 5, 5] += 100
    scale = 2 ** (level - 1)
    for network in (ours, original):
        if level not in network.levels:
            continue
        with torch.no_grad():
            differs = (network(changed, level) - network(features, level)).abs().amax((0, 1))
        seen = (differs > 1e-3).nonzero()
        assert 5 * scale - network.halo <= seen.min()
        assert seen.max() < 6 * scale + network.halo


def test_the_original_understands_our_encoder(encoder, original):
    photo = sample("chelsea", 256)[:, :160]
    with torch.no_grad():
        features = encoder(photo, ["relu4_1"])["relu4_1"]
        assert psnr(original(features, 4)[0], photo) > 18
        # The wrong units would show: the same features, not brought to its own.
        assert psnr(original(features * 2, 4)[0], photo) < 16


@pytest.mark.parametrize("method", FEED_FORWARD)
def test_no_strength_no_style(encoder, ours, photo, painting, method):
    run = passes(encoder, ours, method=method, strength=0.0)
    assert (last(run(photo, painting)) - photo).abs().max() < 1e-5


@pytest.mark.parametrize("method", FEED_FORWARD)
def test_the_result_is_nearer_to_the_style(encoder, ours, method):
    content, style = sample("coffee", 128), sample("cypresses", 128)
    run = passes(encoder, ours, method=method)
    images = list(run(content, style))
    assert len(images) == len(run.recipe.passes) == (1 if method in ("adain", "histogram") else 5)
    with torch.no_grad():
        before, after, target = (
            flat(points_of(encoder(image, ["relu4_1"])["relu4_1"], None, run.recipe.margin))
            for image in (content, images[-1], style)
        )
    measure = OWN.get(method, "mm")
    assert discrepancy(measure, after, target) < 0.5 * discrepancy(measure, before, target)
    assert images[-1].shape == content.shape
    assert 0 <= images[-1].min() <= images[-1].max() <= 1


def ordinary(monkeypatch):
    """An encoder by torch's own convolutions: the rounding of others depends on the block."""
    monkeypatch.setattr(convolution, "winograd", lambda: None)
    return vgg.build(checkpoints.load(), interleaved=False)


@pytest.mark.parametrize(
    ("method", "layers"),
    [
        ("adain", ("relu3_1", "relu1_1")),
        ("wct", ("relu3_1", "relu1_1")),
        ("ost+histogram", ("relu3_1", "relu1_1")),
        ("adain", ("relu5_1", "relu4_1")),
    ],
)
def test_blocks_give_what_the_whole_gives(ours, monkeypatch, method, layers):
    encoder = ordinary(monkeypatch)
    content, style = sample("coffee", 270), sample("cypresses", 140)
    run = passes(encoder, ours, method=method, layers=layers)
    whole, parts = (last(run(content, style, side=side)) for side in (None, 128))
    assert (whole - parts).abs().max() < 2e-3


def test_blocks_of_the_original(original, monkeypatch):
    encoder = ordinary(monkeypatch)
    content, style = sample("coffee", 270), sample("cypresses", 140)
    run = passes(encoder, original, method="adain")
    whole, parts = (last(run(content, style, side=side)) for side in (None, 128))
    assert (whole - parts).abs().max() < 2e-3


def test_a_decoder_from_a_file(tmp_path, files):
    kernels = {name: kernel / 2 for name, kernel in decoders.load("impasto").kernels.items()}
    path = tmp_path / "decoders.safetensors"
    save_file(kernels, path)
    half = api.stylize(*files.values(), method="adain", size=64, decoder=str(path))
    whole = api.stylize(*files.values(), method="adain", size=64, decoder="impasto")
    assert half.record["decoders"]["4"]["name"] == path.name
    assert half.record["decoders"]["4"]["sha256"] == sha256(path.read_bytes()).hexdigest()
    assert (half.array != whole.array).any()

    save_file({"relu1_1.weight": torch.ones(1)}, path)
    with pytest.raises(ImpastoError, match="train it again"):
        api.stylize(*files.values(), method="adain", size=64, decoder=str(path))
    path.write_bytes(b"nothing")
    with pytest.raises(ImpastoError, match="not a file of decoders"):
        api.stylize(*files.values(), method="adain", size=64, decoder=str(path))
    with pytest.raises(ImpastoError, match="unknown decoder 'nowhere'"):
        api.stylize(*files.values(), method="adain", size=64, decoder="nowhere")


def test_large_images_are_judged_by_a_part_of_their_points(encoder, ours, monkeypatch):
    content, style = sample("coffee", 256), sample("cypresses", 256)
    run = passes(encoder, ours, method="ost", layers=("relu2_1",))
    whole = last(run(content, style))
    monkeypatch.setattr(feedforward, "SAMPLE", 4000 * 128)  # of 10,000 points
    part = last(run(content, style))
    assert not torch.equal(part, whole)
    assert psnr(part, whole) > 30


@pytest.mark.parametrize("size", [(32, 32), (33, 47), (50, 75)])
def test_any_size(encoder, ours, size):
    content = torch.nn.functional.interpolate(sample("coffee", 96)[None], size)[0]
    image = last(passes(encoder, ours, method="wct")(content, sample("cypresses", 64)))
    assert image.shape == content.shape
    assert image.isfinite().all()


@pytest.mark.parametrize("method", FEED_FORWARD)
def test_pictures_of_one_color(encoder, ours, method):
    gray, photo = torch.full((3, 64, 64), 0.5), sample("coffee", 64)
    for content, style in ((gray, photo), (photo, gray), (gray, gray)):
        image = last(passes(encoder, ours, method=method)(content, style))
        assert image.isfinite().all()


def test_what_is_transparent_is_no_style(encoder, ours):
    content, style = sample("coffee", 96), sample("cypresses", 192)
    spoiled, visible = style.clone(), torch.ones(style.shape[1:])
    spoiled[:, :, 120:], visible[:, 120:] = 1.0, 0.0
    run = passes(encoder, ours, method="adain", layers=("relu2_1",))
    seen = last(run(content, style[:, :, :120]))
    masked = last(run(content, spoiled, visible_style=visible))
    unmasked = last(run(content, spoiled))
    assert psnr(masked, seen) > psnr(unmasked, seen) + 6


def test_one_call_and_its_record(files):
    result = impasto.stylize(files["content"], files["style"], method="wct", size=64)
    record = json.loads(json.dumps(result.record, allow_nan=False))
    assert result.history == ()
    assert "losses" not in record
    assert record["steps"] == {"planned": 5, "done": 5, "reason": "done"}
    assert set(record["decoders"]) == set("12345")
    again = impasto.stylize(files["content"], files["style"], method="wct", size=64)
    assert np.array_equal(result.array, again.array)


def test_transparency_comes_through(tmp_path, files):
    pixels = imagefile.read(files["content"]).rgb
    alpha = np.ones(pixels.shape[:2], np.float32)
    alpha[:20] = 0
    imagefile.write(tmp_path / "cut.png", pixels, alpha=imagefile.to_8bit(alpha))
    result = impasto.stylize(tmp_path / "cut.png", files["style"], method="histogram", size=64)
    assert result.array.shape[2] == 4
    assert result.array[0, 0, 3] == 0
    assert result.array[-1, -1, 3] == 255


def test_decoding_by_steps_needs_no_decoder(files, monkeypatch):
    monkeypatch.setattr(decoders, "LOADERS", {})
    result = impasto.stylize(
        files["content"], files["style"], method="adain", decode="optimize", size=64, steps=8
    )
    assert result.history[-1].total < 0.6 * result.history[0].total
    assert set(result.history[0].layers) == {f"relu{level}_1" for level in range(1, 6)}


def test_a_start_for_the_optimization(files):
    settings = {"size": 64, "steps": 1, "stop": "never"}
    first = {
        start: impasto.stylize(files["content"], files["style"], start=start, **settings).history[0]
        for start in ("content", "adain", "wct")
    }
    assert first["adain"].style < first["content"].style
    assert first["wct"].style < first["content"].style


OTHERWISE = {
    "alpha": 0.5, "order": 3, "moment_weights": (1, 0, 0, 0, 0), "projections": 9,
    "kernel": "linear", "layer_weights": (3,), "tv": 1.0, "laplacian": 1.0, "strength": 0.5,
    "decoder": "impasto", "decode": "optimize", "steps": 3, "shallow": 0, "optimizer": "adam",
    "learning_rate": 0.2, "decay": "none", "scales": 2, "start": "noise", "stop": "never",
    "budget": 9.0,
}  # fmt: skip


@pytest.mark.parametrize("settings", [{"method": "adain"}, {"method": "gram", "steps": 1}])
def test_what_is_idle_changes_nothing(files, settings):
    settings = {**settings, "size": 48}
    idle = Recipe(**settings).idle
    assert {"order", "moment_weights", "kernel", "projections"} <= idle <= OTHERWISE.keys()
    assert {"strength", "steps"} & idle == {
        "steps" if settings["method"] == "adain" else "strength"
    }
    expected = impasto.stylize(files["content"], files["style"], **settings).array
    other = {name: OTHERWISE[name] for name in idle if name != "order"}  # five weights of moments
    found = impasto.stylize(files["content"], files["style"], **{**settings, **other}).array
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "adain", "layers": "conv4_2"}, "relu1_1 … relu5_1"),
        ({"method": "wct", "decoder": "adain-original"}, "--layers relu4_1"),
        ({"start": "wct", "decoder": "adain-original"}, "leave --decoder out"),
        ({"method": "adain", "strength": 2}, "strength"),
        ({"method": "adian"}, "adain"),
    ],
)
def test_wrong_words(settings, words):
    with pytest.raises(ImpastoError, match=words):
        Recipe(**settings)
