"""Blocks give what the whole image gives."""

import math
from dataclasses import replace

import pytest
import torch

from impasto import blocks, blockwise, native, objective
from impasto.discrepancies.styles import STYLES, recipes
from impasto.networks import checkpoints, convolution, vgg
from impasto.recipe import Recipe
from impasto.types import ImpastoError

from .conftest import sample

ADDITIVE = [name for name in STYLES if name != "swd"]


@pytest.fixture(scope="module")
def encoder():
    """In double precision: there no rounding flips a ReLU or the choice of a maximum.

    Where one does, the gradient moves by about 2e-3, in blocks and in single precision as such.
    """
    return in_double()


def in_double(**how):
    checkpoint = checkpoints.load()
    kernels = {name: (a.double(), b.double()) for name, (a, b) in checkpoint.kernels.items()}
    return vgg.build(replace(checkpoint, kernels=kernels), **how)


@pytest.fixture(scope="module")
def large():
    """A strip: longer than a block and its halo, and quickly looked at."""
    return sample("coffee", 272)[:, 40:112].double()


@pytest.fixture(scope="module")
def style():
    return sample("cypresses", 112).double()


def agree(whole, parts, image):
    losses, gradient = whole(image)
    found, other = parts(image)
    assert found.total == pytest.approx(losses.total, rel=1e-6)
    assert found.content == pytest.approx(losses.content, rel=1e-6)
    assert found.layers == pytest.approx(losses.layers, rel=1e-6, abs=1e-9)
    assert (other - gradient).norm() < 1e-6 * gradient.norm()
    assert parts.losses(image).total == pytest.approx(losses.total, rel=1e-6)


@pytest.mark.parametrize("name", ["cmd", "gram"])
def test_it_does_not_matter_how_maps_lie_in_memory(large, style, name):
    recipe = recipes()[name].but(alpha=0.02)
    image = large.flip(2) * 0.9
    whole = objective.build(recipe, in_double(interleaved=False), large, style)
    encoder = in_double(interleaved=True)
    agree(whole, objective.build(recipe, encoder, large, style), image)
    for trails in (0.0, math.inf):
        parts = blockwise.build(recipe, encoder, large, style, side=128, trails=trails)
        agree(whole, parts, image)


@pytest.mark.parametrize("name", ADDITIVE)
def test_value_and_gradient_are_those_of_the_whole_image(encoder, large, style, name):
    recipe = recipes()[name].but(alpha=0.02)
    image = large.flip(2) * 0.9
    whole = objective.build(recipe, encoder, large, style)
    for trails in (0.0, 2.5e6, math.inf):  # nothing of the way there is kept, one block, or all
        parts = blockwise.build(recipe, encoder, large, style, side=128, trails=trails)
        agree(whole, parts, image)


@pytest.mark.parametrize("layers", [("conv1_1", "conv2_1"), ("relu1_1", "conv1_1", "relu1_2")])
@pytest.mark.parametrize("transparent", [False, True])
def test_the_first_layer_in_bands(encoder, large, style, layers, transparent, monkeypatch):
    """Every band belongs to some rows of the block: of its own pixels, or of its halo."""
    recipe = Recipe(alpha=0.1, layers=layers, content_layer=layers[0])
    large = large.transpose(1, 2)
    visible = torch.ones(large.shape[1:])
    visible[60:100, :30] = 0 if transparent else 1
    masks = {"visible": visible} if transparent else {}
    whole = objective.build(recipe, encoder, large, style, **masks)
    monkeypatch.setattr(convolution, "LARGEST_BAND", 20 * 128 * large.shape[2])  # about 20 rows
    monkeypatch.setattr(convolution, "FEWEST_ROWS", 6)
    shown, rows = [], blocks.Block.rows
    monkeypatch.setattr(blocks.Block, "rows", lambda *of: shown.append(of) or rows(*of))
    parts = blockwise.build(recipe, encoder, large, style, side=128, **masks)
    agree(whole, parts, large.flip(1))
    assert max(top for _, top, _ in shown) > 100


def test_with_transparency_and_smoothing(encoder, large, style):
    large = large.transpose(1, 2)  # blocks one above the other
    visible = torch.ones(large.shape[1:])
    visible[60:160, :30] = 0
    shown = torch.ones(style.shape[1:])
    shown[70:] = 0
    recipe = Recipe(alpha=0.1, tv=0.1, laplacian=0.3)
    masks = {"visible": visible, "visible_style": shown}
    whole = objective.build(recipe, encoder, large, style, **masks)
    for trails in (0.0, math.inf):
        parts = blockwise.build(recipe, encoder, large, style, side=144, trails=trails, **masks)
        agree(whole, parts, large.flip(1))


@pytest.mark.skipif(native.library() is None, reason="nothing was compiled")
@pytest.mark.parametrize("trails", [0.0, math.inf])
def test_large_blocks_round_as_the_whole_does(style, trails):
    """In single precision, by the routes of the program: tiles lie where those of the whole do."""
    network = vgg.build(checkpoints.load())
    image = sample("astronaut", 640)[:, :200].flip(2) * 0.9  # with flat parts
    pictures = sample("astronaut", 640)[:, :200], style.float()
    _, whole = objective.build(Recipe(), network, *pictures)(image)
    parts = blockwise.build(Recipe(), network, *pictures, side=200, trails=trails)
    assert len(list(parts.reader)) == 3
    assert (parts(image)[1] - whole).norm() < 1e-4 * whole.norm()


@pytest.mark.parametrize("size", [(128, 128), (129, 257), (400, 31), (131, 300), (192, 500)])
@pytest.mark.parametrize("side", [128, 200, 384, 4096])
def test_blocks_cover_every_pixel_once(size, side):
    seen = torch.zeros(size, dtype=int)
    for block in blocks.blocks_of(size, side, 80):
        top, bottom, left, right = block.inner
        seen[top:bottom, left:right] += 1
        assert block.outer[0] % blocks.STRIDE == 0
        assert block.outer[2] % blocks.STRIDE == 0
        assert side < blocks.ALIGNED or block.outer[0] % blocks.ALIGNED == 0
        assert block.inner[1] - block.inner[0] <= side + 80
        assert block.outer[1] - block.outer[0] <= side + 160
    assert (seen == 1).all()


@pytest.mark.parametrize("layer", ["conv3_4", "conv5_1", "relu5_4"])
def test_the_halo_is_as_wide_as_the_layer_sees(encoder, large, layer):
    """A change just outside of the halo does not reach the block; one inside does."""
    halo = blocks.halo_of([layer])
    image = torch.cat([large, large], 2)
    stride = blocks.stride_of(layer)
    first = 256
    other = image.clone()
    other[:, :, : first - halo] = 0.5
    before, after = (encoder(x, [layer])[layer][..., first // stride :] for x in (image, other))
    assert torch.allclose(before, after, atol=1e-4)
    other[:, :, : first - halo // 4] = 0.5
    assert not torch.allclose(before, encoder(other, [layer])[layer][..., first // stride :])


def test_a_method_without_sums_says_so(encoder, large, style):
    with pytest.raises(ImpastoError, match="whole image"):
        blockwise.build(Recipe(method="swd"), encoder, large, style, side=128)
