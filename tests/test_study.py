"""Studies: who sees what, what a folder of results becomes, what votes say."""

import csv
import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import alembic.autogenerate
import alembic.migration
import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

import impasto
from impasto import cli, imagefile
from impasto.samples import locate
from impasto.study import findings, grid, making, plan, report, store, tables
from impasto.study.design import Design, sequence
from impasto.types import ImpastoError
from impasto.web import serving
from tests import study as kit
from tests.test_votes import PAPER, PERCENT

PAPERS_METHODS = ("AdaIN", "Gatys", "MM", "OST", "WCT", "CMD")


@st.composite
def designs(draw: st.DrawFn) -> Design:
    pairs, methods = draw(st.integers(1, 9)), draw(st.integers(2, 6))
    shown = draw(st.sampled_from([2, methods]))
    units = pairs * len(list(itertools.combinations(range(methods), shown)))
    ballots = draw(st.integers(1, units))
    return Design(
        pairs=pairs,
        methods=methods,
        shown=shown,
        ballots=ballots,
        repeats=draw(st.integers(0, ballots // 2)),
        seed=draw(st.integers(0, 5)),
    )


# The design


@given(designs(), st.integers(1, 25))
def test_every_ballot_is_dealt_equally_often_at_any_time(design: Design, seats: int) -> None:
    dealt: Counter[Any] = Counter(
        {
            (pair, methods): 0
            for pair in range(design.pairs)
            for methods in itertools.combinations(range(design.methods), design.shown)
        }
    )
    for seat in range(seats):
        own = [ballot for ballot in sequence(design, seat) if ballot.again is None]
        keys = [(ballot.pair, tuple(sorted(ballot.methods))) for ballot in own]
        assert len(set(keys)) == len(keys) == design.ballots  # nobody gets the same twice
        dealt.update(keys)
    assert max(dealt.values()) - min(dealt.values()) <= 1


@given(designs(), st.integers(0, 25))
def test_every_method_takes_every_place_equally_often(design: Design, seat: int) -> None:
    """All at once: within one participant. Two at a time: left and right alternate (below)."""
    assume(design.shown == design.methods > 2)
    own = [ballot for ballot in sequence(design, seat) if ballot.again is None]
    taken = Counter((m, p) for ballot in own for p, m in enumerate(ballot.methods))
    every = itertools.product(range(design.methods), range(design.methods))
    counts = [taken[each] for each in every]
    assert max(counts) - min(counts) <= 1


@given(designs(), st.integers(1, 40))
def test_left_and_right_change_whenever_two_meet_again(design: Design, seats: int) -> None:
    assume(design.shown == 2)
    sides: dict[Any, list[bool]] = {}
    for seat in range(seats):
        for pair, methods, again in sequence(design, seat):
            if again is None:
                key = (pair, tuple(sorted(methods)))
                sides.setdefault(key, []).append(methods[0] < methods[1])
    for met in sides.values():
        assert all(one != other for one, other in itertools.pairwise(met))


@given(designs(), st.integers(0, 25))
def test_a_repeat_comes_later_with_every_picture_elsewhere(design: Design, seat: int) -> None:
    ballots = sequence(design, seat)
    assert len(ballots) == design.length
    repeats = [(place, ballot) for place, ballot in enumerate(ballots) if ballot.again is not None]
    assert len(repeats) == len({ballot.again for _, ballot in repeats}) == design.repeats
    for place, ballot in repeats:
        first = ballots[ballot.again]  # type: ignore[index]
        assert ballots.index(first) < place
        assert first.again is None
        assert (first.pair, set(first.methods)) == (ballot.pair, set(ballot.methods))
        assert all(one != two for one, two in zip(first.methods, ballot.methods, strict=True))


@given(designs(), st.integers(0, 25))
def test_a_sequence_follows_from_the_seed(design: Design, seat: int) -> None:
    assert sequence(design, seat) == sequence(design, seat)


def test_participants_and_seeds_differ() -> None:
    design = Design(pairs=20, methods=6, shown=6, ballots=20)
    other = Design(pairs=20, methods=6, shown=6, ballots=20, seed=1)
    found = [tuple(sequence(each, seat)) for each in (design, other) for seat in range(30)]
    assert len(set(found)) == 60


def test_the_papers_study_can_be_dealt() -> None:
    """31 × 20 pairs, six methods, 56 people with 48 or 49 votes each."""
    design = Design(pairs=620, methods=6, shown=6, ballots=48, seed=3)
    dealt = Counter(ballot.pair for seat in range(56) for ballot in sequence(design, seat))
    assert sum(dealt.values()) == 2688
    assert set(dealt.values()) == {4, 5}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"methods": 1, "shown": 1}, "two methods"),
        ({"methods": 12, "shown": 12}, "two at a time"),
        ({"ballots": 5}, "between 1 and 4"),
        ({"ballots": 0}, "between 1 and 4"),
        ({"repeats": 3}, "at most half"),
    ],
)
def test_what_cannot_be_dealt_is_refused(wrong: dict[str, int], words: str) -> None:
    with pytest.raises(ImpastoError, match=words):
        Design(**{"pairs": 4, "methods": 3, "shown": 3, "ballots": 4, **wrong})


# From a folder of results to a study


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kit.results(tmp_path_factory.mktemp("results"))


def test_a_grid_follows_from_the_records(made: Path) -> None:
    found = grid.read(made)
    assert found.methods == kit.METHODS
    assert [(cell.content.stem, cell.style.stem) for cell in found.cells] == [
        (f"photo{a}", f"painting{b}") for a in (0, 1) for b in (0, 1)
    ]
    for cell in found.cells:
        for method, file in zip(found.methods, cell.results, strict=True):
            assert imagefile.read_record(file)["recipe"]["method"] == method


def test_nothing_in_a_study_tells_the_method(made: Path, tmp_path: Path) -> None:
    kit.study(tmp_path, made)
    pictures = list((tmp_path / "pictures").iterdir())
    assert len(pictures) == 2 + 2 + 4 * 3
    for file in pictures:
        data = file.read_bytes()
        assert not any(name.encode() in data for name in (*kit.METHODS, "recipe", "photo"))
        assert not any(name in file.name for name in (*kit.METHODS, "photo", "painting"))
        with pytest.raises(ImpastoError, match="no Impasto record"):
            imagefile.read_record(file)


def test_pictures_are_shown_as_they_are(made: Path, tmp_path: Path) -> None:
    """Nearly: JPEG at quality 95 moves a pixel by a level or two of 255."""
    found = grid.read(made)
    study = kit.study(tmp_path, made)
    for cell, pair in zip(found.cells, study.pairs, strict=True):
        files = (cell.content, cell.style, *cell.results)
        names = (pair.content_picture, pair.style_picture, *pair.results)
        for file, name in zip(files, names, strict=True):
            shown = imagefile.read(tmp_path / "pictures" / name).rgb
            assert np.abs(shown - imagefile.read(file).rgb).mean() < 1.5 / 255


def test_large_pictures_are_made_smaller_and_small_ones_left(tmp_path: Path) -> None:
    made = kit.results(tmp_path / "r", pairs=(1, 1))
    study = kit.study(tmp_path / "s", made, size=32)
    with Image.open(tmp_path / "s" / "pictures" / study.pairs[0].results[0]) as image:
        assert image.size == (32, 24)


def test_settings_that_differ_make_methods_of_their_own(tmp_path: Path) -> None:
    made = kit.results(tmp_path, methods=("cmd",), pairs=(1, 1))
    content, style = tmp_path / "inputs/photo0.png", tmp_path / "inputs/painting0.png"
    for alpha in (0.1, 0.2):
        told = kit.record(content, style, "gram", alpha=alpha, device=f"cpu:{alpha}")
        kit.picture(made / f"gram{alpha}.png", 9, record=told)
    assert grid.read(made).methods == ("cmd", "gram alpha=0.1", "gram alpha=0.2")
    assert grid.read(made, methods=("gram alpha=0.2", "cmd")).methods == ("gram alpha=0.2", "cmd")
    for weights in ("oxford", "other.pth"):  # another network is another look
        told = kit.record(content, style, "mm", weights=weights)
        kit.picture(made / f"mm-{weights}.png", 9, record=told)
    assert {"mm weights=oxford", "mm weights=other.pth"} <= set(grid.read(made).methods)


def test_pairs_that_lack_a_method_are_left_out_and_told(tmp_path: Path) -> None:
    made = kit.results(tmp_path)
    (made / "photo0-painting1-mm.png").unlink()
    found = grid.read(made)
    assert len(found.cells) == 3
    assert found.incomplete == ("photo0 × painting1 has no mm",)
    assert len(grid.read(made, methods=("cmd", "gram")).cells) == 4


def test_inputs_are_found_where_they_went_by_their_hash(tmp_path: Path) -> None:
    made = kit.results(tmp_path, pairs=(1, 1))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "inputs/photo0.png").rename(tmp_path / "elsewhere/renamed.png")
    with pytest.raises(ImpastoError, match=r"photo0\.png.*--images"):
        grid.read(made)
    found = grid.read(made, images=tmp_path / "elsewhere")
    assert found.cells[0].content == tmp_path / "elsewhere/renamed.png"
    kit.picture(tmp_path / "inputs/photo0.png", 77)  # another picture under the old name
    assert grid.read(made, images=tmp_path / "elsewhere").cells == found.cells


def test_inputs_named_from_where_the_grid_was_made_are_found_from_anywhere(tmp_path: Path) -> None:
    made = kit.results(tmp_path, pairs=(1, 1))
    content, style = Path("inputs/photo0.png"), Path("inputs/painting0.png")
    for method in kit.METHODS:
        told = kit.record(tmp_path / content, tmp_path / style, method)
        told["inputs"]["content"]["path"] = str(content)
        told["inputs"]["style"]["path"] = str(style)
        kit.picture(made / f"photo0-painting0-{method}.png", 3, record=told)
    assert grid.read(made).cells[0].content == tmp_path / content


def test_names_that_are_equal_stay_apart(tmp_path: Path) -> None:
    files = [
        tmp_path / "a" / "photo.png",
        tmp_path / "b" / "photo.jpg",
        tmp_path / "a" / "photo.png",
    ]
    assert list(making.titles(files).values()) == ["photo", "photo (2)"]


def test_folders_without_results_are_refused_with_a_sentence(tmp_path: Path, made: Path) -> None:
    kit.picture(tmp_path / "plain.png", 1)
    (tmp_path / "broken.png").write_bytes(b"no picture")
    kit.picture(tmp_path / "odd.png", 1, record={"recipe": "a", "inputs": []})
    with pytest.raises(ImpastoError, match="impasto batch"):
        grid.read(tmp_path)
    with pytest.raises(ImpastoError, match="no folder"):
        grid.read(tmp_path / "nowhere")
    with pytest.raises(ImpastoError, match=r"no results of wct.*cmd, gram, mm"):
        grid.read(made, methods=("wct",))
    one = kit.results(tmp_path / "one", methods=("cmd",))
    with pytest.raises(ImpastoError, match="two methods"):
        kit.study(tmp_path / "s", one)


def test_a_study_is_written_last_and_never_over_another(made: Path, tmp_path: Path) -> None:
    making_it = making.create(tmp_path / "s", grid.read(made), making.Wish())
    next(making_it)
    with pytest.raises(ImpastoError, match="holds no study"):
        plan.load(tmp_path / "s")
    del making_it
    first = kit.study(tmp_path / "s", made, title="Ä <b>", repeats=1)
    assert plan.load(tmp_path / "s") == first
    assert plan.load(tmp_path / "s").identity == first.identity
    with pytest.raises(ImpastoError, match="holds a study already"):
        kit.study(tmp_path / "s", made)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"pairs": [{}]},
        {"surprise": 1},
        {"methods": 3},
        {"pairs": 7},
    ],
)
def test_a_damaged_plan_is_refused(made: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    kit.study(tmp_path, made)
    data = kit.read_json(tmp_path / "study.json")
    (tmp_path / "study.json").write_text(json.dumps({**data, **change}))
    with pytest.raises(ImpastoError, match="damaged"):
        plan.load(tmp_path)


def test_a_plan_cannot_point_elsewhere(made: Path, tmp_path: Path) -> None:
    kit.study(tmp_path, made)
    data = kit.read_json(tmp_path / "study.json")
    data["pairs"][0]["content_picture"] = "../study.json"
    (tmp_path / "study.json").write_text(json.dumps(data))
    with pytest.raises(ImpastoError, match="damaged"):
        plan.load(tmp_path)


# The store


@pytest.fixture
def votes(tmp_path: Path) -> Any:
    opened = store.connect(store.local(tmp_path), "a" * 32)
    yield opened
    opened.close()


def test_a_vote_counts_once_however_often_it_is_sent(votes: store.Store) -> None:
    who, key = kit.word(), kit.word()
    votes.join(who)
    for _ in range(3):
        assert votes.vote(who, key=key, position=0, method=2).done == 1
    assert [(each.position, each.method) for each in votes.choices()] == [(0, 2)]


def test_a_vote_that_was_taken_back_does_not_return(votes: store.Store) -> None:
    who, key = kit.word(), kit.word()
    votes.join(who)
    votes.vote(who, key=key, position=0, method=2)
    for _ in range(2):
        assert votes.withdraw(who, key=key) == store.Standing(0, 0, None)
    assert votes.vote(who, key=key, position=0, method=2).done == 0  # late repetition
    assert votes.vote(who, key=kit.word(), position=0, method=1).done == 1
    assert [each.method for each in votes.choices()] == [1]


def test_only_the_next_ballot_and_the_last_vote_are_open(votes: store.Store) -> None:
    who, other, keys = kit.word(), kit.word(), [kit.word() for _ in range(3)]
    votes.join(who)
    votes.join(other)
    for position in (0, 1):
        votes.vote(who, key=keys[position], position=position, method=0)
    refused = [
        lambda: votes.vote(who, key=keys[2], position=0, method=1),
        lambda: votes.vote(who, key=keys[2], position=3, method=1),
        lambda: votes.vote(who, key=keys[1], position=1, method=1),
        lambda: votes.vote(other, key=keys[1], position=1, method=0),
        lambda: votes.withdraw(who, key=keys[0]),
    ]
    for each in refused:
        with pytest.raises(store.Conflict):
            each()
    unknown = [
        lambda: votes.vote(kit.word(), key=keys[2], position=0, method=1),
        lambda: votes.withdraw(other, key=keys[1]),
        lambda: votes.withdraw(who, key=kit.word()),
        lambda: votes.standing(kit.word()),
    ]
    for each in unknown:
        with pytest.raises(store.Unknown):
            each()
    assert votes.standing(who) == store.Standing(0, 2, keys[1])


def test_the_database_itself_refuses_a_second_standing_vote(votes: store.Store) -> None:
    who = kit.word()
    votes.join(who)
    votes.vote(who, key=kit.word(), position=0, method=0)
    row = {
        "study": votes.study,
        "key": kit.word(),
        "participant": who,
        "position": 0,
        "method": 1,
        "milliseconds": 0,
        "standing": True,
    }
    with votes.engine.connect() as connection, pytest.raises(sa.exc.IntegrityError):
        connection.execute(tables.votes.insert().values(row))


def test_a_study_takes_only_so_many(votes: store.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_PARTICIPANTS", 2)
    known = [kit.word(), kit.word()]
    assert [votes.join(who).seat for who in (*known, *known)] == [0, 1, 0, 1]
    with pytest.raises(store.Conflict, match="all the participants"):
        votes.join(kit.word())


def test_studies_in_one_database_do_not_meet(tmp_path: Path) -> None:
    who, key = kit.word(), kit.word()
    for study in ("a" * 32, "b" * 32):
        opened = store.connect(store.local(tmp_path), study)
        assert opened.join(who).seat == 0
        opened.vote(who, key=key, position=0, method=0)
        assert len(opened.choices()) == 1
        opened.close()


def test_every_commit_of_sqlite_reaches_the_disk(votes: store.Store) -> None:
    with votes.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_migrations_lead_to_the_tables(votes: store.Store) -> None:
    with votes.engine.connect() as connection:
        context = alembic.migration.MigrationContext.configure(connection)
        assert alembic.autogenerate.compare_metadata(context, tables.METADATA) == []
        assert context.get_current_revision() == "0001"


@pytest.mark.parametrize(
    "url", ["mysql://host/x", "no url", "postgresql://a:secret@127.0.0.1:1/x", "sqlite:////no/x/y"]
)
def test_a_database_that_cannot_be_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ImpastoError, match="database") as caught:
        store.connect(url, "a" * 32)
    assert "secret" not in str(caught.value)


# What the votes say


def test_the_papers_totals_give_the_papers_table(tmp_path: Path, capsys: Any) -> None:
    totals = tmp_path / "paper.csv"
    rows = [f"{name},{count}" for name, count in zip(PAPERS_METHODS, PAPER, strict=True)]
    totals.write_text("\n".join(["method,votes", *rows]))
    assert cli.main(["study", "report", str(totals), "-o", str(tmp_path / "r")]) == 0
    with (tmp_path / "r/table.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(row["method"], int(row["votes"])) for row in table] == list(
        zip(PAPERS_METHODS, PAPER, strict=True)
    )
    printed = dict(zip(PAPERS_METHODS, PERCENT, strict=True))
    # The paper cuts 16.383 to 16.3 where the others are rounded.
    differing = {
        row["method"]: row["percent"]
        for row in table
        if float(row["percent"]) != printed[row["method"]]
    }
    assert differing == {"MM": "16.4"}
    out = capsys.readouterr().out
    assert "CMD leads; its lead over Gatys, 2.0 points (−0.4 to 4.4), may be chance" in out
    assert {file.name for file in (tmp_path / "r").iterdir()} >= {
        "report.html",
        "differences.csv",
        "ranking.csv",
        "shares.png",
        "shares.svg",
        "strengths.png",
    }
    page = (tmp_path / "r/report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing from elsewhere
    with (tmp_path / "r/ranking.csv").open() as file:
        ranking = [row["method"] for row in csv.DictReader(file)]
    assert ranking == ["CMD", "Gatys", "OST", "WCT", "MM", "AdaIN"]


def test_the_documentation_shows_what_the_command_prints() -> None:
    totals = dict(zip(PAPERS_METHODS, PAPER, strict=True))
    document = Path(__file__).parents[1] / "docs" / "study.md"
    assert report.text(findings.of_totals(totals)) in document.read_text()


@pytest.mark.parametrize(
    "text", ["", "method,votes\ncmd,3\n", "a,b\n1,2\n", "method,votes\ncmd,x\ngram,1\n", "\0"]
)
def test_totals_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ImpastoError, match=r"t\.csv"):
        findings.read_totals(tmp_path / "t.csv")


def voted(study: plan.Plan, people: int, choose: Any) -> list[store.Choice]:
    """All ballots of some participants, chosen by a rule."""
    return [
        store.Choice(f"{seat}", seat, position, choose(ballot, seat), 1000 * position)
        for seat in range(people)
        for position, ballot in enumerate(sequence(study.design, seat))
    ]


@pytest.mark.parametrize("protocol", ["all", "two"])
def test_a_method_that_everybody_prefers_wins_all(
    made: Path, tmp_path: Path, protocol: str
) -> None:
    study = kit.study(tmp_path, made, protocol=protocol, repeats=1, ballots=4)
    found = findings.of_study(study, voted(study, 9, lambda ballot, _: min(ballot.methods)))
    assert found.order[0] == 0
    assert found.total == 9 * 4
    assert found.shares[0].share == 1  # of the ballots on which it was shown
    assert found.strengths.prior > 0  # who never loses has no finite strength
    assert found.agreement is not None
    assert found.agreement.kappa == 1
    assert found.consistency == findings.Consistency(9, 9, found.consistency.interval)  # type: ignore[union-attr]
    first = found.comparisons[0]
    assert first.difference.adjusted < 0.05
    assert first.by_voter is not None
    assert first.by_voter < 0.01
    assert sum(sum(group.counts) for group in found.styles) == found.total
    assert sum(sum(group.counts) for group in found.pairs) == found.total
    assert "leads" in report.text(found)


@pytest.mark.parametrize("protocol", ["all", "two"])
def test_where_a_coin_decides_nothing_is_found(made: Path, tmp_path: Path, protocol: str) -> None:
    study = kit.study(tmp_path, made, protocol=protocol)
    rng = np.random.default_rng(7)
    found = findings.of_study(
        study, voted(study, 60, lambda ballot, _: int(rng.choice(ballot.methods)))
    )
    assert found.equal > 0.01
    assert all(each.difference.adjusted > 0.05 for each in found.comparisons)
    assert found.agreement is not None
    assert abs(found.agreement.kappa) < 0.08
    for share in found.shares:
        assert share.together.low < 1 / study.design.shown < share.together.high


def test_one_eager_voter_is_no_evidence(tmp_path: Path) -> None:
    """Many votes of one person for a method, the others divided: chance, though votes say not."""
    made = kit.results(tmp_path / "r", pairs=(6, 6))
    study = kit.study(tmp_path / "s", made)
    choices = voted(study, 6, lambda ballot, seat: (ballot.pair + seat) % 3 if seat else 0)
    found = findings.of_study(study, choices)
    best = report._between(found, *found.order[:2])
    assert best.by_voter_adjusted is not None
    assert best.difference.adjusted < report.SIGNIFICANT < best.by_voter_adjusted
    assert "may be chance" in report.text(found)
    assert "with participants as the unit" in report.text(found)


def test_a_lead_by_share_may_be_none_where_two_met(made: Path, tmp_path: Path) -> None:
    study = kit.study(tmp_path, made, protocol="two")

    def choose(ballot: Any, seat: int) -> int:
        """0 always beats 2, and so has the largest share; where it meets 1 it mostly loses."""
        few = seat % 5 < 2
        if set(ballot.methods) == {0, 1}:
            return 0 if few else 1
        return 0 if 0 in ballot.methods else (1 if few else 2)

    found = findings.of_study(study, voted(study, 10, choose))
    assert list(found.order) == [0, 1, 2]
    lead = f"lead over {found.methods[1]} where the two met, −"
    assert lead in report.text(found)


def test_counts_are_those_of_a_plain_loop(made: Path, tmp_path: Path) -> None:
    study = kit.study(tmp_path, made, repeats=2)
    rng = np.random.default_rng(8)
    choices = voted(study, 7, lambda ballot, _: int(rng.choice(ballot.methods)))
    found = findings.of_study(study, choices)
    style: Counter[Any] = Counter()
    for choice in choices:
        ballot = sequence(study.design, choice.seat)[choice.position]
        if ballot.again is None:
            style[study.pairs[ballot.pair].style, choice.method] += 1
    for group in found.styles:
        assert group.counts == tuple(style[group.name, method] for method in range(3))
    assert len(found.rows) == 7 * 6
    assert sum(row["repeat"] == 0 for row in found.rows) == found.total


def test_the_report_of_a_study_without_votes_says_so(made: Path, tmp_path: Path) -> None:
    study = kit.study(tmp_path, made)
    found = findings.of_study(study, [])
    report.write(found, tmp_path / "r")
    assert "Nobody has voted yet" in (tmp_path / "r/report.html").read_text()


def test_equal_votes_give_equal_bytes_and_words_are_escaped(made: Path, tmp_path: Path) -> None:
    study = kit.study(tmp_path / "s", made, title="<script>alert(1)</script>")
    found = findings.of_study(study, voted(study, 6, lambda ballot, _: ballot.methods[0]))
    for name in ("a", "b"):
        report.write(found, tmp_path / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name
    assert "<script" not in (tmp_path / "a/report.html").read_text()


# The command


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "impasto", *words],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def test_from_real_results_to_a_report_by_the_command(tmp_path: Path) -> None:
    """The real network paints the grid; two participants vote; the report counts them."""
    (tmp_path / "grid").mkdir()
    for method in ("cmd", "gram"):
        result = impasto.stylize(
            locate("coffee"), locate("cypresses"), method=method, size=48, steps=2
        )
        result.save(tmp_path / f"grid/coffee-{method}.png")
    made = run("study", "create", "--grid", "grid", "-o", "study", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "1 pair, 2 methods (cmd, gram)" in made.stdout
    study = plan.load(tmp_path / "study")
    votes = store.connect(store.local(tmp_path / "study"), study.identity)
    for _ in range(2):
        who = kit.word()
        votes.join(who)
        votes.vote(who, key=kit.word(), position=0, method=0)
    votes.close()
    told = run("study", "report", "study", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "2 votes by 2 participants" in told.stdout
    assert (tmp_path / "study/report/report.html").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["create", "--grid", "nowhere", "-o", "s"], "there is no folder nowhere"),
        (["serve", "nowhere"], "holds no study"),
        (["report", "nowhere"], "holds no study"),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    tmp_path: Path, monkeypatch: Any, capsys: Any, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["study", *words]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_a_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    first = serving.token_of(tmp_path)
    assert serving.token_of(tmp_path) == first
    assert len(first) >= 20
    assert (tmp_path / "token").stat().st_mode & 0o77 == 0
    (tmp_path / "token").write_text("short")
    with pytest.raises(ImpastoError, match="not a token"):
        serving.token_of(tmp_path)


def test_help_needs_no_torch() -> None:
    code = "import sys\nfrom impasto.cli import main\ntry: main(['study', 'serve', '--help'])\n"
    code += "except SystemExit: pass\nsys.exit('torch' in sys.modules or 'fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
