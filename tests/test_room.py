"""Blocks fit into the memory, and more of it never means more work."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impasto.blocks import SMALLEST_BLOCK, blocks_of, halo_of, keeping, trail_bytes
from impasto.discrepancies.styles import recipes
from impasto.recipe import Recipe
from impasto.room import block_bytes, divide, look_bytes

SIZES = st.tuples(st.integers(32, 8000), st.integers(32, 8000))
MEMORY = st.floats(1e8, 1e11)
STYLE = (512, 512)
TAPS = Recipe().style_layers


@given(SIZES, MEMORY)
def test_more_memory_never_means_more_work(size, memory):
    less, more = (divide(size, STYLE, room, taps=TAPS) for room in (memory, 2 * memory))
    assert less is not None or more is None
    if less is not None and more is not None:
        assert 1 <= more.work <= less.work


@given(SIZES, MEMORY)
def test_a_block_and_the_trails_of_the_others_fit(size, memory):
    division = divide(size, STYLE, memory, taps=TAPS)
    if division is None:
        assert look_bytes(math.prod(size)) <= memory
        return
    assert division.side >= SMALLEST_BLOCK
    largest = max(block.pixels for block in blocks_of(size, division.side, halo_of(TAPS)))
    if division.side > SMALLEST_BLOCK:
        assert block_bytes(largest) + division.trails <= memory * (1 + 1e-9)


@given(st.lists(st.integers(1, 1000), min_size=1), st.floats(0, 1e4), st.floats(1, 20))
def test_what_is_kept_beside_the_last_fits(pixels, trails, each):
    kept = keeping(pixels, trails, each)
    needed = [each * count for count, keeps in zip(pixels, kept, strict=True) if keeps]
    assert kept[-1]
    assert sum(needed[:-1]) <= trails * (1 + 1e-9)
    if sum(pixels[:-1]) * each <= trails * (1 - 1e-9):
        assert all(kept)


def test_nothing_is_kept_where_nothing_comes_back():
    division = divide((4000, 6000), STYLE, 8e9)
    assert division is not None
    assert division.trails == 0


def test_one_shallow_layer_needs_no_trail():
    division = divide((4000, 6000), STYLE, 8e9, taps=["relu1_1"])
    assert division is not None
    assert division.work >= 1


def test_there_are_blocks_even_where_there_is_no_memory():
    division = divide((400, 600), STYLE, -1e9, taps=TAPS)
    assert division is not None
    assert (division.side, division.trails) == (SMALLEST_BLOCK, 0)


@pytest.mark.parametrize(
    "taps",
    [
        *({*recipe.style_layers, recipe.content_layer} for recipe in recipes().values()),
        {"conv1_1"},
        {"conv1_2", "relu3_1", "conv3_1"},
        {"relu1_1", "conv1_1", "conv4_4", "conv5_4"},
    ],
    ids=lambda taps: " ".join(sorted(taps)),
)
def test_the_bytes_of_a_trail_are_those_of_its_tensors(encoder, photo, taps):
    """Signs and choices in bits, taps in four bytes, the first convolution not at all."""
    image = photo[:, :32, :48]
    found, trail = encoder.trace(image, taps, watch=lambda *_: None)
    kept = {id(x): x for x in found.values()}
    for passage in trail.passages:
        parts = [passage.sign, *(passage.choice or ())[:2]]
        for part in (getattr(each, "packed", each) for each in parts if each is not None):
            kept[id(part)] = part
    assert sum(part.nbytes for part in kept.values()) == trail_bytes(taps) * 32 * 48
