"""Who sees what: sequences of ballots that are balanced and follow from a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from impasto.types import ImpastoError

Orders: TypeAlias = "list[tuple[int, ...]]"
MOST_SHOWN = 9  # a digit on the keyboard for each


class Ballot(NamedTuple):
    """One question: results of some methods on one pair, from left to right."""

    pair: int
    methods: tuple[int, ...]
    again: int | None = None  # the position of the ballot that this one repeats


@dataclass(frozen=True, kw_only=True)
class Design:
    """Pairs of pictures, each painted by all methods, of which some are shown at a time."""

    pairs: int
    methods: int
    shown: int  # methods on a ballot: all, or two
    ballots: int  # of one participant, repeats not counted
    repeats: int = 0  # ballots that come again, in another order: is it the same choice?
    seed: int = 0

    def __post_init__(self) -> None:
        if self.methods < 2:
            raise ImpastoError(f"a study compares at least two methods, not {self.methods}")
        if self.shown not in (2, self.methods) or self.shown > MOST_SHOWN:
            raise ImpastoError(
                f"{self.shown} of {self.methods} methods cannot be shown at once: all can, up to "
                f"{MOST_SHOWN}, or two at a time"
            )
        if not 1 <= self.ballots <= self.units:
            raise ImpastoError(f"ballots is {self.ballots}; it must be between 1 and {self.units}")
        if not 0 <= self.repeats <= self.ballots // 2:
            raise ImpastoError(
                f"repeats is {self.repeats}; of {self.ballots} ballots at most half can come again"
            )

    @property
    def choices(self) -> Orders:
        """The sets of methods that are shown together."""
        return list(combinations(range(self.methods), self.shown))

    @property
    def units(self) -> int:
        """How many different ballots there are."""
        return self.pairs * len(self.choices)

    @property
    def length(self) -> int:
        """How many ballots one participant gets."""
        return self.ballots + self.repeats


def sequence(design: Design, seat: int) -> list[Ballot]:
    """The ballots of the participant who came as number ``seat``, counted from 0.

    Participants are dealt consecutive parts of one cycle through all ballots, so that after any
    number of them no ballot has been dealt more than once more than another, and none comes twice
    to the same participant but for repeats. When the cycle ends at the end of a part it is
    shuffled anew.
    """
    seats = design.units // math.gcd(design.units, design.ballots)  # until the cycle is whole
    turn, place = divmod(seat, seats)
    cycle = _cycle(design, turn)
    times = turn * (seats * design.ballots // design.units)  # each unit was dealt before this turn
    dealt = [
        (cycle[index % design.units], times + index // design.units)
        for index in range(place * design.ballots, (place + 1) * design.ballots)
    ]
    rng = np.random.default_rng([design.seed, turn, place, 1])
    dealt = [dealt[index] for index in rng.permutation(len(dealt))]
    if design.shown == 2:
        ballots = [Ballot(pair, _sides(design, pair, two, time)) for (pair, two), time in dealt]
    else:
        orders = _latin_orders(design.methods, len(dealt), rng)
        ballots = [Ballot(pair, order) for ((pair, _), _), order in zip(dealt, orders, strict=True)]
    return _with_repeats(ballots, design.repeats, rng)


def _cycle(design: Design, turn: int) -> list[tuple[int, tuple[int, ...]]]:
    """All ballots once: every pair in turn, each time with the next set of methods."""
    rng = np.random.default_rng([design.seed, turn, 0, 0])
    sets = [design.choices[index] for index in rng.permutation(len(design.choices))]
    pairs = rng.permutation(design.pairs).tolist()
    return [
        (pair, sets[(place + lap) % len(sets)])
        for lap in range(len(sets))
        for place, pair in enumerate(pairs)
    ]


def _sides(design: Design, pair: int, two: tuple[int, ...], time: int) -> tuple[int, ...]:
    """Left and right, changing each time that this ballot is dealt."""
    first = int(np.random.default_rng([design.seed, pair, *two, 2]).integers(2))
    return two if (first + time) % 2 else two[::-1]


def _latin_orders(methods: int, count: int, rng: np.random.Generator) -> Orders:
    """Orders in which every method takes every place once in each run of as many ballots."""
    orders: Orders = []
    while len(orders) < count:
        names, shifts = rng.permutation(methods).tolist(), rng.permutation(methods).tolist()
        columns = rng.permutation(methods).tolist()
        orders += [
            tuple(names[(column + shift) % methods] for column in columns) for shift in shifts
        ]
    return orders[:count]


def _with_repeats(ballots: list[Ballot], repeats: int, rng: Any) -> list[Ballot]:
    """Some ballots of the first half again in the second, every picture in another place."""
    half = -(-len(ballots) // 2)
    again = rng.permutation(half)[:repeats].tolist()
    slots = sorted(rng.integers(half, len(ballots) + 1, size=repeats).tolist(), reverse=True)
    result = list(ballots)
    for position, slot in zip(again, slots, strict=True):
        pair, methods, _ = ballots[position]
        shift = int(rng.integers(1, len(methods)))
        result.insert(slot, Ballot(pair, methods[shift:] + methods[:shift], position))
    return result
