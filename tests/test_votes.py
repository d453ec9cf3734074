"""Statistics of votes against SciPy, published tables and closed forms."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from impasto.maths import votes
from impasto.types import ImpastoError

METHODS = ("adain", "gatys", "mm", "ost", "wct", "cmd")
PAPER = (155, 533, 443, 523, 463, 587)  # table 1 of Kalischek et al. 2021
PERCENT = (5.7, 19.7, 16.3, 19.3, 17.1, 21.7)  # as printed there

counts = st.lists(st.integers(0, 400), min_size=2, max_size=7)


def test_the_shares_of_the_paper_but_for_one_digit() -> None:
    """443 of 2,704 votes are 16.38 %, which the paper prints as 16.3."""
    ours = [round(100 * share.share, 1) for share in votes.shares(PAPER)]
    assert [
        (name, mine, theirs)
        for name, mine, theirs in zip(METHODS, ours, PERCENT, strict=True)
        if mine != theirs
    ] == [("mm", 16.4, 16.3)]


def test_the_lead_of_cmd_over_gatys_may_be_chance() -> None:
    found = {(each.first, each.second): each for each in votes.differences(PAPER)}
    ours = found[METHODS.index("gatys"), METHODS.index("cmd")]
    assert ours.lead == pytest.approx(-54 / 2704)
    assert ours.p == pytest.approx(scipy.stats.binomtest(533, 1120).pvalue, rel=1e-9)
    assert ours.p > 0.05
    assert ours.interval.low < 0 < ours.interval.high
    against_adain = [each for pair, each in found.items() if 0 in pair]
    assert all(each.adjusted < 1e-9 for each in against_adain)


@given(st.integers(0, 500), st.integers(1, 500), st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_of_a_share_are_wilsons(won: int, lost: int, confidence: float) -> None:
    theirs = scipy.stats.binomtest(won, won + lost).proportion_ci(confidence, method="wilson")
    ours = votes.wilson(won, won + lost, confidence=confidence)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(counts)
def test_shares_lie_in_their_intervals_and_the_joint_ones_are_wider(
    given_counts: list[int],
) -> None:
    for share in votes.shares(given_counts):
        if not sum(given_counts):
            assert share.alone == (0, 1)
            continue
        assert share.together.low <= share.alone.low <= share.share + 1e-12
        assert share.share - 1e-12 <= share.alone.high <= share.together.high


def test_joint_intervals_hold_as_often_as_promised() -> None:
    rng, truth = np.random.default_rng(1), np.array(PAPER) / sum(PAPER)
    draws = rng.multinomial(400, truth, size=400)
    held = [
        all(
            s.together.low <= p <= s.together.high
            for s, p in zip(votes.shares(row), truth, strict=True)
        )
        for row in draws.tolist()
    ]
    assert np.mean(held) > 0.93  # 0.95 less two deviations of such a mean


def test_intervals_of_a_difference_hold_as_often_as_promised() -> None:
    rng, truth = np.random.default_rng(2), np.array([0.5, 0.3, 0.2])
    held = []
    for row in rng.multinomial(60, truth, size=1000).tolist():
        for each in votes.differences(row):
            lead = truth[each.first] - truth[each.second]
            held.append(each.interval.low <= lead <= each.interval.high)
    assert 0.93 < np.mean(held) < 0.98


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_the_sign_test_is_the_binomial_test(first: int, second: int) -> None:
    theirs = scipy.stats.binomtest(first, first + second).pvalue if first + second else 1
    assert votes.sign_test(first, second) == pytest.approx(theirs, rel=1e-8, abs=1e-300)


@given(counts)
def test_equality_is_tested_by_chi_squared(given_counts: list[int]) -> None:
    theirs = scipy.stats.chisquare(given_counts).pvalue if sum(given_counts) else 1
    assert votes.equal_shares(given_counts) == pytest.approx(theirs, rel=1e-6, abs=1e-12)


def test_holm_on_an_example_by_hand() -> None:
    # 4 · 0.005, 3 · 0.01, 2 · 0.03, and the last no smaller than the one before.
    assert votes.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lies_between_the_plain_and_bonferroni(
    chances: list[float],
) -> None:
    adjusted = votes.holm(chances)
    for p, q in zip(chances, adjusted, strict=True):
        assert p <= q <= min(1, len(chances) * p) + 1e-15
    ranked = [q for _, q in sorted(zip(chances, adjusted, strict=True))]
    assert all(a <= b for a, b in pairwise(ranked))


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=9))
def test_the_flip_test_is_the_permutation_test_of_scipy(leads: list[int]) -> None:
    theirs = scipy.stats.permutation_test(
        (np.array(leads, dtype=float),),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    ).pvalue
    assert votes.flip_test(leads) == pytest.approx(theirs)


def test_the_flip_test_by_lot_is_near_the_one_by_counting() -> None:
    # 40 voters lead by one each way: the sum of signs is binomial, hence known.
    leads = [1.0] * 26 + [-1.0] * 14
    assert votes.flip_test(leads) == pytest.approx(scipy.stats.binomtest(14, 40).pvalue, abs=0.01)
    assert votes.flip_test(leads) == votes.flip_test(leads)
    assert votes.flip_test([0.0, 0.0]) == 1


def test_voters_who_never_change_their_mind_count_once() -> None:
    """Thirty voters with a hundred equal votes each know as much as thirty votes."""
    table = [[100, 0]] * 18 + [[0, 100]] * 12
    (low, high), _ = votes.shares_by_voter(table)
    alone = votes.wilson(18, 30)
    assert (low, high) == pytest.approx(alone, abs=0.04)
    assert high - low > 5 * (lambda i: i.high - i.low)(votes.wilson(1800, 3000))


def test_strengths_of_one_set_are_the_shares() -> None:
    found = votes.strengths({tuple(range(6)): PAPER}, 6)
    shares = np.exp(found.logs) / np.exp(found.logs).sum()
    assert shares == pytest.approx(np.array(PAPER) / 2704, rel=1e-8)
    assert found.prior == 0
    assert found.beats(5, 1) == pytest.approx(587 / 1120, rel=1e-8)


def test_strengths_of_two_items_are_the_logit() -> None:
    found = votes.strengths({(0, 1): (30, 10)}, 2)
    logit, deviation = math.log(3), math.sqrt(1 / 30 + 1 / 10)
    z = scipy.stats.norm.ppf(0.975)
    assert found.logs[0] - found.logs[1] == pytest.approx(logit)
    # The mean of the logs is 0, so each of the two carries half of the difference.
    width = found.intervals[0].high - found.intervals[0].low
    assert width == pytest.approx(z * deviation)


@given(st.lists(st.integers(1, 40), min_size=20, max_size=20), st.integers(3, 5))
def test_strengths_maximize_the_likelihood(wins: list[int], items: int) -> None:
    """Bradley–Terry against a general optimizer that knows nothing of MM."""
    pairs = list(combinations(range(items), 2))
    ballots = {pair: (wins[2 * n], wins[2 * n + 1]) for n, pair in enumerate(pairs)}

    def loss(logs: np.ndarray) -> float:
        return sum(
            won * np.logaddexp(0, logs[loser] - logs[winner])
            for (a, b), (x, y) in ballots.items()
            for winner, loser, won in ((a, b, x), (b, a, y))
        )

    found = votes.strengths(ballots, items)
    best = scipy.optimize.minimize(loss, np.zeros(items), method="BFGS", options={"gtol": 1e-7})
    assert loss(np.array(found.logs)) <= best.fun + 1e-7
    assert found.logs == pytest.approx(best.x - best.x.mean(), abs=1e-4)
    assert sum(found.logs) == pytest.approx(0, abs=1e-9)


def test_intervals_of_strengths_hold_as_often_as_promised() -> None:
    rng, truth = np.random.default_rng(3), np.array([0.6, 0.1, -0.2, -0.5])
    held = []
    for _ in range(150):
        ballots = {}
        for a, b in combinations(range(4), 2):
            won = int(rng.binomial(40, 1 / (1 + np.exp(truth[b] - truth[a]))))
            ballots[a, b] = (won, 40 - won)
        found = votes.strengths(ballots, 4)
        held += [i.low <= t <= i.high for i, t in zip(found.intervals, truth, strict=True)]
    assert 0.92 < np.mean(held) < 0.98


@pytest.mark.parametrize(
    "ballots", [{(0, 1): (5, 0), (1, 2): (3, 2)}, {(0, 1, 2): (4, 4, 0)}, {(0, 1): (1, 1)}, {}]
)
def test_where_votes_do_not_decide_half_a_win_does_and_is_told(ballots: votes.Ballots) -> None:
    found = votes.strengths(ballots, 3)
    assert found.prior == 0.5
    assert all(map(math.isfinite, (*found.logs, *(end for i in found.intervals for end in i))))


FLEISS = [  # ten subjects, fourteen raters, five categories: the common textbook example
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def test_kappa_of_the_textbook() -> None:
    found = votes.agreement([np.array(FLEISS)])
    assert found is not None
    assert found.kappa == pytest.approx(0.210, abs=5e-4)
    assert (found.observed, found.expected) == pytest.approx((0.378, 0.213), abs=5e-4)
    assert found.interval.low < found.kappa < found.interval.high


def test_agreement_is_one_for_one_mind_and_none_for_coins() -> None:
    certain = votes.agreement([np.array([[9, 0], [0, 9], [9, 0]])])
    assert certain is not None
    assert certain.kappa == 1
    unanimous = votes.agreement([np.array([[9, 0], [9, 0]])])
    assert unanimous is not None
    assert unanimous.kappa == 1
    coins = np.random.default_rng(4).multinomial(10, [0.2, 0.3, 0.5], size=400)
    chance = votes.agreement([coins])
    assert chance is not None
    assert chance.kappa == pytest.approx(0, abs=0.02)
    assert chance.interval.low < 0 < chance.interval.high
    assert votes.agreement([np.array([[1, 0], [0, 1]])]) is None
    assert votes.agreement([]) is None


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=6))
def test_observed_agreement_is_that_of_pairs_of_voters(table: list[list[int]]) -> None:
    """By counting all pairs of voters of a ballot one by one."""
    found = votes.agreement([np.array(table)])
    agreeing, weight = 0.0, 0
    for row in table:
        choices = [item for item, count in enumerate(row) for _ in range(count)]
        pairs = list(combinations(choices, 2))
        if pairs:
            agreeing += len(choices) * np.mean([a == b for a, b in pairs])
            weight += len(choices)
    if not weight:
        assert found is None
    else:
        assert found is not None
        assert found.observed == pytest.approx(agreeing / weight)


def test_chance_is_that_of_the_items_that_were_shown() -> None:
    """Two sets of which each is always decided the same way: agreement, though not on one item."""
    tables = [np.array([[8, 0], [8, 0]]), np.array([[0, 8], [0, 8]])]
    found = votes.agreement(tables)
    assert found is not None
    assert found.expected == 1


def test_no_votes_are_no_reason_to_fail() -> None:
    assert [share.share for share in votes.shares([0, 0])] == [0, 0]
    assert [each.p for each in votes.differences([0, 0, 0])] == [1, 1, 1]
    assert votes.equal_shares([0, 0]) == votes.equal_shares([7]) == 1


@pytest.mark.parametrize("wrong", [[], [3, -1]])
def test_what_is_no_count_is_refused(wrong: list[int]) -> None:
    with pytest.raises(ImpastoError, match="votes are numbers"):
        votes.shares(wrong)
    with pytest.raises(ImpastoError, match="confidence"):
        votes.wilson(1, 2, confidence=1.5)
