"""Blocks fit into the memory, and more of it never means more work."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impasto.blocks import SMALLEST_BLOCK, trail_bytes
from impasto.discrepancies.styles import recipes
from impasto.recipe import Recipe
from impasto.room import HALO, block_bytes, divide, look_bytes

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
    block = math.prod(min(length, division.side + 2 * HALO) for length in size)
    if division.side > SMALLEST_BLOCK:
        assert block_bytes(block) + division.trails <= memory * (1 + 1e-9)


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
    for passage in trail.passages[1:]:
        parts = [passage.sign, *(passage.choice or ())[:2]]
        for part in (getattr(each, "packed", each) for each in parts):
            kept[id(part)] = part
    assert sum(part.nbytes for part in kept.values()) == trail_bytes(taps) * 32 * 48
