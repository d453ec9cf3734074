"""What the votes say: counts, and the statistics of them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from impasto.maths import votes as statistics
from impasto.maths.votes import Agreement, Difference, Interval, Share, Strengths
from impasto.study.design import Ballot, sequence
from impasto.study.plan import Plan
from impasto.study.store import Choice
from impasto.types import ImpastoError

FEWEST_VOTERS = 5  # of which a bootstrap can tell anything


class Vote(NamedTuple):
    """A choice with what there was to choose from."""

    seat: int
    ballot: Ballot
    method: int
    seconds: float | None  # since the vote before


class Comparison(NamedTuple):
    """A difference between two methods, also with the voter as the unit."""

    difference: Difference
    votes: tuple[int, int]  # of both; with two at a time where they met
    by_voter: float | None  # probability of such a lead by chance, sign of each voter flipped
    by_voter_adjusted: float | None


class Group(NamedTuple):
    """Votes on some pairs."""

    name: str
    counts: tuple[int, ...]
    shown: tuple[int, ...]  # how often each method was to be chosen
    p: float  # of votes as uneven by chance
    adjusted: float  # the same for all groups at once


class Consistency(NamedTuple):
    """How often the same ballot got the same answer from the same participant."""

    same: int
    repeats: int
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that a report tells."""

    title: str
    methods: tuple[str, ...]
    two: bool  # at a time
    confidence: float
    shares: tuple[Share, ...]
    shown: tuple[int, ...]
    equal: float  # probability of votes as uneven if all methods were equally liked
    comparisons: tuple[Comparison, ...]
    strengths: Strengths
    participants: int = 0  # 0 where only totals are known
    by_voter: tuple[Interval, ...] = ()
    agreement: Agreement | None = None
    consistency: Consistency | None = None
    styles: tuple[Group, ...] = ()
    contents: tuple[Group, ...] = ()
    pairs: tuple[Group, ...] = ()
    rows: tuple[dict[str, str | int | float], ...] = ()  # one of each vote

    @property
    def total(self) -> int:
        """All votes, repeats not counted."""
        return sum(share.votes for share in self.shares)

    @property
    def order(self) -> list[int]:
        """The methods, the most liked first."""
        return sorted(range(len(self.methods)), key=lambda each: -self.shares[each].share)


def read_totals(path: Path) -> dict[str, int]:
    """Votes per method from a CSV file with the columns method and votes."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            totals = {row["method"].strip(): int(row["votes"]) for row in csv.DictReader(file)}
    except (OSError, KeyError, ValueError, AttributeError, TypeError, csv.Error):
        raise ImpastoError(f"{path} is not a table with the columns method and votes") from None
    if len(totals) < 2 or min(totals.values()) < 0:
        raise ImpastoError(f"{path} needs at least two methods with votes from 0 on")
    return totals


def of_totals(totals: dict[str, int], *, confidence: float = 0.95) -> Findings:
    """What totals alone tell, all methods having been on every ballot."""
    counts, everything = list(totals.values()), tuple(range(len(totals)))
    differences = statistics.differences(counts, confidence=confidence)
    return Findings(
        title="Totals",
        methods=tuple(totals),
        two=False,
        confidence=confidence,
        shares=tuple(statistics.shares(counts, confidence=confidence)),
        shown=(sum(counts),) * len(counts),
        equal=statistics.equal_shares(counts),
        comparisons=tuple(
            Comparison(each, (counts[each.first], counts[each.second]), None, None)
            for each in differences
        ),
        strengths=statistics.strengths({everything: counts}, len(counts), confidence=confidence),
    )


def of_study(plan: Plan, choices: Sequence[Choice], *, confidence: float = 0.95) -> Findings:
    """What the votes of a study tell; repeated ballots count for consistency only."""
    everything = _votes(plan, choices)
    votes = [vote for vote in everything if vote.ballot.again is None]
    methods = len(plan.methods)
    counts, shown = _counts(votes, methods)
    ballots = _ballots(votes, methods)
    return Findings(
        title=plan.title,
        methods=plan.methods,
        two=plan.protocol == "two",
        confidence=confidence,
        shares=tuple(statistics.shares(counts, shown=shown, confidence=confidence)),
        shown=shown,
        equal=statistics.equal_strengths(ballots, methods),
        comparisons=_comparisons(votes, methods, confidence),
        strengths=statistics.strengths(ballots, methods, confidence=confidence),
        participants=len({vote.seat for vote in votes}),
        by_voter=_by_voter(votes, methods, confidence),
        agreement=_agreement(votes, confidence),
        consistency=_consistency(everything, confidence),
        **_groups(plan, votes),
        rows=tuple(_row(plan, vote) for vote in everything),
    )


def _votes(plan: Plan, choices: Sequence[Choice]) -> list[Vote]:
    """Choices with their ballots, which follow from the plan."""
    dealt: dict[int, list[Ballot]] = {}
    before: dict[int, int] = {}
    votes = []
    for choice in choices:
        if choice.seat not in dealt:
            dealt[choice.seat] = sequence(plan.design, choice.seat)
        since = choice.milliseconds - before.get(choice.seat, choice.milliseconds)
        seconds = since / 1000 if choice.seat in before else None
        before[choice.seat] = choice.milliseconds
        ballot = dealt[choice.seat][choice.position]
        votes.append(Vote(choice.seat, ballot, choice.method, seconds))
    return votes


def _counts(votes: Sequence[Vote], methods: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Votes for each method, and ballots that it was on."""
    won = Counter(vote.method for vote in votes)
    shown = Counter(method for vote in votes for method in vote.ballot.methods)
    return tuple(won[each] for each in range(methods)), tuple(
        shown[each] for each in range(methods)
    )


def _ballots(votes: Sequence[Vote], methods: int) -> dict[tuple[int, ...], list[int]]:
    """Votes by the set of methods to choose from."""
    found: dict[tuple[int, ...], list[int]] = {}
    for vote in votes:
        together = tuple(sorted(vote.ballot.methods))
        found.setdefault(together, [0] * len(together))[together.index(vote.method)] += 1
    return found


def _comparisons(votes: Sequence[Vote], methods: int, confidence: float) -> tuple[Comparison, ...]:
    """Every two methods, on the ballots that had both."""
    voters = sorted({vote.seat for vote in votes})
    found, chances = [], []
    for first, second in combinations(range(methods), 2):
        met = [vote for vote in votes if {first, second} <= set(vote.ballot.methods)]
        both = [sum(vote.method == each for vote in met) for each in (first, second)]
        counts = [*both, len(met) - sum(both)]
        difference = statistics.differences(counts, confidence=confidence)[0]
        found.append((difference._replace(first=first, second=second), (both[0], both[1])))
        leads = Counter(dict.fromkeys(voters, 0))
        for vote in met:
            leads[vote.seat] += (vote.method == first) - (vote.method == second)
        chances.append(statistics.flip_test([leads[voter] for voter in voters]))
    adjusted = statistics.holm([difference.p for difference, _ in found])
    by_voter = list(zip(chances, statistics.holm(chances), strict=True))
    known = len(voters) >= FEWEST_VOTERS
    return tuple(
        Comparison(difference._replace(adjusted=p), both, *(pair if known else (None, None)))
        for (difference, both), p, pair in zip(found, adjusted, by_voter, strict=True)
    )


def _by_voter(votes: Sequence[Vote], methods: int, confidence: float) -> tuple[Interval, ...]:
    voters = sorted({vote.seat for vote in votes})
    if len(voters) < FEWEST_VOTERS:
        return ()
    tables = [_counts([vote for vote in votes if vote.seat == each], methods) for each in voters]
    won, shown = ([table[index] for table in tables] for index in (0, 1))
    return tuple(statistics.shares_by_voter(won, shown=shown, confidence=confidence))


def _agreement(votes: Sequence[Vote], confidence: float) -> Agreement | None:
    """Agreement on the same ballot, the order of its pictures aside."""
    rows: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for vote in votes:
        together = tuple(sorted(vote.ballot.methods))
        row = rows.setdefault(together, {}).setdefault(vote.ballot.pair, [0] * len(together))
        row[together.index(vote.method)] += 1
    tables = [np.array(list(table.values())) for table in rows.values()]
    return statistics.agreement(tables, confidence=confidence)


def _consistency(votes: Sequence[Vote], confidence: float) -> Consistency | None:
    """The repeats against the ballots they repeat, which come before them."""
    said: dict[int, list[int]] = {}
    same = repeats = 0
    for vote in votes:  # of each participant in order, none left out
        before = said.setdefault(vote.seat, [])
        if vote.ballot.again is not None:
            repeats += 1
            same += before[vote.ballot.again] == vote.method
        before.append(vote.method)
    if not repeats:
        return None
    return Consistency(same, repeats, statistics.wilson(same, repeats, confidence=confidence))


def _groups(plan: Plan, votes: Sequence[Vote]) -> dict[str, tuple[Group, ...]]:
    """Results per style, per content and per pair."""
    names = {
        "styles": [pair.style for pair in plan.pairs],
        "contents": [pair.content for pair in plan.pairs],
        "pairs": [f"{pair.content} × {pair.style}" for pair in plan.pairs],
    }
    return {kind: _grouped(of_pair, votes, len(plan.methods)) for kind, of_pair in names.items()}


def _grouped(of_pair: list[str], votes: Sequence[Vote], methods: int) -> tuple[Group, ...]:
    parts: dict[str, list[Vote]] = {name: [] for name in sorted(set(of_pair))}
    for vote in votes:
        parts[of_pair[vote.ballot.pair]].append(vote)
    chances = [
        statistics.equal_strengths(_ballots(part, methods), methods) for part in parts.values()
    ]
    return tuple(
        Group(name, *_counts(part, methods), p, adjusted)
        for (name, part), p, adjusted in zip(
            parts.items(), chances, statistics.holm(chances), strict=True
        )
    )


def _row(plan: Plan, vote: Vote) -> dict[str, str | int | float]:
    """A vote for others to compute with; the number of a participant says nothing of them."""
    pair = plan.pairs[vote.ballot.pair]
    return {
        "participant": vote.seat + 1,
        "content": pair.content,
        "style": pair.style,
        "chosen": plan.methods[vote.method],
        "shown": "|".join(plan.methods[each] for each in vote.ballot.methods),
        "repeat": int(vote.ballot.again is not None),
        "seconds": "" if vote.seconds is None else round(vote.seconds, 1),
    }
