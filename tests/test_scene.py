"""The pictures of a job on the real network."""

import math

import numpy as np
import pytest
import torch

from impasto.blockwise import BlockObjective
from impasto.course import paint
from impasto.maths.linalg import flat
from impasto.objective import points_of
from impasto.recipe import Recipe
from impasto.scene import arrange, original, recolor, to_image
from impasto.types import ImpastoError, Picture

from .conftest import picture, sample


def last(scene, **rest):
    *_, (step, _) = paint(scene, **rest)
    return step


def test_alpha_one_returns_the_content(encoder, photo, painting):
    scene = arrange(Recipe(size=64, alpha=1), encoder, picture(photo), picture(painting))
    step = last(scene)
    assert torch.equal(step.best, scene.content)
    assert step.losses.content == 0


def test_content_as_style_stays_as_it_is(encoder, photo):
    for start in ("content", "color"):
        recipe = Recipe(size=64, start=start, steps=3)
        step = last(arrange(recipe, encoder, picture(photo), picture(photo)))
        assert step.losses.total < 1e-6
        assert (step.best - photo).abs().max() < 1e-3


def test_the_color_start_has_the_colors_of_the_style(photo, painting):
    moved, style, before = (
        flat(points_of(each[None])) for each in (recolor(photo, painting), painting, photo)
    )
    assert (moved.mean(0) - style.mean(0)).norm() < 0.2 * (before.mean(0) - style.mean(0)).norm()
    distance = (moved.T.cov() - style.T.cov()).norm()
    assert distance < 0.5 * (before.T.cov() - style.T.cov()).norm()


def test_starts(encoder, photo, painting):
    def start(given=None, **settings):
        recipe = Recipe(size=64, **settings)
        return arrange(recipe, encoder, picture(photo), picture(painting), given).start

    assert torch.equal(start(start="content"), photo)
    assert torch.equal(start(start="noise", seed=1), start(start="noise", seed=1))
    assert not torch.equal(start(start="noise", seed=1), start(start="noise", seed=2))
    given = start(given=picture(painting), start="some.png")
    assert given.shape == photo.shape
    assert (given.mean((1, 2)) - painting.mean((1, 2))).abs().max() < 0.05


def test_any_two_sizes_and_shapes(encoder, photo, painting):
    recipe = Recipe(size=96, style_size=48, steps=1)
    scene = arrange(recipe, encoder, picture(photo), picture(painting.mT))
    assert scene.content.shape == (3, 64, 96)
    assert max(scene.style.shape) == 48
    assert last(scene).image.shape == (3, 64, 96)
    original = arrange(
        recipe.but(size="original", style_size="original"),
        encoder,
        picture(photo),
        picture(painting),
    )
    assert original.content.shape == photo.shape
    assert original.style.shape == painting.shape


def test_a_thin_picture_is_refused_with_a_way_out(encoder, photo):
    thin = Picture(np.zeros((1, 5000, 3), np.float32))
    with pytest.raises(ImpastoError, match=r"content image is 5000×1.*crop"):
        arrange(Recipe(), encoder, thin, picture(photo))
    with pytest.raises(ImpastoError, match="style image"):
        arrange(Recipe(), encoder, picture(photo), thin)


@pytest.mark.parametrize("color", [0.0, 0.4, 1.0])
def test_pictures_of_one_color(encoder, photo, color):
    flat = torch.full_like(photo, color)
    for content, style in ((photo, flat), (flat, photo), (flat, flat)):
        step = last(arrange(Recipe(size=64, steps=3), encoder, picture(content), picture(style)))
        assert step.best.isfinite().all()
        assert math.isfinite(step.losses.total)


def test_what_is_transparent_does_not_matter(encoder, photo, painting):
    alpha = np.ones(photo.shape[1:], np.float32)
    alpha[:20, :30] = 0
    other = photo.clone()
    other[:, :12, :20] = 0.9  # far enough inside for the first layers
    recipe = Recipe(size=64, steps=3, layers="conv1_1", content_layer="conv1_1")
    results = [
        last(arrange(recipe, encoder, picture(image, alpha), picture(painting))).best
        for image in (photo, other)
    ]
    seen = torch.from_numpy(alpha) > 0
    assert torch.allclose(results[0][:, seen], results[1][:, seen], atol=1e-4)


def test_coarse_to_fine_keeps_detail(encoder, photo, painting):
    """The detail that the coarse size cannot hold comes back from the start."""
    scene = arrange(Recipe(size=64), encoder, picture(photo), picture(painting))
    coarse = torch.nn.functional.interpolate(
        scene.start[None], (22, 32), mode="bicubic", antialias=True
    )[0].clamp(0, 1)
    again = scene.enlarge(coarse, scene.size)
    assert (again - scene.start).abs().mean() < 0.005


def test_a_picture_that_needs_more_memory_is_painted_in_blocks(encoder):
    content, style = sample("coffee", 256), sample("cypresses", 128)
    results = []
    for memory in (math.inf, 1e8):
        scene = arrange(
            Recipe(size=256, style_size=128, steps=2, scales=1),
            encoder,
            picture(content),
            picture(style),
            memory=memory,
        )
        assert isinstance(scene.objective_at(scene.size), BlockObjective) == (memory == 1e8)
        results.append(last(scene).losses)
    assert results[1].total == pytest.approx(results[0].total, rel=0.01)


def test_alpha_one_returns_the_content_through_all_scales(encoder, painting):
    content = sample("coffee", 192)
    recipe = Recipe(size=192, alpha=1, scales=2, steps=3)
    step = last(arrange(recipe, encoder, picture(content), picture(painting)))
    assert (step.best - content).abs().max() < 1 / 255


def test_a_method_that_cannot_work_in_blocks_says_so_at_once(encoder, photo, painting):
    with pytest.raises(ImpastoError, match="more --memory"):
        arrange(Recipe(method="swd"), encoder, picture(photo), picture(painting), memory=1e6)


def test_a_thin_style_survives_the_coarse_sizes(encoder):
    content, style = sample("coffee", 320), sample("cypresses", 320)[:, :40]
    recipe = Recipe(size=320, scales=2, steps=2)
    assert math.isfinite(
        last(arrange(recipe, encoder, picture(content), picture(style))).losses.total
    )


def test_a_picture_of_8_bits_is_kept_in_8_bits_and_nothing_is_lost():
    levels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    levels[0, :, 0] = np.arange(206, 256)
    rgb = levels.astype(np.float32) / np.float32(255)
    device = torch.device("cpu")
    for size in ((40, 50), (80, 100)):
        kept = original(Picture(rgb), size, device)
        assert kept.pixels.dtype == torch.uint8
        assert torch.equal(kept.image, to_image(Picture(rgb), size, device))
    deep = original(Picture(rgb * np.float32(0.999)), (40, 50), device)
    assert deep.pixels.dtype == torch.float32
    assert torch.equal(deep.image, to_image(Picture(rgb * np.float32(0.999)), (40, 50), device))


def test_of_a_picture_that_is_shrunk_only_the_image_is_kept():
    rgb = np.random.default_rng(0).random((200, 300, 3), np.float32)
    kept = original(Picture(rgb), (40, 60), torch.device("cpu"))
    assert kept.pixels.nbytes == 40 * 60 * 3 * 4
    assert kept.image.shape == (3, 40, 60)
