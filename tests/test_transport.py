"""Optimal transport agrees with the POT library, and a map does what it promises."""

from __future__ import annotations

import numpy as np
import ot
import pytest
import torch
from torch import Tensor

from impasto.maths.linalg import mean_and_covariance
from impasto.maths.transport import gaussian_map, transport_gaussian, wasserstein_1d


def points(seed: int, n: int, d: int = 3) -> Tensor:
    """A sample whose coordinates are correlated, off center and of different spread."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(d, d, generator=generator, dtype=torch.float64)
    shift = torch.randn(d, generator=generator, dtype=torch.float64)
    return torch.randn(n, d, generator=generator, dtype=torch.float64) @ mixing + shift


def colors(value: tuple[float, float, float], n: int = 20) -> Tensor:
    return torch.tensor(value, dtype=torch.float64).expand(n, 3)


@pytest.mark.parametrize(
    ("n", "m"), [(1, 1), (7, 7), (1, 9), (9, 1), (3, 7), (6, 4), (12, 18), (50, 100), (64, 81)]
)
def test_the_distance_on_the_line_is_that_of_pot(n: int, m: int) -> None:
    x, y = points(n, n, 4).T.sort(1).values, points(m + 500, m, 4).T.sort(1).values
    # POT returns W_p to the power p, one law per column.
    expected = ot.wasserstein_1d(x.numpy().T, y.numpy().T, p=2)
    np.testing.assert_allclose(wasserstein_1d(x, y), expected, rtol=1e-11)


def test_the_distance_on_the_line_by_hand() -> None:
    """Half of the mass of {0} goes to 1, half to 3; of {0, 4} all of 0 and half of 4 go to 1."""
    one = torch.tensor([[0.0]])
    assert wasserstein_1d(one, torch.tensor([[1.0, 3.0]])).item() == pytest.approx((1 + 9) / 2)
    x, y = torch.tensor([[0.0, 4.0]]), torch.tensor([[1.0, 1.0, 2.0]])
    assert wasserstein_1d(x, y).item() == pytest.approx(1 / 2 + 9 / 6 + 4 / 3)


@pytest.mark.parametrize(("n", "m"), [(4, 4), (4, 6), (5, 3)])
def test_the_distance_on_the_line_has_the_right_slope(n: int, m: int) -> None:
    x = points(1, n, 2).T.sort(1).values.requires_grad_()
    y = points(2, m, 2).T.sort(1).values.requires_grad_()
    assert torch.autograd.gradcheck(wasserstein_1d, (x, y))


@pytest.mark.parametrize("d", [1, 3, 6])
def test_the_map_between_gaussians_is_that_of_pot(d: int) -> None:
    x, y = points(3, 60, d), points(4, 45, d)
    mean_x, matrix, mean_y = gaussian_map(x, y)
    moments = [mean_and_covariance(sample) for sample in (x, y)]
    expected, shift = ot.gaussian.bures_wasserstein_mapping(
        *(mean.numpy() for mean, _ in moments), *(covariance.numpy() for _, covariance in moments)
    )
    np.testing.assert_allclose(matrix, expected, rtol=1e-8, atol=1e-10)
    # POT has T(p) = p A + b.
    np.testing.assert_allclose(
        mean_y - mean_x @ matrix, np.asarray(shift).ravel(), rtol=1e-8, atol=1e-10
    )


def test_the_map_is_the_gradient_of_a_convex_function() -> None:
    """Symmetric and positive: by Brenier's theorem no other map with these moments is optimal."""
    _, matrix, _ = gaussian_map(points(5, 40), points(6, 40))
    torch.testing.assert_close(matrix, matrix.T)
    assert torch.linalg.eigvalsh(matrix).min() > 0


@pytest.mark.parametrize(("n", "m"), [(30, 50), (50, 30), (400, 7)])
def test_transported_points_have_the_moments_of_the_target(n: int, m: int) -> None:
    x, y = points(7, n), points(8, m)
    mean, covariance = mean_and_covariance(transport_gaussian(x, x, y))
    target_mean, target_covariance = mean_and_covariance(y)
    torch.testing.assert_close(mean, target_mean, rtol=0, atol=1e-11)
    torch.testing.assert_close(covariance, target_covariance, rtol=0, atol=1e-10)


def test_transport_between_equal_laws_moves_nothing() -> None:
    x = points(9, 25)
    torch.testing.assert_close(transport_gaussian(x, x, x), x, rtol=0, atol=1e-9)
    shuffled = x[torch.randperm(25, generator=torch.Generator().manual_seed(0))]
    torch.testing.assert_close(transport_gaussian(x, x, shuffled), x, rtol=0, atol=1e-9)


def test_transport_between_equal_laws_moves_nothing_along_a_thin_axis() -> None:
    x = points(9, 25) * torch.tensor([1.0, 1.0, 1e-4])
    torch.testing.assert_close(transport_gaussian(x, x, x), x, rtol=0, atol=1e-9)


def test_other_points_may_be_moved_by_the_same_map() -> None:
    """Pixels that did not count for the moments follow the affine map of those that did."""
    x, y, others = points(10, 30), points(11, 30), points(12, 5)
    together = transport_gaussian(torch.cat([others, x]), x, y)
    torch.testing.assert_close(together[5:], transport_gaussian(x, x, y))
    mean_x, matrix, mean_y = gaussian_map(x, y)
    torch.testing.assert_close(together[:5], (others - mean_x) @ matrix + mean_y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_type_of_the_points_is_kept(dtype: torch.dtype) -> None:
    x, y = points(13, 20).to(dtype), points(14, 20).to(dtype)
    moved = transport_gaussian(x, x, y)
    assert moved.dtype == dtype
    torch.testing.assert_close(moved.mean(0), y.mean(0), rtol=1e-5, atol=1e-5)


def test_one_color_on_either_side() -> None:
    """The only law with the moments of one color is that color."""
    red, photo = colors((1.0, 0.0, 0.0)), points(15, 20)
    black = colors((0.0, 0.0, 0.0))
    mean = photo.mean(0).expand(20, 3)
    torch.testing.assert_close(transport_gaussian(red, red, photo), mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(transport_gaussian(photo, photo, red), red, rtol=0, atol=1e-12)
    torch.testing.assert_close(transport_gaussian(red, red, black), black, rtol=0, atol=1e-12)
    torch.testing.assert_close(transport_gaussian(black, black, black), black)


@pytest.mark.parametrize("gray_side", ["content", "style", "both"])
def test_gray_pictures(gray_side: str) -> None:
    """A Gaussian on a line keeps to a line: Σ of the result is P Σ_y P, P onto the range of Σ_x."""
    x, y = points(16, 30), points(17, 40)
    if gray_side != "style":
        x = x[:, :1].expand(30, 3)
    if gray_side != "content":
        y = y[:, :1].expand(40, 3)
    mean, covariance = mean_and_covariance(transport_gaussian(x, x, y))
    target_mean, target_covariance = mean_and_covariance(y)
    onto = torch.eye(3, dtype=torch.float64)
    if gray_side != "style":
        onto = torch.full((3, 3), 1 / 3, dtype=torch.float64)
    torch.testing.assert_close(mean, target_mean, rtol=0, atol=1e-11)
    torch.testing.assert_close(covariance, onto @ target_covariance @ onto, rtol=0, atol=1e-9)


def test_two_pixels_are_enough() -> None:
    x, y = points(18, 2), points(19, 3)
    moved = transport_gaussian(x, x, y)
    assert moved.isfinite().all()
    torch.testing.assert_close(moved.mean(0), y.mean(0), rtol=0, atol=1e-11)
