"""Structural similarity is that of scikit-image; smoothing terms are those of their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import torch
from skimage import data
from skimage.metrics import structural_similarity
from torch import Tensor

from impasto.maths.similarity import ssim
from impasto.objective import laplacian_loss, total_variation


def noise(seed: int, height: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(3, height, width, generator=generator)


def photo() -> Tensor:
    cropped = data.chelsea()[40:140, 80:210]
    return torch.tensor(cropped / 255.0, dtype=torch.float32).permute(2, 0, 1)


def by_skimage(x: Tensor, y: Tensor) -> float:
    """Of the luma of ITU-R BT.601; the border of 5 pixels is cropped there as well."""
    lumas = [np.tensordot([0.299, 0.587, 0.114], image.double().numpy(), 1) for image in (x, y)]
    return structural_similarity(
        *lumas, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=1.0
    )


PAIRS = {
    "noise": lambda: (noise(1, 20, 31), noise(2, 20, 31)),
    "smallest": lambda: (noise(3, 11, 11), noise(4, 11, 11)),
    "photo and noise": lambda: (photo(), (photo() + 0.3 * noise(5, 100, 130)).clamp(0, 1)),
    "photo and its negative": lambda: (photo(), 1 - photo()),
    "photo and gray": lambda: (photo(), torch.full_like(photo(), 0.5)),
    "black and white": lambda: (torch.zeros(3, 16, 16), torch.ones(3, 16, 16)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_ssim_is_that_of_scikit_image(pair: str) -> None:
    x, y = PAIRS[pair]()
    assert ssim(x, y) == pytest.approx(by_skimage(x, y), abs=1e-10)


def test_ssim_of_an_image_with_itself_is_1() -> None:
    for image in (photo(), torch.zeros(3, 16, 16), noise(6, 13, 40)):
        assert ssim(image, image) == pytest.approx(1, abs=1e-12)


def test_ssim_is_symmetric() -> None:
    x, y = PAIRS["photo and noise"]()
    assert ssim(x, y) == pytest.approx(ssim(y, x), abs=1e-14)


def test_ssim_falls_with_noise() -> None:
    image, grain = photo(), noise(7, 100, 130) - 0.5
    values = [ssim(image, image + strength * grain) for strength in (0.0, 0.1, 0.3, 1.0)]
    assert values == sorted(values, reverse=True)
    assert values[0] - values[-1] > 0.5


def test_ssim_of_two_constants_is_known() -> None:
    """Without variance only the term of the means is left: (2ab + c) / (a² + b² + c)."""
    a, b, c = 0.2, 0.7, 0.01**2
    x, y = (torch.full((3, 15, 15), value, dtype=torch.float64) for value in (a, b))
    assert ssim(x, y) == pytest.approx((2 * a * b + c) / (a * a + b * b + c), abs=1e-10)


# The terms of the objective that look at pixels


def test_total_variation_is_the_mean_step_between_neighbors() -> None:
    image = noise(8, 6, 9).double()
    array = image.numpy()
    down, right = np.abs(np.diff(array, axis=1)), np.abs(np.diff(array, axis=2))
    assert total_variation(image).item() == pytest.approx(down.mean() + right.mean(), rel=1e-12)
    assert total_variation(torch.full((3, 6, 9), 0.4)).item() == 0
    ramp = torch.arange(9.0).expand(3, 6, 9)
    assert total_variation(ramp).item() == 1


@pytest.mark.parametrize(("height", "width"), [(24, 32), (27, 33)])
def test_laplacian_term_is_that_of_scipy(height: int, width: int) -> None:
    """The Laplacians of both images after 4 × 4 pooling, inside the border, a remainder cut."""
    x, y = noise(9, height, width).double(), noise(10, height, width).double()

    def laplacian(image: Tensor) -> np.ndarray:
        h, w = height // 4, width // 4
        cut = image.numpy()[:, : 4 * h, : 4 * w]
        pooled = cut.reshape(3, h, 4, w, 4).mean((2, 4))
        return np.stack([scipy.ndimage.laplace(channel)[1:-1, 1:-1] for channel in pooled])

    expected = ((laplacian(x) - laplacian(y)) ** 2).mean()
    assert laplacian_loss(x, y).item() == pytest.approx(expected, rel=1e-11)


def test_laplacian_term_allows_new_colors_and_light() -> None:
    """The Laplacian of what is linear in the position is 0: a tint and a slope cost nothing."""
    content = photo().double()
    height, width = content.shape[1:]
    slope = torch.linspace(0, 0.5, width, dtype=torch.float64).expand(3, height, width)
    tint = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64)[:, None, None]
    assert laplacian_loss(content, content).item() == 0
    assert laplacian_loss(content + slope + tint, content).item() <= 1e-20
    assert laplacian_loss(content.flip(2), content).item() >= 1e-4


@pytest.mark.parametrize("term", ["total variation", "laplacian"])
def test_smoothing_terms_have_the_right_slope(term: str) -> None:
    image, content = noise(11, 12, 16).double()[:1].requires_grad_(), noise(12, 12, 16).double()[:1]
    if term == "total variation":
        assert torch.autograd.gradcheck(total_variation, image)
    else:
        assert torch.autograd.gradcheck(lambda image: laplacian_loss(image, content), image)
