"""Statistics of votes: shares, differences, strengths, agreement; each with its uncertainty.

A vote chooses one of the items that were shown. ``counts`` are votes per item, ``confidence`` is
the probability with which an interval holds what it is about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from impasto.types import ImpastoError

Array: TypeAlias = "np.ndarray[Any, Any]"
Ballots: TypeAlias = "Mapping[tuple[int, ...], Sequence[int]]"  # items shown: votes for each

CONFIDENCE = 0.95
RESAMPLES = 2000  # of a bootstrap: the ends of an interval then move by about a tenth of its width
FLIPS = 1 << 14  # sign changes tried before they are drawn by lot: all of them up to 14 voters
TOLERANCE = 1e-10  # of a strength, relatively, where the iteration ends
ITERATIONS = 10_000


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


class Share(NamedTuple):
    """The part of all votes that one item got."""

    votes: int
    share: float
    alone: Interval  # of this share by itself (Wilson)
    together: Interval  # holds for all shares at once (Goodman)


class Difference(NamedTuple):
    """How far one item leads another, as a part of all votes, and whether that may be chance."""

    first: int
    second: int
    lead: float
    interval: Interval
    p: float  # of a lead as large as this in either direction where both are equally liked
    adjusted: float  # the same, for all differences tested at once (Holm)


class Strengths(NamedTuple):
    """How much items are liked: log-strengths with mean 0."""

    logs: tuple[float, ...]
    intervals: tuple[Interval, ...]
    prior: float  # wins that were added to each side; 0 where the votes alone decide

    def beats(self, first: int, second: int) -> float:
        """The probability that the first is preferred to the second."""
        return 1 / (1 + math.exp(self.logs[second] - self.logs[first]))


class Agreement(NamedTuple):
    """How much voters agree: 1 always, 0 as often as by chance."""

    kappa: float
    interval: Interval
    observed: float  # the probability that two voters agree on a ballot
    expected: float  # the same by chance
    ballots: int  # that at least two have voted on


def quantile(confidence: float) -> float:
    """The number z with P(|N(0, 1)| ≤ z) = confidence."""
    if not 0 < confidence < 1:
        raise ImpastoError(f"confidence is {confidence:g}; it must be between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(votes: float, total: float, *, confidence: float = CONFIDENCE) -> Interval:
    r"""The interval of a share by the score test (Wilson 1927).

    .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}
    """
    if not total:
        return Interval(0.0, 1.0)
    z, share = quantile(confidence), votes / total
    center = share + z**2 / (2 * total)
    width = z * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    scale = 1 + z**2 / total
    # At the ends the root is exact on paper only.
    low = 0.0 if votes == 0 else (center - width) / scale
    high = 1.0 if votes == total else (center + width) / scale
    return Interval(low, high)


def shares(
    counts: Sequence[int],
    *,
    shown: Sequence[int] | None = None,
    confidence: float = CONFIDENCE,
) -> list[Share]:
    """The share of every item, with intervals; those of Goodman (1965) split the error evenly.

    ``shown`` says how often each was to be chosen; where nothing is said, on every ballot.
    """
    totals = [_total(counts)] * len(counts) if shown is None else shown
    each = 1 - (1 - confidence) / len(counts)
    return [
        Share(
            votes,
            votes / total if total else 0.0,
            wilson(votes, total, confidence=confidence),
            wilson(votes, total, confidence=each),
        )
        for votes, total in zip(counts, totals, strict=True)
    ]


def equal_shares(counts: Sequence[int]) -> float:
    """The probability of shares as unequal as these if all items are equally liked (χ²)."""
    _total(counts)
    return equal_strengths({tuple(range(len(counts))): counts}, len(counts))


def equal_strengths(ballots: Ballots, items: int) -> float:
    """The probability of votes as uneven as these if all items are equally liked.

    The score test at equal strengths, u' I⁺ u ~ χ²; with one set of items it is Pearson's.
    """
    shown = list(ballots.items())
    score, information = np.zeros(items), _information(shown, np.zeros(items))
    for chosen, votes in shown:
        score[list(chosen)] += np.array(votes) - sum(votes) / len(chosen)
    freedom = int(np.linalg.matrix_rank(information))
    if not freedom:
        return 1.0
    statistic = float(score @ np.linalg.pinv(information) @ score)
    tail = torch.special.gammaincc(_double(freedom / 2), _double(max(statistic, 0.0) / 2))
    return float(tail)


def differences(counts: Sequence[int], *, confidence: float = CONFIDENCE) -> list[Difference]:
    r"""Every difference of two shares of one multinomial.

    Of the votes for one of the two, those for the first are Bin(nᵢ + nⱼ, ½) where both are equally
    liked: an exact test. The interval is that of matched pairs (Agresti and Min 2005),

    .. math:: \tilde p_i - \tilde p_j \pm z \sqrt{(\tilde p_i + \tilde p_j -
        (\tilde p_i - \tilde p_j)^2) / \tilde n}

    with half a vote added to both and one to the rest, which keeps it honest near 0.
    """
    total, z = _total(counts), quantile(confidence)
    pairs = list(combinations(range(len(counts)), 2))
    chances = [sign_test(counts[first], counts[second]) for first, second in pairs]
    found = []
    for (first, second), p, adjusted in zip(pairs, chances, holm(chances), strict=True):
        one, other = ((counts[each] + 0.5) / (total + 2) for each in (first, second))
        width = z * math.sqrt((one + other - (one - other) ** 2) / (total + 2))
        interval = Interval(max(one - other - width, -1), min(one - other + width, 1))
        lead = (counts[first] - counts[second]) / total if total else 0.0
        found.append(Difference(first, second, lead, interval, p, adjusted))
    return found


def sign_test(first: int, second: int) -> float:
    """The two-sided probability of votes as uneven as these when a fair coin decides."""
    total, fewer = first + second, min(first, second)
    if first == second:
        return 1.0
    ways = np.arange(1, fewer + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(total + 1 - ways) - np.log(ways))])
    largest = logs.max()
    tail = largest + math.log(np.exp(logs - largest).sum()) - total * math.log(2)
    return min(1.0, 2 * math.exp(tail))


def holm(chances: Sequence[float]) -> list[float]:
    """Probabilities that may be read together: the step-down correction of Holm (1979)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted, largest = [0.0] * len(chances), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[index]))
        adjusted[index] = largest
    return adjusted


def flip_test(leads: Sequence[float], *, seed: int = 0) -> float:
    """The two-sided probability of a mean lead as large as this when every voter's sign is chance.

    ``leads`` are the votes of each voter for one item minus those for another. Voters are
    independent of each other, the votes of one voter are not: this test knows it.
    """
    values = np.array([lead for lead in leads if lead], dtype=np.float64)
    if not len(values):
        return 1.0
    seen = abs(values.sum()) * (1 - 1e-12)  # sums of the same numbers in another order
    if 2 ** len(values) <= FLIPS:
        bits = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
        return float((abs((1 - 2 * bits) @ values) >= seen).mean())
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(FLIPS, len(values)))
    return float(1 + (abs(signs @ values) >= seen).sum()) / (FLIPS + 1)


def shares_by_voter(
    table: Sequence[Sequence[int]],
    *,
    shown: Sequence[Sequence[int]] | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> list[Interval]:
    """Intervals of all shares from votes (voters, items): a bootstrap of voters, not of votes."""
    votes = np.asarray(table, dtype=np.float64)
    totals = votes.sum(1, keepdims=True) if shown is None else np.asarray(shown, dtype=np.float64)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(votes), [1 / len(votes)] * len(votes), size=RESAMPLES)
    whole = drawn @ totals
    return _percentiles((drawn @ votes / np.where(whole > 0, whole, 1)).T, confidence)


def strengths(ballots: Ballots, items: int, *, confidence: float = CONFIDENCE) -> Strengths:
    r"""How much each item is liked, by the choice axiom of Luce (1959).

    .. math:: P(\text{i chosen from } S) = \lambda_i / \textstyle\sum_{j \in S} \lambda_j

    With two items at a time this is Bradley and Terry (1952). Maximum likelihood by the MM
    algorithm (Hunter 2004), intervals from the observed information. Where it does not exist, as
    some items never lose to others, half a win is added to both sides of each pair.
    """
    prior = 0.0 if _is_connected(ballots, items) else 0.5
    shown: list[tuple[tuple[int, ...], Sequence[float]]] = list(ballots.items())
    if prior:
        shown += [(pair, (prior, prior)) for pair in combinations(range(items), 2)]
    logs = _most_likely(shown, items)
    covariance = np.linalg.pinv(_information(shown, logs))
    widths = quantile(confidence) * np.sqrt(np.maximum(covariance.diagonal(), 0))
    intervals = tuple(
        Interval(float(a - b), float(a + b)) for a, b in zip(logs, widths, strict=True)
    )
    return Strengths(tuple(map(float, logs)), intervals, prior)


def agreement(
    tables: Sequence[Array], *, confidence: float = CONFIDENCE, seed: int = 0
) -> Agreement | None:
    r"""Fleiss' κ (1971) of votes (ballots, items shown), one table for each set of items shown.

    .. math:: \kappa = (\bar P - \bar P_e) / (1 - \bar P_e), \quad
        P_b = \sum_i n_{bi} (n_{bi} - 1) / n_b (n_b - 1)

    Chance is that of the table's own shares. Ballots weigh by their votes, which may differ in
    number; the interval is a bootstrap of ballots. None where no two have voted on the same.
    """
    tables = [np.asarray(table, dtype=np.float64) for table in tables]
    tables = [kept for table in tables if len(kept := table[table.sum(1) >= 2])]
    if not tables:
        return None
    ones = [np.ones((1, len(table))) for table in tables]
    kappas, observed, expected = _kappas(tables, ones)
    rng = np.random.default_rng(seed)
    sizes = [len(table) for table in tables]
    draws = rng.multinomial(sum(sizes), [1 / sum(sizes)] * sum(sizes), size=RESAMPLES)
    drawn = _kappas(tables, np.split(draws, np.cumsum(sizes)[:-1], axis=1))[0]
    interval = _percentiles(drawn[None], confidence)[0]
    return Agreement(float(kappas[0]), interval, float(observed[0]), float(expected[0]), sum(sizes))


def _kappas(tables: list[Array], times: list[Array]) -> tuple[Array, Array, Array]:
    """κ, observed and expected agreement with every ballot taken so many times (draws, ballots)."""
    observed, expected, weight = np.zeros((3, len(times[0])))
    for table, taken in zip(tables, times, strict=True):
        votes = table.sum(1)
        agreeing = (table * (table - 1)).sum(1) / (votes * (votes - 1))
        total = taken @ votes
        pooled = taken @ table / np.where(total > 0, total, 1)[:, None]
        observed += taken @ (votes * agreeing)
        expected += total * (pooled**2).sum(1)
        weight += total
    observed, expected = observed / weight, expected / weight
    certain = expected > 1 - 1e-12  # all votes for one item: agreement, and no other is possible
    kappas = np.where(certain, 1.0, (observed - expected) / np.where(certain, 1, 1 - expected))
    return kappas, observed, expected


def _most_likely(shown: Sequence[tuple[tuple[int, ...], Sequence[float]]], items: int) -> Array:
    """Log-strengths with mean 0 by the MM iteration λᵢ ← wᵢ / Σ_S n_S / Σ_{j∈S} λⱼ."""
    wins, strength = np.zeros(items), np.ones(items)
    for chosen, votes in shown:
        wins[list(chosen)] += votes
    for _ in range(ITERATIONS):
        share = np.zeros(items)
        for chosen, votes in shown:
            share[list(chosen)] += sum(votes) / strength[list(chosen)].sum()
        ahead = wins / share
        ahead /= np.exp(np.log(ahead).mean())
        if np.abs(ahead / strength - 1).max() < TOLERANCE:
            break
        strength = ahead
    return np.asarray(np.log(ahead))


def _information(shown: Sequence[tuple[tuple[int, ...], Sequence[float]]], logs: Array) -> Array:
    """The observed information about log-strengths, Σ_S n_S (diag p − p pᵀ)."""
    information = np.zeros((len(logs), len(logs)))
    for chosen, votes in shown:
        index = list(chosen)
        p = np.exp(logs[index]) / np.exp(logs[index]).sum()
        information[np.ix_(index, index)] += sum(votes) * (np.diag(p) - np.outer(p, p))
    return information


def _is_connected(ballots: Ballots, items: int) -> bool:
    """Whether each item has won against each other, if only by way of others (Ford 1957)."""
    reach = np.eye(items, dtype=bool)
    for chosen, votes in ballots.items():
        for winner, count in zip(chosen, votes, strict=True):
            if count:
                reach[winner, list(chosen)] = True
    for middle in range(items):
        reach |= np.outer(reach[:, middle], reach[middle])
    return bool(reach.all())


def _percentiles(rows: Array, confidence: float) -> list[Interval]:
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    return [Interval(*map(float, np.quantile(row, ends))) for row in rows]


def _total(counts: Sequence[int]) -> int:
    if not counts or any(votes < 0 for votes in counts):
        raise ImpastoError(f"votes are numbers from 0 on, not {list(counts)}")
    return sum(counts)


def _double(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)
