"""Bands of frequency: nothing is lost, and each is its own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from impasto.maths.spectrum import BANDS, OPPONENTS, energies, reweight_

SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))


def image(size, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((3, *size), generator=generator, dtype=dtype)


@given(SIZES)
def test_energies_add_up_to_the_squared_norm(size):
    x = image(size)
    found = energies(x)
    assert found.shape == (3, BANDS)
    assert found.sum().item() == pytest.approx(x.square().sum().item(), rel=1e-12)


@given(SIZES, st.integers(0, 3))
def test_factors_change_their_band_alone(size, seed):
    x, factors = image(size), torch.rand((3, BANDS), dtype=torch.float64) + seed
    assert torch.allclose(energies(reweight_(x.clone(), factors)), energies(x) * factors.square())


@given(SIZES)
def test_factors_of_one_change_nothing(size):
    x = image(size)
    assert torch.allclose(reweight_(x.clone(), torch.ones(3, BANDS)), x)


@given(SIZES)
def test_a_filter_is_symmetric(size):
    """Else it were no curvature."""
    x, y, factors = image(size, 1), image(size, 2), torch.rand(3, BANDS)
    left, right = (
        (reweight_(x.clone(), factors) * y).sum(),
        (x * reweight_(y.clone(), factors)).sum(),
    )
    assert left.item() == pytest.approx(right.item(), rel=1e-9, abs=1e-9)


def test_opponents_are_orthonormal():
    matrix = torch.tensor(OPPONENTS, dtype=torch.float64)
    assert torch.allclose(matrix @ matrix.T, torch.eye(3, dtype=torch.float64))


def test_gray_is_light_alone_and_waves_are_where_they_belong():
    wave = torch.cos(torch.arange(64) * 2 * torch.pi * 16 / 64).expand(3, 64, 64)  # 1/4 per pixel
    found = energies(wave)
    assert found[1:].sum() < 1e-9 * found.sum()
    assert found[0].argmax() == int(1.5 * 1.5)  # 1.5 octaves below the finest
    assert found[0].max() > 0.999 * found.sum()


def test_bands_mean_the_same_at_every_size():
    waves = [torch.cos(torch.arange(n) * 2 * torch.pi / 8).expand(3, n, n) for n in (64, 128, 256)]
    assert len({energies(wave).argmax().item() for wave in waves}) == 1


def test_sixteen_bits_are_read_as_numbers():
    x = image((24, 33), dtype=torch.bfloat16)
    assert torch.allclose(energies(x), energies(x.float()))
