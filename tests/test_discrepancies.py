"""Every distance is the one of its formula, and all of them obey the laws of a distance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from torch import Tensor

from impasto.discrepancies import DISCREPANCIES, discrepancy, kernels
from impasto.discrepancies import central_moments as central
from impasto.discrepancies.kernels import KernelMeans, MeanEmbedding, kernel_of
from impasto.discrepancies.sliced import directions
from impasto.discrepancies.styles import STYLES, recipes, style_of
from impasto.recipe import KERNELS, METHODS, Recipe
from impasto.types import Discrepancy, ImpastoError

LAWS = settings(deadline=None, max_examples=12)
DEFAULTS: dict[str, Discrepancy] = {name: build() for name, build in DISCREPANCIES.items()}
LOSSES = {f"style {name}": style_of(recipe).build(recipe) for name, recipe in recipes().items()}
MEASURES: dict[str, Discrepancy] = {
    **DEFAULTS,
    **{name: loss for name, loss in LOSSES.items() if loss not in DEFAULTS.values()},
    "mmd linear": KernelMeans(kernel="linear"),
    "mmd polynomial": KernelMeans(kernel="polynomial"),
    "cmd of order 50": DISCREPANCIES["cmd"](order=50),
}
every_measure = pytest.mark.parametrize("name", MEASURES)
every_name = pytest.mark.parametrize("name", DISCREPANCIES)


def between(name: str, x: Tensor, y: Tensor) -> Tensor:
    measure = MEASURES[name]
    return measure.compare(measure.summarize(x), measure.summarize(y))


def slack(name: str) -> float:
    """How far rounding may move a distance between points of [0, 1] in double precision.

    Gaussian transport drops axes whose variance is below 1e-6 of the largest, both sides taken
    together (``RANK_TOLERANCE`` is 1e-12 of the product): that much variance is not matched.
    """
    return 1e-5 if "gaussian-ot" in name else 1e-9


def points(seed: int, n: int, d: int = 3, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """A sample on [0, 1], its coordinates correlated."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(d, d, generator=generator, dtype=torch.float64)
    normal = torch.randn(n, d, generator=generator, dtype=torch.float64)
    return torch.sigmoid(normal @ mixing).to(dtype)


@st.composite
def samples(draw: st.DrawFn, count: int = 2) -> list[Tensor]:
    """Samples of one dimension and of any numbers of points, which often coincide."""
    d = draw(st.integers(1, 4))
    values = st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.0, 0.5, 1.0])
    shapes = [(draw(st.integers(1, 6)), d) for _ in range(count)]
    return [torch.tensor(draw(arrays(np.float64, shape, elements=values))) for shape in shapes]


# Oracles


def cmd_by_hand(x: np.ndarray, y: np.ndarray, weights: tuple[float, ...]) -> float:
    """Equation 9 with the moments of scipy."""
    total = weights[0] * np.linalg.norm(x.mean(0) - y.mean(0))
    for k, weight in enumerate(weights[1:], start=2):
        difference = stats.moment(x, k, axis=0) - stats.moment(y, k, axis=0)
        total += weight * np.linalg.norm(difference)
    return float(total)


@pytest.mark.parametrize(
    "weights",
    [(1.0,), (1.0,) * 5, (0.0, 1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 1.0, 1.0, 0.0), (2.0, 0.5)],
)
def test_cmd_is_equation_9(weights: tuple[float, ...]) -> None:
    x, y = points(1, 40).numpy(), points(2, 30).numpy()
    ours = discrepancy("cmd", x, y, order=len(weights), weights=weights)
    assert ours == pytest.approx(cmd_by_hand(x, y, weights), rel=1e-11)


def test_cmd_weighs_all_moments_alike_where_nothing_is_said() -> None:
    x, y = points(1, 40).numpy(), points(2, 30).numpy()
    assert discrepancy("cmd", x, y) == pytest.approx(cmd_by_hand(x, y, (1.0,) * 5), rel=1e-11)
    high = discrepancy("cmd", x, y, order=50)
    assert high == pytest.approx(cmd_by_hand(x, y, (1.0,) * 50), rel=1e-11)


def kernel_by_hand(name: str, a: np.ndarray, b: np.ndarray, bandwidth: float) -> float:
    if name == "gaussian":
        return math.exp(-sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) / 2 / bandwidth**2)
    product = sum(p * q for p, q in zip(a, b, strict=True))
    return product**2 if name == "polynomial" else product


def mmd_by_hand(name: str, x: np.ndarray, y: np.ndarray, *, h: float, unbiased: bool) -> float:
    """Equation 3 (unbiased) or 5 (biased) of Gretton et al. (2012) by a double loop."""

    def within(z: np.ndarray) -> float:
        n = len(z)
        total = sum(
            kernel_by_hand(name, z[i], z[j], h)
            for i, j in itertools.product(range(n), repeat=2)
            if not unbiased or i != j
        )
        return total / (n * (n - 1) if unbiased else n**2)

    across = sum(kernel_by_hand(name, a, b, h) for a in x for b in y) / (len(x) * len(y))
    return within(x) + within(y) - 2 * across


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("bandwidth", [0.0, 0.3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_mmd_is_its_double_sum(kernel: str, bandwidth: float, unbiased: bool) -> None:
    x, y = points(3, 9).numpy(), points(4, 7).numpy()
    ours = discrepancy("mmd", x, y, kernel=kernel, bandwidth=bandwidth, unbiased=unbiased)
    h = bandwidth or math.sqrt(3)
    expected = mmd_by_hand(kernel, x, y, h=h, unbiased=unbiased)
    assert ours == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_gram_is_mmd_with_a_squared_inner_product() -> None:
    """Li et al. (2017): the loss of Gatys et al. is the biased MMD² with the kernel (xᵀy)²."""
    x, y = points(5, 12, 4), points(6, 8, 4)
    by_pairs = mmd_by_hand("polynomial", x.numpy(), y.numpy(), h=1.0, unbiased=False)
    ours = discrepancy("gram", x, y)
    assert ours.item() == pytest.approx(by_pairs, rel=1e-10)
    assert ours.item() == pytest.approx(
        discrepancy("mmd", x, y, kernel="polynomial").item(), rel=1e-10
    )


def test_gram_is_the_loss_of_gatys_et_al_but_for_a_factor() -> None:
    """Theirs sums G over positions and divides by 4 C² n²: equal sizes, F of shape (C, n)."""
    x, y = points(5, 16, 4).numpy(), points(6, 16, 4).numpy()
    difference = x.T @ x - y.T @ y
    theirs = (difference**2).sum() / (4 * 4**2 * 16**2)
    assert discrepancy("gram", x, y) / (4 * 4**2) == pytest.approx(theirs, rel=1e-11)


def test_mm_is_mean_and_deviation() -> None:
    x, y = points(7, 20).numpy(), points(8, 31).numpy()
    expected = ((x.mean(0) - y.mean(0)) ** 2 + (x.std(0) - y.std(0)) ** 2).sum()
    assert discrepancy("mm", x, y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "m", "d"), [(40, 25, 3), (40, 25, 1), (60, 90, 8)])
def test_gaussian_ot_is_that_of_pot(n: int, m: int, d: int) -> None:
    x, y = points(9, n, d).numpy(), points(10, m, d).numpy()
    covariances = [np.atleast_2d(np.cov(sample.T, bias=True)) for sample in (x, y)]
    expected = ot.gaussian.bures_wasserstein_distance(x.mean(0), y.mean(0), *covariances) ** 2
    assert discrepancy("gaussian-ot", x, y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "m"), [(15, 15), (12, 18), (7, 20), (1, 5)])
def test_swd_is_that_of_pot(n: int, m: int) -> None:
    x, y = points(11, n, 4).numpy(), points(12, m, 4).numpy()
    theta = directions(4, 30, seed=5).numpy()
    expected = ot.sliced_wasserstein_distance(x, y, projections=theta.T, p=2) ** 2
    ours = discrepancy("swd", x, y, projections=30, seed=5)
    assert ours == pytest.approx(expected, rel=1e-11)


def test_directions_are_uniform_on_the_sphere() -> None:
    """Of length 1; the mean of θ θᵀ is I / d; the same for the same seed and only for it."""
    theta = directions(3, 20_000, seed=1)
    torch.testing.assert_close(theta.norm(dim=1), torch.ones(20_000, dtype=torch.float64))
    second = theta.T @ theta / len(theta)
    torch.testing.assert_close(second, torch.eye(3).double() / 3, rtol=0, atol=0.01)
    torch.testing.assert_close(theta.mean(0), torch.zeros(3).double(), rtol=0, atol=0.02)
    assert torch.equal(theta, directions(3, 20_000, seed=1))
    assert not torch.equal(theta, directions(3, 20_000, seed=2))


@pytest.mark.parametrize("weights", [(1.0,) * 4, (0.0, 2.0, 0.0, 1.0)])
def test_cmd_joint_is_cmd_of_projections(weights: tuple[float, ...]) -> None:
    x, y = points(13, 30, 4).numpy(), points(14, 20, 4).numpy()
    theta = directions(4, 16, seed=3).numpy()
    expected = math.sqrt(4 / 16) * cmd_by_hand(x @ theta.T, y @ theta.T, weights)
    ours = discrepancy("cmd-joint", x, y, order=4, weights=weights, projections=16, seed=3)
    assert ours == pytest.approx(expected, rel=1e-10)


def test_cmd_joint_along_the_axes_is_cmd(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = torch.eye(3, dtype=torch.float64)
    monkeypatch.setattr(central, "directions", lambda dimension, count, seed: axes)
    x, y = points(15, 20), points(16, 25)
    torch.testing.assert_close(
        discrepancy("cmd-joint", x, y, projections=3), discrepancy("cmd", x, y)
    )


# What a distance sees, and what it cannot see


def test_cmd_joint_sees_a_correlation_that_cmd_cannot_see() -> None:
    """Fair coins that agree, and fair coins that differ: every marginal is the same.

    The variance of θ·x is (θ₁² + θ₂²)/4 ± θ₁θ₂/2, so that the laws differ by |θ₁θ₂|.
    """
    agree = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    differ = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    assert discrepancy("cmd", agree, differ, order=50).item() <= 1e-15
    theta = directions(2, 64, seed=0)
    expected = math.sqrt(2 / 64) * theta.prod(1).norm().item()
    assert expected > 0.3
    ours = discrepancy("cmd-joint", agree, differ, order=2, projections=64)
    assert ours.item() == pytest.approx(expected, rel=1e-11)


def test_cmd_joint_sees_a_shuffled_coordinate() -> None:
    x = points(17, 500, 4)
    y = x.clone()
    y[:, 0] = x[torch.randperm(500, generator=torch.Generator().manual_seed(0)), 0]
    assert discrepancy("cmd", x, y).item() <= 1e-14
    assert discrepancy("cmd-joint", x, y).item() >= 1e-3


def test_gram_confuses_mean_and_variance() -> None:
    """Section 3.3: E x² = 1 for {−1, 1} as for {1}; the central moments tell them apart."""
    spread = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    still = torch.ones(2, 1, dtype=torch.float64)
    assert discrepancy("gram", spread, still).item() == 0
    assert discrepancy("cmd", spread, still, order=2).item() == pytest.approx(1 + 1)


def test_two_moments_do_not_determine_a_law() -> None:
    """±1 with ½ each, and ±2 with ⅛ each or 0: variance 1, fourth moments 1 and 4."""
    coin = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    rare = torch.tensor([-2.0, 2.0] + [0.0] * 6, dtype=torch.float64)[:, None]
    for name in ("mm", "gaussian-ot", "gram"):
        assert discrepancy(name, coin, rare).item() <= 1e-12
    assert discrepancy("cmd", coin, rare, order=3).item() <= 1e-12
    assert discrepancy("cmd", coin, rare, order=4).item() == pytest.approx(3)
    # The quantiles differ by 1 on the middle 3/4 and by 1 on the two tails of 1/8.
    assert discrepancy("swd", coin, rare).item() == pytest.approx(1)
    assert discrepancy("mmd", coin, rare).item() >= 0.05


@pytest.mark.parametrize(("n", "m"), [(10, 10), (8, 13)])
def test_on_the_line_mm_is_gaussian_ot(n: int, m: int) -> None:
    """The caption of figure 2."""
    x, y = points(18, n, 1), points(19, m, 1)
    torch.testing.assert_close(discrepancy("mm", x, y), discrepancy("gaussian-ot", x, y))


@pytest.mark.parametrize("name", ["gaussian-ot", "swd"])
def test_transport_of_a_shift_is_the_shift(name: str) -> None:
    """W₂² = ‖b‖²; the sliced one is the mean of (θ·b)²."""
    x = points(20, 25)
    shift = torch.tensor([0.3, -0.1, 2.0], dtype=torch.float64)
    expected = shift.square().sum()
    if name == "swd":
        expected = (directions(3, 64, seed=0) @ shift).square().mean()
    torch.testing.assert_close(discrepancy(name, x, x + shift), expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", ["mmd", "mm", "gaussian-ot", "swd", "cmd"])
def test_moving_both_laws_changes_nothing(name: str) -> None:
    x, y = points(21, 25), points(22, 15)
    torch.testing.assert_close(
        discrepancy(name, x + 7, y + 7), discrepancy(name, x, y), rtol=1e-7, atol=0
    )


def test_moving_both_laws_changes_nothing_in_single_precision() -> None:
    """On a grid of 1/64 the moved points are exact."""
    x, y = ((points(seed, 40) * 64).round().float() / 64 for seed in (21, 22))
    torch.testing.assert_close(
        discrepancy("mmd", x + 1024, y + 1024), discrepancy("mmd", x, y), rtol=1e-2, atol=0
    )


def test_no_two_points_are_more_alike_than_equal_ones() -> None:
    """exp(−t) ≤ 1; a distance that rounding makes negative would break it."""
    x = points(21, 40, 8, dtype=torch.float32) + 100
    assert kernel_of("gaussian", 8, 0.01).pairs(x, x).max() <= 1


@pytest.mark.parametrize("name", ["mmd", "gaussian-ot", "gram"])
def test_rotating_both_laws_changes_nothing(name: str) -> None:
    turn = torch.linalg.qr(points(23, 3))[0]
    x, y = points(24, 25), points(25, 15)
    torch.testing.assert_close(discrepancy(name, x @ turn, y @ turn), discrepancy(name, x, y))


# Mean embeddings


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_mean_embedding_is_exact_where_features_are_finite(kernel: str) -> None:
    x, y = points(26, 30, 5), points(27, 20, 5)
    measure = MeanEmbedding(kernel=kernel)
    ours = measure.compare(measure.summarize(x), measure.summarize(y))
    torch.testing.assert_close(ours, discrepancy("mmd", x, y, kernel=kernel))


@pytest.mark.parametrize("bandwidth", [0.0, 0.5])
def test_mean_embedding_estimates_the_gaussian_kernel(bandwidth: float) -> None:
    """Without bias over the seeds, and as 1/√features: 100 times as many, a tenth of the error."""
    x, y = points(28, 40), points(29, 30)
    exact = discrepancy("mmd", x, y, bandwidth=bandwidth).item()

    def estimates(features: int) -> np.ndarray:
        measures = [
            MeanEmbedding(bandwidth=bandwidth, features=features, seed=seed) for seed in range(40)
        ]
        return np.array([m.compare(m.summarize(x), m.summarize(y)).item() for m in measures])

    few, many = estimates(64), estimates(6400)
    for sample in (few, many):
        error = sample.std(ddof=1) / math.sqrt(len(sample))
        assert abs(sample.mean() - exact) <= 4 * error
    assert 5 <= few.std() / many.std() <= 20
    assert abs(many - exact).max() <= 0.1 * exact


def test_the_default_embedding_is_close_enough_for_a_loss() -> None:
    x, y = points(30, 200, 16), points(31, 150, 16)
    exact = discrepancy("mmd", x, y).item()
    measure = MeanEmbedding()
    ours = measure.compare(measure.summarize(x), measure.summarize(y)).item()
    assert ours == pytest.approx(exact, rel=0.3)


def test_the_double_sum_is_made_of_bounded_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than BLOCK kernel values at a time, for the value as for the gradient."""
    x, y = points(32, 60).requires_grad_(), points(33, 45)

    def value_and_gradient() -> tuple[Tensor, Tensor]:
        value = discrepancy("mmd", x, y)
        return value.detach(), torch.autograd.grad(value, x)[0]

    whole = value_and_gradient()
    sizes: list[int] = []

    def recorded(*arguments: Any) -> Callable[..., Tensor]:
        function = kernel_of(*arguments)

        def record(a: Tensor, b: Tensor) -> Tensor:
            sizes.append(len(a) * len(b))
            return function.pairs(a, b)

        return function._replace(pairs=record)

    monkeypatch.setattr(kernels, "BLOCK", 500)
    monkeypatch.setattr(kernels, "kernel_of", recorded)
    for ours, expected in zip(value_and_gradient(), whole, strict=True):
        torch.testing.assert_close(ours, expected)
    assert max(sizes) <= 500
    pairs = 60 * 60 + 45 * 45 + 60 * 45
    # Blocks that depend on x are computed again for the gradient instead of being kept.
    assert sum(sizes) == pairs + 60 * 60 + 60 * 45


# Laws


@every_measure
@given(sample=samples(1))
@LAWS
def test_zero_on_itself(name: str, sample: list[Tensor]) -> None:
    (x,) = sample
    assert abs(between(name, x, x).item()) <= slack(name)


@every_measure
@given(pair=samples())
@LAWS
def test_never_negative(name: str, pair: list[Tensor]) -> None:
    assert between(name, *pair).item() >= 0


@every_measure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_never_negative_where_rounding_decides(name: str, dtype: torch.dtype) -> None:
    for seed in range(12):
        x = points(seed, 30, 5, dtype=dtype)
        assert between(name, x, x.flip(0)).item() >= 0


@every_measure
@given(pair=samples())
@LAWS
def test_symmetric(name: str, pair: list[Tensor]) -> None:
    x, y = pair
    torch.testing.assert_close(between(name, x, y), between(name, y, x), rtol=0, atol=slack(name))


@every_measure
@given(pair=samples(), seed=st.integers(0, 1000))
@LAWS
def test_blind_to_the_order_of_points(name: str, pair: list[Tensor], seed: int) -> None:
    x, y = pair
    shuffled = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))]
    torch.testing.assert_close(
        between(name, shuffled, y), between(name, x, y), rtol=0, atol=slack(name)
    )


@every_measure
@given(pair=samples(), times=st.integers(2, 3))
@LAWS
def test_unchanged_when_every_point_is_repeated(name: str, pair: list[Tensor], times: int) -> None:
    """A distance is one of laws: how often a law was sampled is not part of it."""
    x, y = pair
    expected = between(name, x, y)
    for again in (
        between(name, x.repeat(times, 1), y),
        between(name, x, y.repeat_interleave(times, 0)),
    ):
        torch.testing.assert_close(again, expected, rtol=0, atol=slack(name))


@every_measure
@given(triple=samples(3))
@LAWS
def test_triangle_inequality(name: str, triple: list[Tensor]) -> None:
    """Of the distance itself: all but the central moments return its square."""
    x, y, z = triple
    power = 1 if "cmd" in name else 0.5
    xy, yz, xz = (between(name, *pair).item() ** power for pair in ((x, y), (y, z), (x, z)))
    assert xz <= xy + yz + slack(name) ** power


@every_measure
def test_different_laws_are_told_apart(name: str) -> None:
    """The laws above hold for a constant 0 as well; here the distance must not be 0."""
    assert between(name, points(34, 30), points(35, 30).square()).item() >= 1e-4


EDGES: dict[str, tuple[Tensor, Tensor]] = {
    "equal sides": (points(36, 6), points(36, 6)),
    "constant points": (torch.full((5, 3), 0.25), torch.full((4, 3), 0.75)),
    "equal constant points": (torch.full((5, 3), 0.1), torch.full((4, 3), 0.1)),
    "one constant coordinate": (
        torch.tensor([[0.0, 0.2], [0.0, 0.4]]),
        torch.tensor([[0.0, 0.3], [0.0, 0.9]]),
    ),
    "zeros": (torch.zeros(4, 2), torch.zeros(3, 2)),
    "one point": (points(37, 1), points(38, 1)),
    "one point and many": (points(37, 1), points(38, 9)),
    "fewer points than dimensions": (points(39, 4, 12), points(40, 3, 12)),
    "saturated": (points(41, 9).round(), points(42, 8).round()),
    "far apart": (points(43, 6) - 30, 30 * points(44, 5)),
}


@every_measure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("edge", EDGES)
def test_value_and_gradient_are_finite_at_the_edges(
    name: str, edge: str, dtype: torch.dtype
) -> None:
    if (name, edge, dtype) == ("cmd of order 50", "far apart", torch.float32):
        pytest.skip("60^50 is beyond single precision")
    x, y = (side.to(dtype).requires_grad_() for side in EDGES[edge])
    value = between(name, x, y)
    assert value.isfinite()
    assert value >= 0
    for gradient, side in zip(torch.autograd.grad(value, (x, y)), (x, y), strict=True):
        assert gradient.dtype == dtype
        assert gradient.shape == side.shape
        assert gradient.isfinite().all()


@every_measure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_pulls_where_the_laws_agree(name: str, dtype: torch.dtype) -> None:
    x = points(45, 20, dtype=dtype).requires_grad_()
    y = x.detach().flip(0)
    (gradient,) = torch.autograd.grad(between(name, x, y), x)
    # Central moments have a kink there: rounding decides on which side of it one stands.
    if "cmd" not in name:
        assert gradient.abs().max() <= (1e-4 if dtype == torch.float32 else 1e-6)
    (same,) = torch.autograd.grad(between(name, x, x.detach()), x)
    assert same.abs().max() <= (1e-4 if dtype == torch.float32 else 1e-6)


@every_measure
@pytest.mark.parametrize(("n", "m", "d"), [(5, 4, 3), (4, 4, 2), (3, 5, 6)])
def test_gradient_is_the_slope_on_both_sides(name: str, n: int, m: int, d: int) -> None:
    x, y = points(46, n, d).requires_grad_(), points(47, m, d).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: between(name, x, y), (x, y), atol=1e-7, rtol=1e-4)


@every_measure
def test_single_precision_gives_the_same_distance(name: str) -> None:
    x, y = points(48, 60, 8), points(49, 45, 8)
    single = between(name, x.float(), y.float()).double()
    torch.testing.assert_close(single, between(name, x, y), rtol=1e-4, atol=1e-6)


# The function for all


@every_name
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numpy_and_tensors_give_the_same_number(name: str, dtype: torch.dtype) -> None:
    x, y = points(50, 12, dtype=dtype), points(51, 9, dtype=dtype)
    as_tensor, as_number = discrepancy(name, x, y), discrepancy(name, x.numpy(), y.numpy())
    assert as_tensor.dtype == dtype
    assert as_tensor.shape == ()
    assert type(as_number) is float
    assert as_number == as_tensor.item()


@every_name
def test_whole_numbers_are_numbers(name: str) -> None:
    x, y = np.array([[0, 1], [1, 1], [1, 0]]), np.array([[0, 0], [1, 0]])
    assert discrepancy(name, x, y) == discrepancy(name, x.astype(float), y.astype(float))


@every_name
def test_arrays_are_left_as_they_were_and_may_be_read_only(name: str) -> None:
    x, y = points(52, 6).numpy(), points(53, 6).numpy()
    before = x.copy()
    x.flags.writeable = False
    discrepancy(name, x, y[::-1, ::-1])
    np.testing.assert_array_equal(x, before)


@every_name
def test_a_seed_and_no_global_state_decides(name: str) -> None:
    x, y = points(54, 6).numpy(), points(55, 6).numpy()
    torch.manual_seed(1)
    first = discrepancy(name, x, y)
    state = torch.get_rng_state()
    torch.manual_seed(2)
    assert discrepancy(name, x, y) == first
    torch.manual_seed(1)
    discrepancy(name, x, y)
    assert torch.equal(torch.get_rng_state(), state)


@every_name
@pytest.mark.parametrize("as_tensors", [False, True])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones(3), np.ones(3)),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2))),
        (np.ones((4, 3)), np.ones((4, 2))),
        (np.ones((4, 2)), np.ones((4, 3))),
        (np.ones((0, 3)), np.ones((4, 3))),
        (np.ones((4, 3)), np.ones((0, 3))),
        (np.ones((4, 0)), np.ones((4, 0))),
        (np.full((4, 3), np.nan), np.ones((4, 3))),
        (np.ones((4, 3)), np.full((4, 3), np.inf)),
    ],
    ids=lambda value: f"{value.shape}",
)
def test_points_that_are_none_are_refused(
    name: str, x: np.ndarray, y: np.ndarray, as_tensors: bool
) -> None:
    pair = [torch.tensor(side) if as_tensors else side for side in (x, y)]
    with pytest.raises(ImpastoError):
        discrepancy(name, *pair)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cmd", {"order": 0}),
        ("cmd", {"order": -1}),
        ("cmd", {"order": 3, "weights": (1.0, 1.0)}),
        ("cmd", {"order": 2, "weights": (1.0, -1.0)}),
        ("cmd", {"order": 2, "weights": (1.0, math.nan)}),
        ("cmd", {"order": 2, "weights": (1.0, math.inf)}),
        ("cmd", {"orders": 5}),
        ("cmd", {"order": "five"}),
        ("cmd-joint", {"order": 0}),
        ("cmd-joint", {"order": 2, "weights": (1.0, -1.0)}),
        ("cmd-joint", {"projections": 0}),
        ("swd", {"projections": 0}),
        ("swd", {"projections": -3}),
        ("mmd", {"kernel": "cubic"}),
        ("gram", {"order": 5}),
        ("mm", {"order": 5}),
        ("gaussian-ot", {"order": 5}),
        ("wasserstein", {}),
        ("", {}),
        ("cmd", {"activation": "tanh"}),
        ("cmd-joint", {"activation": "tanh"}),
        ("cmd", {"order": 2.5}),
        ("swd", {"projections": 2.5}),
        ("mmd", {"bandwidth": math.nan}),
        ("mm", {"eps": -1.0}),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(name: str, options: dict[str, Any]) -> None:
    x, y = points(56, 6).numpy(), points(57, 6).numpy()
    with pytest.raises(ImpastoError):
        discrepancy(name, x, y, **options)


def test_the_unbiased_estimate_needs_two_points() -> None:
    one, two = np.ones((1, 2)), np.ones((2, 2))
    for pair in ((one, two), (two, one)):
        with pytest.raises(ImpastoError, match="two points"):
            discrepancy("mmd", *pair, unbiased=True)


def test_an_error_names_the_choices() -> None:
    with pytest.raises(ImpastoError, match=r"'nonsense'.*cmd, gram"):
        discrepancy("nonsense", np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(ImpastoError, match=r"'cubic'.*linear, polynomial, gaussian"):
        discrepancy("mmd", np.ones((2, 2)), np.ones((2, 2)), kernel="cubic")


def test_the_embedding_refuses_an_unknown_kernel() -> None:
    with pytest.raises(ImpastoError):
        MeanEmbedding(kernel="cubic")


def test_an_embedding_needs_a_whole_wave() -> None:
    with pytest.raises(ImpastoError, match="features is 1"):
        MeanEmbedding(features=1)


@pytest.mark.parametrize(
    "name",
    METHODS,
)
def test_single_and_double_precision_compare(name: str) -> None:
    x, y = points(59, 12), points(60, 9)
    mixed = discrepancy(name, x.float(), y)
    assert mixed.dtype == torch.float64
    assert mixed.item() == pytest.approx(discrepancy(name, x, y).item(), rel=1e-4)


def test_lists_are_arrays() -> None:
    x, y = points(59, 12).numpy(), points(60, 9).numpy()
    assert discrepancy("cmd", x.tolist(), y.tolist()) == discrepancy("cmd", x, y)


@pytest.mark.parametrize("first", [torch.tensor, np.asarray])
def test_an_array_and_a_tensor_compare_or_are_refused(first: Callable[..., Any]) -> None:
    x, y = points(59, 12).numpy(), points(60, 9).numpy()
    second = np.asarray if first is torch.tensor else torch.tensor
    try:
        value = float(discrepancy("cmd", first(x), second(y)))
    except ImpastoError:
        return
    assert value == pytest.approx(discrepancy("cmd", x, y))


# Tables and recipes


def test_all_tables_know_the_same_methods() -> None:
    assert set(METHODS) == set(DISCREPANCIES)
    kernels_of_mmd = {f"mmd-{kernel}" for kernel in KERNELS}
    assert set(STYLES) == set(METHODS) - {"mmd"} | kernels_of_mmd == set(recipes())


@pytest.mark.parametrize("name", STYLES)
def test_a_style_is_found_by_its_recipe(name: str) -> None:
    recipe = recipes()[name]
    assert style_of(recipe) is STYLES[name]
    assert recipe.method == ("mmd" if name.startswith("mmd-") else name)


def test_all_kernels_of_a_recipe_exist() -> None:
    for kernel in KERNELS:
        recipe = Recipe(method="mmd", kernel=kernel)
        assert style_of(recipe).build(recipe) == MeanEmbedding(kernel=kernel)
        KernelMeans(kernel=kernel)


def test_one_distance_has_one_unit() -> None:
    """Gram matrices and the polynomial kernel are the same loss under two names."""
    assert STYLES["gram"][1:] == STYLES["mmd-polynomial"][1:]


@pytest.mark.parametrize("name", STYLES)
def test_layers_weigh_1000_over_channels_squared_in_units(name: str) -> None:
    recipe = recipes()[name]
    plain = recipe.style_layers
    assert [tap[-3:] for tap in plain] == ["1_1", "2_1", "3_1", "4_1", "5_1"]
    assert list(plain.values()) == [1000 / c**2 for c in (64, 128, 256, 512, 512)]
    _, unit, power = STYLES[name]
    weights = style_of(recipe).weights(recipe)
    expected = [1000 / c**2 * unit * c**power for c in (64, 128, 256, 512, 512)]
    assert list(weights) == list(plain)
    assert list(weights.values()) == pytest.approx(expected)
    assert all(0 < weight < math.inf for weight in weights.values())
    if name == "cmd":
        assert weights == plain  # the paper's own


@pytest.mark.parametrize(
    "settings_of_recipe",
    [
        {"method": "cmd"},
        {"method": "cmd", "order": 3, "moment_weights": (0.0, 1.0, 2.0)},
        {"method": "cmd-joint"},
        {"method": "cmd-joint", "order": 2, "projections": 9, "seed": 4},
    ],
    ids=str,
)
def test_cmd_of_features_is_cmd_behind_a_sigmoid(settings_of_recipe: dict[str, Any]) -> None:
    """Equation 11 of the paper."""
    recipe = Recipe(**settings_of_recipe)
    x, y = 6 * points(61, 20) - 3, 6 * points(62, 15) - 3
    measure = style_of(recipe).build(recipe)
    ours = measure.compare(measure.summarize(x), measure.summarize(y))
    renamed = {"moment_weights": "weights"}
    options = {renamed.get(k, k): v for k, v in settings_of_recipe.items() if k != "method"}
    expected = discrepancy(recipe.method, torch.sigmoid(x), torch.sigmoid(y), **options)
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("gram", {}),
        ("mm", {}),
        ("gaussian-ot", {}),
        ("swd", {"projections": 7, "seed": 3}),
        ("mmd", {"kernel": "linear"}),
        ("mmd", {"kernel": "polynomial"}),
    ],
)
def test_other_recipes_mean_the_distance_of_their_name(
    method: str, options: dict[str, Any]
) -> None:
    recipe = Recipe(method=method, **options)
    x, y = points(63, 20), points(64, 15)
    measure = style_of(recipe).build(recipe)
    ours = measure.compare(measure.summarize(x), measure.summarize(y))
    torch.testing.assert_close(ours, discrepancy(method, x, y, **options))


def test_the_summary_of_the_style_can_be_kept() -> None:
    """Compared again and again, with gradients in between, it gives the same."""
    for name, measure in MEASURES.items():
        style = measure.summarize(points(65, 12))
        x = points(66, 10).requires_grad_()
        values = []
        for _ in range(2):
            value = measure.compare(measure.summarize(x), style)
            value.backward()
            values.append(value.item())
        assert values[0] == values[1] == between(name, x, points(65, 12)).item()
