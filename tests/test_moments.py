"""Central moments are those of scipy, and their gradient is that of the plain formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from torch import Tensor

from impasto import native
from impasto.maths import moments
from impasto.maths.moments import central_moments

HIGHEST = 50
SAMPLES = {
    "target of figure 2": lambda rng: rng.beta(0.5, 0.45, (2000, 3)),
    "source of figure 2": lambda rng: rng.beta(2, 3, (2000, 3)),
    "narrow": lambda rng: 0.5 + 1e-3 * rng.random((1500, 2)),
    "wide": lambda rng: rng.normal(40, 100, (1500, 2)),
    "two values": lambda rng: (rng.random((1000, 2)) < 0.3).astype(float),
}


def sample(name: str) -> np.ndarray:
    return SAMPLES[name](np.random.default_rng(7))


def by_scipy(points: np.ndarray, order: int) -> np.ndarray:
    """The mean and scipy's central moments: (order, d)."""
    higher = [stats.moment(points, k, axis=0) for k in range(2, order + 1)]
    return np.stack([points.mean(0), *higher])


def by_autograd(points: Tensor, order: int) -> Tensor:
    """The definition, word by word, with a graph behind it."""
    mean = points.mean(0)
    return torch.stack([mean, *(((points - mean) ** k).mean(0) for k in range(2, order + 1))])


@pytest.mark.parametrize("name", SAMPLES)
def test_moments_are_those_of_scipy(name: str) -> None:
    points = sample(name)
    ours = central_moments(torch.tensor(points), HIGHEST).numpy()
    # An odd moment may cancel: its error is measured by E|x − c_1|^k, the size of its terms.
    # scipy rounds the mean once, which costs the narrow sample k · 1e-16 · mean / deviation.
    sizes = np.stack(
        [(np.abs(points - points.mean(0)) ** k).mean(0) for k in range(1, HIGHEST + 1)]
    )
    sizes[0] = np.abs(points).mean(0)
    assert ours.shape == (HIGHEST, points.shape[1])
    assert (np.abs(ours - by_scipy(points, HIGHEST)) <= 1e-10 * sizes).all()


@pytest.mark.parametrize("name", ["target of figure 2", "source of figure 2", "two values"])
def test_single_precision_is_enough_for_fifty_moments(name: str) -> None:
    points = sample(name).astype(np.float32)
    exact = by_scipy(points.astype(np.float64), HIGHEST)
    ours = central_moments(torch.tensor(points), HIGHEST)
    assert ours.dtype == torch.float64
    difference = np.abs(ours.numpy() - exact)
    assert difference.max() <= 1e-7
    # k factors and a sum: about k roundings of 6e-8 each.
    clear = np.abs(exact) > 1e-6
    assert clear[[1, 4, 9]].all()
    assert (difference[clear] <= 1e-4 * np.abs(exact[clear])).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("activation", ["identity", "sigmoid"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, -3.7])
def test_a_constant_has_a_mean_and_no_other_moment(
    dtype: torch.dtype, activation: str, value: float
) -> None:
    points = torch.full((977, 3), value, dtype=dtype, requires_grad=True)
    result = central_moments(points, HIGHEST, activation=activation)
    expected = torch.tensor(value, dtype=dtype)
    expected = torch.sigmoid(expected) if activation == "sigmoid" else expected
    torch.testing.assert_close(result[0], expected.double().expand(3), rtol=1e-7, atol=0)
    assert result[1:].abs().max() <= 1e-12
    result.sum().backward()
    assert points.grad is not None
    assert points.grad.isfinite().all()


def test_one_point_is_a_constant() -> None:
    point = torch.tensor([[0.3, -2.0, 0.0]], dtype=torch.float64, requires_grad=True)
    result = central_moments(point, 6)
    assert torch.equal(result[0], point[0].detach())
    assert torch.equal(result[1:], torch.zeros(5, 3, dtype=torch.float64))
    weights = torch.arange(1.0, 7.0, dtype=torch.float64)[:, None]
    (gradient,) = torch.autograd.grad((weights * result).sum(), point)
    assert torch.equal(gradient, torch.ones_like(point))  # only the mean moves with it


def test_high_powers_of_small_deviations_vanish_instead_of_failing() -> None:
    """(1e-3)^50 is below single precision, and below its denormal numbers."""
    points = torch.tensor(sample("narrow"), dtype=torch.float32, requires_grad=True)
    result = central_moments(points, HIGHEST)
    assert result.isfinite().all()
    assert result[14:].abs().max() <= 1e-45
    assert (result[1] > 0).all()
    result.sum().backward()
    assert points.grad is not None
    assert points.grad.isfinite().all()


def test_high_powers_of_large_deviations_are_finite() -> None:
    """9^50 is 5e47: too large for single precision, in which the result is not."""
    points = torch.linspace(-9, 9, 100)[:, None]
    expected = by_scipy(points.double().numpy(), HIGHEST)
    torch.testing.assert_close(
        central_moments(points, HIGHEST)[1::2], torch.tensor(expected)[1::2], rtol=1e-4, atol=0
    )


def test_many_points_lose_no_digits() -> None:
    """A plain running sum of so many numbers in single precision would keep three digits."""
    generator = torch.Generator().manual_seed(3)
    points = torch.rand(3_000_000, 1, generator=generator)
    exact = by_autograd(points.double(), 5)
    torch.testing.assert_close(central_moments(points, 5), exact, rtol=1e-6, atol=1e-8)


def test_a_large_mean_is_no_deviation() -> None:
    """c_k(x + b) = c_k(x) for k > 1; the points are such that x + b is exact."""
    whole = torch.randint(0, 64, (500, 2), generator=torch.Generator().manual_seed(1))
    points = whole.float() / 64
    moved = central_moments(points + 1024, 8)
    still = central_moments(points, 8)
    torch.testing.assert_close(moved[1:], still[1:], rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(moved[0], still[0] + 1024, rtol=1e-9, atol=0)


@given(
    points=arrays(
        np.float64, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=st.floats(-2, 2)
    ),
    factor=st.floats(-2, 2),
    shift=st.floats(-2, 2),
)
@settings(deadline=None, max_examples=60)
def test_moments_of_a_moved_and_stretched_law(
    points: np.ndarray, factor: float, shift: float
) -> None:
    """c_1(ax + b) = a c_1(x) + b and c_k(ax + b) = a^k c_k(x)."""
    x = torch.tensor(points)
    expected = central_moments(x, 7) * factor ** torch.arange(1, 8, dtype=x.dtype)[:, None]
    expected[0] += shift
    torch.testing.assert_close(central_moments(factor * x + shift, 7), expected, rtol=0, atol=1e-9)


@given(points=arrays(np.float64, (2, 6, 2), elements=st.floats(0, 1)))
@settings(deadline=None, max_examples=60)
def test_the_terms_are_bounded_on_the_unit_interval(points: np.ndarray) -> None:
    """Proposition 1 of Zellinger et al. (2017): the bound falls with the order."""
    x, y = torch.tensor(points)
    norms = (central_moments(x, 20) - central_moments(y, 20)).norm(dim=1)
    k = torch.arange(1, 21, dtype=torch.float64)
    bound = 2 * 2**0.5 * ((k / (k + 1)) ** k / (k + 1) + 0.5 ** (k + 1))
    assert (bound.diff() < 0).all()
    assert (norms <= bound + 1e-12).all()


def test_points_need_not_lie_in_a_row() -> None:
    """A feature map (C, H, W) as points is the transpose of its memory."""
    generator = torch.Generator().manual_seed(5)
    features = torch.rand(4, 6, 7, generator=generator, dtype=torch.float64)
    points = features.flatten(1).T
    assert not points.is_contiguous()
    torch.testing.assert_close(
        central_moments(points, 6), central_moments(points.contiguous(), 6), rtol=1e-13, atol=1e-15
    )
    sparse = torch.rand(20, 6, generator=generator, dtype=torch.float64)[::3, ::2]
    np.testing.assert_allclose(
        central_moments(sparse, 4).numpy(), by_scipy(sparse.numpy(), 4), rtol=1e-11
    )


@pytest.mark.parametrize("block", [1, 50, 130])
def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    points = torch.tensor(sample("source of figure 2")[:60], requires_grad=True)
    weights = torch.rand(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def moments_and_gradient() -> tuple[Tensor, Tensor]:
        result = central_moments(points, 5, activation="sigmoid")
        return result.detach(), torch.autograd.grad((weights * result).sum(), points)[0]

    whole = moments_and_gradient()
    monkeypatch.setattr(moments, "BLOCK", block)
    for ours, expected in zip(moments_and_gradient(), whole, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-13, atol=1e-16)


def test_a_coordinate_may_be_larger_than_a_block() -> None:
    generator = torch.Generator().manual_seed(2)
    points = torch.rand(moments.BLOCK + 11, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(central_moments(points, 4), by_autograd(points, 4))


@pytest.mark.parametrize("activation", ["identity", "sigmoid"])
@pytest.mark.parametrize("order", [1, 2, 3, 5, 8, 50])
def test_gradient_is_the_slope(order: int, activation: str) -> None:
    generator = torch.Generator().manual_seed(order)
    points = 2.4 * torch.rand(6, 2, generator=generator, dtype=torch.float64) - 1.2
    # σ is nearly flat there: it is stretched, so that high powers of it are not all zero.
    points = 8 * points if activation == "sigmoid" else points
    size = by_autograd(torch.sigmoid(points) if activation == "sigmoid" else points, order)
    size = size.abs().clamp_min(1e-9)

    def in_units(x: Tensor) -> Tensor:
        return central_moments(x, order, activation=activation) / size

    assert torch.autograd.gradcheck(
        in_units, points.requires_grad_(), eps=1e-7, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("order", [1, 2, 5, 50])
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_gradient_equals_that_of_the_plain_formula(
    order: int, dtype: torch.dtype, rtol: float
) -> None:
    points = torch.tensor(sample("target of figure 2")[:300], requires_grad=True)
    plain = by_autograd(points, order)
    weights = 1 / plain.detach().abs().clamp_min(1e-12)  # every order has its say
    (expected,) = torch.autograd.grad((weights * plain).sum(), points)
    ours = points.detach().to(dtype).requires_grad_()
    (gradient,) = torch.autograd.grad((weights * central_moments(ours, order)).sum(), ours)
    assert gradient.dtype == dtype
    torch.testing.assert_close(
        gradient.double(), expected, rtol=rtol, atol=rtol * expected.abs().max().item()
    )


def test_sigmoid_may_be_applied_outside() -> None:
    generator = torch.Generator().manual_seed(9)
    points = (4 * torch.randn(200, 3, generator=generator, dtype=torch.float64)).requires_grad_()
    inside = central_moments(points, 9, activation="sigmoid")
    outside = central_moments(torch.sigmoid(points), 9)
    torch.testing.assert_close(inside, outside, rtol=1e-12, atol=1e-15)
    weights = torch.rand(inside.shape, generator=generator, dtype=torch.float64)
    (ours,) = torch.autograd.grad((weights * inside).sum(), points)
    (expected,) = torch.autograd.grad((weights * outside).sum(), points)
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-15)


def test_points_are_left_as_they_were() -> None:
    """The powers are computed in place, but not in the caller's place."""
    points = torch.rand(50, 2, generator=torch.Generator().manual_seed(4))
    before = points.clone()
    for activation in ("identity", "sigmoid"):
        ours = points.requires_grad_()
        central_moments(ours, 4, activation=activation).sum().backward()
        assert torch.equal(points, before)


@pytest.mark.parametrize("activation", ["identity", "sigmoid"])
@pytest.mark.parametrize("block", [37, moments.BLOCK])
@pytest.mark.parametrize("order", [1, 5, 50])
def test_it_does_not_matter_how_points_lie_in_memory(
    order: int, block: int, activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments, "BLOCK", block)
    monkeypatch.setattr(moments, "SAMPLE", 10)
    generator = torch.Generator().manual_seed(3)
    by_point = torch.randn((9, 14, 6), generator=generator, dtype=torch.float64)
    by_point.mul_(torch.tensor([1, 1e-3, 4, 0, 2, 1], dtype=torch.float64)).add_(0.3)
    by_coordinate = by_point.movedim(-1, 0).contiguous().movedim(0, -1)
    cropped = torch.nn.functional.pad(by_point, (0, 0, 2, 2, 1, 1))[1:-1, 2:-2]
    found = []
    for points in (by_point, by_coordinate, cropped):
        leaf = points.detach().requires_grad_()
        result = central_moments(leaf, order, activation=activation)
        plain = by_autograd(
            (torch.sigmoid(leaf) if activation == "sigmoid" else leaf).flatten(0, 1), order
        )
        torch.testing.assert_close(result, plain, rtol=1e-8, atol=1e-13)
        (slope,) = torch.autograd.grad(result.sum(), leaf)
        found.append((result, slope))
    for result, slope in found[1:]:
        torch.testing.assert_close(result, found[0][0], rtol=1e-8, atol=1e-13)
        torch.testing.assert_close(slope, found[0][1], rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("activation", ["identity", "sigmoid"])
@pytest.mark.parametrize("by_point", [True, False])
def test_a_spread_is_the_gradient_of_the_sums(by_point: bool, activation: str) -> None:
    generator = torch.Generator().manual_seed(0)
    points = 3 * torch.randn((7, 5, 4), generator=generator, dtype=torch.float64)
    points = points if by_point else points.movedim(-1, 0).contiguous().movedim(0, -1)
    slopes = torch.randn((6, 4), generator=generator, dtype=torch.float64)
    about = torch.tensor([0.2, 0.5, 0.4, 0.6], dtype=torch.float64)
    leaf = points.clone().requires_grad_()
    sums, _ = moments.power_sums(leaf, 6, activation=activation, about=about)
    (expected,) = torch.autograd.grad((sums * slopes).sum(), leaf)
    total = torch.ones_like(points)
    moments.spread(points, slopes, activation=activation, about=about, onto=total)
    assert torch.allclose(total, 1 + expected, rtol=1e-12)


@pytest.mark.parametrize("by_point", [True, False])
def test_powers_that_vanish_leave_the_sums_as_they_are(by_point: bool) -> None:
    """High powers of small numbers are too small for single precision, and slow."""
    generator = torch.Generator().manual_seed(5)
    points = torch.rand((4000, 3), generator=generator) ** 4
    points = points if by_point else points.T.contiguous().T
    zero = torch.zeros(3, dtype=torch.float64)
    sums, _ = moments.power_sums(points, 50, about=zero)
    expected = torch.stack([(points.double() ** k).sum(0) for k in range(1, 51)])
    torch.testing.assert_close(sums, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("period", [2, 4, 8, 16])
@pytest.mark.parametrize("by_point", [True, False])
def test_moments_of_a_texture_that_repeats_itself(period: int, by_point: bool) -> None:
    """Where some points tell where the mean is, they do not all show the same phase."""
    generator = torch.Generator().manual_seed(8)
    stripes = torch.where(torch.arange(512) % period < period // 2, 1.5, -2.0)
    points = stripes[:, None, None] + 0.1 * torch.randn((512, 512, 2), generator=generator)
    points = points if by_point else points.movedim(-1, 0).contiguous().movedim(0, -1)
    ours = central_moments(points, 30, activation="sigmoid")
    expected = by_autograd(points.double().flatten(0, 1).sigmoid(), 30)
    torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("shape", [(3, 100_000, 2), (100_000, 3, 2), (1, 20_000, 2), (70_001, 2)])
def test_the_pivot_of_any_shape_is_about_the_mean(shape: tuple[int, ...]) -> None:
    points = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = moments.pivot_of(points + 3)
    assert found.shape == (2,)
    assert (found - 3).abs().max() < 0.1


@pytest.mark.skipif(native.library() is None, reason="nothing was compiled")
@pytest.mark.parametrize("activation", ["sigmoid", "identity"])
@pytest.mark.parametrize("order", [1, 2, 5, 50])
@pytest.mark.parametrize("shape", [(1, 16), (7, 48), (129, 64), (9, 13, 64), (70, 67, 32)])
def test_loops_give_the_sums_and_the_slopes_of_the_plain_formula(
    shape: tuple[int, ...], order: int, activation: str
) -> None:
    generator = torch.Generator().manual_seed(0)
    frame = torch.randn(*(side + 4 for side in shape[:-1]), shape[-1], generator=generator)
    inside = (slice(2, -2),) * (len(shape) - 1)
    for points in (frame[inside].contiguous(), frame[inside]):  # by itself, and within a margin
        assert moments._suits(points)
        about = torch.full(shape[-1:], 0.4, dtype=torch.float64)
        slopes = torch.randn(order, shape[-1], generator=generator, dtype=torch.float64)
        leaf = points.double().requires_grad_()
        u = (leaf.sigmoid() if activation == "sigmoid" else leaf) - about.float().double()
        expected = torch.stack([(u**k).flatten(0, -2).sum(0) for k in range(1, order + 1)])
        (slope,) = torch.autograd.grad(expected, leaf, slopes)
        leaf = points.detach().requires_grad_()
        sums, _ = moments.power_sums(leaf, order, activation=activation, about=about)
        size = torch.stack([(u**k).abs().flatten(0, -2).sum(0) for k in range(1, order + 1)])
        # A power multiplies the error of what it is taken of.
        assert ((sums - expected).abs() <= 1e-6 * max(order, 20) * size + 1e-30).all()
        (found,) = torch.autograd.grad(sums, leaf, slopes)
        assert (found - slope).norm() <= 2e-5 * slope.norm()
        onto = torch.ones_like(frame)[inside]
        moments.spread(points, slopes, activation=activation, about=about, onto=onto)
        assert (onto - 1 - slope).norm() <= 2e-5 * slope.norm() + 1e-6 * slope.numel() ** 0.5


@pytest.mark.skipif(native.library() is None, reason="nothing was compiled")
def test_loops_take_any_number_and_any_threads() -> None:
    points = torch.randn(64, 64, 32, generator=torch.Generator().manual_seed(1))
    points[0, 0, :4] = torch.tensor([1e30, -1e30, 88.0, -88.0])
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            leaf = points.clone().requires_grad_()
            sums, _ = moments.power_sums(leaf, 5, activation="sigmoid")
            found.append((sums, *torch.autograd.grad(sums.sum(), leaf)))
    finally:
        torch.set_num_threads(before)
    assert all(x.isfinite().all() for x in found[0])
    assert all(
        torch.equal(*pair) for other in found[1:] for pair in zip(other, found[0], strict=True)
    )
