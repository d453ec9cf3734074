"""Bits: nothing is lost, and little is kept."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from impasto.maths.bits import pack, unpack


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 9))
def test_what_is_unpacked_is_what_was_packed(shape, seed):
    bools = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    bits = pack(bools)
    assert torch.equal(unpack(bits), bools)
    assert bits.packed.nbytes == -(-bools.numel() // 8)


def test_views_are_packed_as_they_are_seen():
    bools = torch.arange(60).view(3, 4, 5) % 3 == 0
    assert torch.equal(unpack(pack(bools.mT)), bools.mT)
    assert torch.equal(unpack(pack(bools.flatten()[3:43])), bools.flatten()[3:43])


def test_a_map_lies_in_memory_as_before():
    bools = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5) % 7 == 0
    for kind in (torch.channels_last, torch.contiguous_format):
        laid = bools.contiguous(memory_format=kind)
        found = unpack(pack(laid))
        assert torch.equal(found, bools)
        assert found.stride() == laid.stride()
