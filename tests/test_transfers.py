"""Transfers: laws over the table, oracles, samples that are not well behaved."""

import numpy as np
import ot
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from impasto import discrepancy
from impasto.maths.linalg import mean_and_covariance
from impasto.transfers import TRANSFERS, transfer
from impasto.types import ImpastoError

CLOSES = {
    "adain": ["mm"],
    "wct": ["mm", "gaussian-ot"],
    "ost": ["mm", "gaussian-ot"],
    "histogram": ["mm", "cmd"],
    "ost+histogram": ["mm", "cmd"],
}


def samples(seed, n, m, d):
    """Two samples of correlated, skewed laws."""
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(k, d, generator=generator, dtype=torch.float64) for k in (n, m))
    mixing = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return x @ mixing + 1, (y + 0.3 * y.square()) @ mixing.T - 2


@pytest.mark.parametrize("name", TRANSFERS)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 6))
def test_a_transfer_closes_its_own_discrepancy(name, seed, d):
    x, y = samples(seed, 80, 80, d)
    moved = transfer(name, x, y)
    for measure in CLOSES[name]:
        orders = [{"order": k} for k in (1, 2, 5, 9)] if measure == "cmd" else [{}]
        for rest in orders:
            before = discrepancy(measure, x, y, **rest)
            assert discrepancy(measure, moved, y, **rest) <= 1e-6 * before + 1e-9, (measure, rest)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), m=st.integers(2, 60))
def test_histograms_of_different_numbers_of_points(seed, n, m):
    x, y = samples(seed, n, m, 3)
    moved = transfer("histogram", x, y)
    assert torch.allclose(moved.mean(0), y.mean(0), atol=1e-9)
    assert torch.all(moved.amin(0) >= y.amin(0) - 1e-9)
    assert torch.all(moved.amax(0) <= y.amax(0) + 1e-9)
    assert (moved.gather(0, x.argsort(0)).diff(dim=0) >= -1e-9).all()  # the order is kept
    if n % m == 0:  # every point of the style is taken equally often
        many = y.repeat(n // m, 1).sort(0).values
        assert torch.allclose(moved.sort(0).values, many, atol=1e-9)


def test_equal_points_stay_equal_and_share_their_part():
    x = torch.tensor([[0.0], [0.0], [0.0], [1.0]])
    y = torch.tensor([[1.0], [2.0], [3.0], [10.0]])
    assert transfer("histogram", x, y).flatten().tolist() == [2.0, 2.0, 2.0, 10.0]


@pytest.mark.parametrize("name", TRANSFERS)
def test_a_map_may_be_applied_in_parts(name):
    x, y = samples(1, 50, 70, 4)
    move = TRANSFERS[name](x, y)
    parts = torch.cat([move(x[:13]), move(x[13:])])
    assert torch.allclose(parts, move(x), atol=1e-12)


@pytest.mark.parametrize("name", TRANSFERS)
def test_strength(name):
    x, y = samples(2, 40, 30, 3)
    assert torch.equal(transfer(name, x, y, strength=0), x)
    half, whole = (transfer(name, x, y, strength=s) for s in (0.5, 1))
    assert torch.allclose(half, (x + whole) / 2)
    with pytest.raises(ImpastoError, match="strength"):
        transfer(name, x, y, strength=1.5)


@pytest.mark.parametrize("name", TRANSFERS)
@pytest.mark.parametrize("kind", ["constant", "one channel constant", "few points", "one point"])
@pytest.mark.parametrize("side", ["content", "style", "both"])
def test_degenerate_samples_give_finite_points(name, kind, side):
    broken = {
        "constant": torch.full((20, 5), 3.0),
        "one channel constant": torch.randn(20, 5).index_fill(1, torch.tensor([2]), 0.7),
        "few points": torch.randn(3, 5),
        "one point": torch.randn(1, 5),
    }[kind]
    good = torch.randn(30, 5)
    x, y = (broken if side in (who, "both") else good for who in ("content", "style"))
    moved = transfer(name, x, y)
    assert moved.isfinite().all()
    assert (moved.mean(0) - y.mean(0)).abs().max() < 1e-3


@given(seed=st.integers(0, 10**6), d=st.integers(1, 5))
def test_ost_never_moves_points_further_than_wct(seed, d):
    x, y = samples(seed, 60, 90, d)
    ost, wct = ((transfer(name, x, y) - x).square().sum(1).mean() for name in ("ost", "wct"))
    assert ost <= wct * (1 + 1e-9) + 1e-12


def test_ost_is_the_map_of_pot():
    x, y = samples(3, 200, 300, 4)
    moments = (mean_and_covariance(each) for each in (x, y))
    (mean_x, cov_x), (mean_y, cov_y) = ([part.numpy() for part in pair] for pair in moments)
    matrix, offset = ot.gaussian.bures_wasserstein_mapping(mean_x, mean_y, cov_x, cov_y)
    assert np.allclose(transfer("ost", x, y).numpy(), x.numpy() @ matrix + offset, atol=1e-8)


def test_the_histogram_is_that_of_scipy():
    x, y = samples(4, 300, 300, 2)
    moved = transfer("histogram", x, y)
    for channel in range(2):
        assert scipy.stats.wasserstein_distance(moved[:, channel], y[:, channel]) < 1e-12


def test_adain_is_optimal_transport_of_independent_coordinates():
    """The paper's statement: with diagonal covariances all three are the same map."""
    generator = torch.Generator().manual_seed(5)
    signs = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]).double()  # uncorrelated exactly
    x = signs * torch.rand(2, generator=generator) * 3 + 1
    y = signs * torch.rand(2, generator=generator) - 2
    adain, wct, ost = (transfer(name, x, y) for name in ("adain", "wct", "ost"))
    assert torch.allclose(adain, ost, atol=1e-9)
    assert torch.allclose(wct, ost, atol=1e-9)


def test_wct_is_optimal_transport_where_covariances_commute():
    x, y = samples(6, 100, 100, 3)
    twice = 2 * (x - x.mean(0)) + y.mean(0)
    assert torch.allclose(transfer("wct", x, twice), transfer("ost", x, twice), atol=1e-7)
    assert not torch.allclose(transfer("wct", x, y), transfer("ost", x, y), atol=1e-3)


def test_an_unknown_transfer_is_an_error():
    with pytest.raises(ImpastoError, match="known: adain"):
        transfer("nonsense", torch.zeros(2, 2), torch.zeros(2, 2))


def test_many_points_are_counted_instead_of_sorted():
    """As features are: half of them zero, a long tail, other numbers of them on both sides."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(20_000, 2, generator=generator).relu() * 3
    y = (torch.randn(9_000, 2, generator=generator) - 0.3).relu() ** 1.5 + 1
    moved = transfer("histogram", x, y)
    assert torch.allclose(moved.mean(0), y.mean(0), rtol=1e-3)
    ranks = (x.argsort(0).argsort(0) + 0.5) / len(x)
    for channel in range(2):
        one, two = x[:, channel], moved[:, channel]
        assert len(two[one == 0].unique()) == 1
        assert (two[one.argsort()].diff() >= -1e-5).all()  # the order is kept
        exact = torch.quantile(y[:, channel], ranks[:, channel])
        assert (two - exact)[one > 0].abs().mean() < 2e-3 * y[:, channel].std()
