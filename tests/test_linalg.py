"""Square roots of covariances are those of scipy, and stay finite where they are singular."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from impasto.maths import linalg
from impasto.maths.linalg import (
    inverse_root,
    mean_and_covariance,
    overlap,
    root,
    wide_mean_and_covariance,
)


def factor(seed: int, size: int = 5, rank: int | None = None) -> Tensor:
    """A matrix a whose product a aᵀ has a given rank."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, rank or size, generator=generator, dtype=torch.float64)


def covariance(seed: int, size: int = 5, rank: int | None = None) -> Tensor:
    a = factor(seed, size, rank)
    return a @ a.T


@pytest.mark.parametrize("points", [1, 2, 40])
@pytest.mark.parametrize("moments", [mean_and_covariance, wide_mean_and_covariance])
def test_mean_and_covariance_are_those_of_numpy(points: int, moments, monkeypatch) -> None:
    monkeypatch.setattr(linalg, "PART", 4 * 7)  # seven points at a time
    x = factor(3, points, 4) + 2
    mean, matrix = moments(x)
    np.testing.assert_allclose(mean, x.numpy().mean(0), rtol=1e-13)
    np.testing.assert_allclose(matrix, np.cov(x.numpy().T, bias=True), rtol=1e-12, atol=1e-15)


def test_doubt_keeps_variances_and_makes_the_covariance_of_few_points_regular() -> None:
    few, many = (mean_and_covariance(factor(3, points, 8), doubt=1.0) for points in (4, 80_000))
    assert torch.linalg.matrix_rank(few[1]) == 8
    mean, plain = mean_and_covariance(factor(3, 4, 8))
    assert torch.equal(few[0], mean)
    assert torch.equal(few[1].diagonal(), plain.diagonal())
    assert torch.allclose(few[1].triu(1), plain.triu(1) * 4 / 12)
    assert torch.allclose(many[1], mean_and_covariance(factor(3, 80_000, 8))[1], rtol=2e-4)


@pytest.mark.parametrize("seed", range(4))
def test_root_is_that_of_scipy(seed: int) -> None:
    matrix = covariance(seed)
    np.testing.assert_allclose(root(matrix), scipy.linalg.sqrtm(matrix.numpy()), atol=1e-10)
    np.testing.assert_allclose(
        inverse_root(matrix),
        scipy.linalg.inv(scipy.linalg.sqrtm(matrix.numpy())),
        rtol=1e-8,
        atol=1e-8,
    )


@pytest.mark.parametrize("rank", [1, 2, 4, 5])
def test_root_of_a_singular_matrix(rank: int) -> None:
    matrix = covariance(11, rank=rank)
    half, inverse = root(matrix), inverse_root(matrix)
    torch.testing.assert_close(half @ half, matrix, rtol=0, atol=1e-12)
    assert torch.linalg.eigvalsh(half).min() >= -1e-12
    expected = np.linalg.pinv(half.numpy(), rcond=1e-5, hermitian=True)
    np.testing.assert_allclose(inverse, expected, rtol=1e-8, atol=1e-8)
    # The four equations of Penrose, two of which are symmetry here.
    torch.testing.assert_close(half @ inverse @ half, half, rtol=0, atol=1e-10)
    torch.testing.assert_close(inverse @ half @ inverse, inverse, rtol=0, atol=1e-8)
    assert torch.linalg.matrix_rank(inverse, rtol=1e-8) == rank


def test_roots_of_zero_are_zero() -> None:
    zero = torch.zeros(3, 3, dtype=torch.float64)
    assert torch.equal(root(zero), zero)
    assert torch.equal(inverse_root(zero), zero)


@pytest.mark.parametrize("seed", range(4))
def test_overlap_is_that_of_scipy(seed: int) -> None:
    x, y = covariance(seed), covariance(seed + 100)
    half = scipy.linalg.sqrtm(y.numpy())
    expected = np.trace(scipy.linalg.sqrtm(half @ x.numpy() @ half)).real
    np.testing.assert_allclose(overlap(x, y, root(y)), expected, rtol=1e-11)


@pytest.mark.parametrize(("rank_x", "rank_y"), [(5, 5), (1, 5), (5, 1), (2, 3), (1, 1)])
def test_overlap_is_a_nuclear_norm(rank_x: int, rank_y: int) -> None:
    """tr (y½ a aᵀ y½)½ is the sum of the singular values of aᵀ b, where y = b bᵀ."""
    a, b = factor(1, rank=rank_x), factor(2, rank=rank_y)
    x, y = a @ a.T, b @ b.T
    expected = np.linalg.svd((a.T @ b).numpy(), compute_uv=False).sum()
    np.testing.assert_allclose(overlap(x, y, root(y)), expected, rtol=1e-9)
    np.testing.assert_allclose(overlap(y, x, root(x)), expected, rtol=1e-9)


def test_overlap_of_a_matrix_with_itself_is_its_trace() -> None:
    matrix = covariance(6)
    torch.testing.assert_close(overlap(matrix, matrix, root(matrix)), matrix.trace())


def test_overlap_has_the_right_slope_in_both_arguments() -> None:
    x, y = covariance(21, 4).requires_grad_(), covariance(22, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: overlap(x, y, root(y.detach())), (x, y))


@pytest.mark.parametrize("points", [2, 3, 9])
def test_overlap_has_the_right_slope_in_points(points: int) -> None:
    """With fewer points than coordinates both covariances are singular wherever one looks."""
    a, b = factor(23, points, 4).requires_grad_(), factor(24, points, 4).requires_grad_()

    def of_points(a: Tensor, b: Tensor) -> Tensor:
        x, y = mean_and_covariance(a)[1], mean_and_covariance(b)[1]
        return overlap(x, y, root(y.detach()))

    assert torch.autograd.gradcheck(of_points, (a, b))


@pytest.mark.parametrize(("rank_x", "rank_y"), [(0, 0), (0, 4), (4, 0), (1, 4), (4, 1), (1, 1)])
def test_overlap_is_finite_for_singular_matrices(rank_x: int, rank_y: int) -> None:
    x, y = (
        (covariance(seed, 4, rank) if rank else torch.zeros(4, 4, dtype=torch.float64))
        for seed, rank in ((31, rank_x), (32, rank_y))
    )
    x.requires_grad_(), y.requires_grad_()
    value = overlap(x, y, root(y.detach()))
    gradients = torch.autograd.grad(value, (x, y))
    assert value.isfinite()
    assert value >= 0
    for gradient in gradients:
        assert gradient.isfinite().all()
        assert gradient.abs().max() <= 1e3  # no rounding blown up by a division
