"""The API of the voting page, also under load and when the server is killed."""

import asyncio
import json
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from impasto.study import store
from impasto.study.design import sequence
from impasto.study.plan import Plan
from impasto.types import ImpastoError
from impasto.web.ballot import app
from tests import study as kit

VOTERS = 50


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kit.results(tmp_path_factory.mktemp("results"), pairs=(2, 3))


@pytest.fixture
def study(tmp_path: Path, made: Path) -> Plan:
    return kit.study(tmp_path, made)


@pytest.fixture
def client(tmp_path: Path, study: Plan) -> Iterator[kit.Client]:
    votes = store.connect(store.local(tmp_path), study.identity)
    yield kit.Client(app.create(study, tmp_path, votes))
    votes.close()


def test_no_answer_tells_which_method_made_a_picture(client: kit.Client) -> None:
    who = f"/api/participants/{kit.word()}"
    answers = [
        client.request("GET", "/api/study"),
        client.request("PUT", who),
        client.request("GET", who),
        client.request("GET", "/openapi.json"),
    ]
    answers += [client.request("GET", each) for each in ("/", "/static/main.js")]
    for answer in answers:
        assert answer.status_code == 200
        assert not any(f'"{name}"' in answer.text for name in (*kit.METHODS, "method"))
        assert "photo0" not in answer.text


def test_votes_lead_from_ballot_to_ballot(client: kit.Client, study: Plan) -> None:
    who = f"/api/participants/{kit.word()}"
    assert client.request("GET", who).status_code == 404
    state = client.request("PUT", who).json()
    for position in range(study.design.length):
        assert state["done"] == state["ballot"]["position"] == position
        for name in (state["ballot"]["content"], *state["ballot"]["pictures"]):
            answer = client.request("GET", name)
            assert answer.headers["content-type"] == "image/jpeg"
            assert "immutable" in answer.headers["cache-control"]
        choice = {"position": position, "place": position % 3}
        state = client.request("PUT", f"{who}/votes/{kit.word()}", json=choice).json()
    assert state["ballot"] is None
    last = client.request("PUT", f"{who}/votes/{kit.word()}", json={"position": 6, "place": 0})
    assert last.status_code == 409
    assert (
        client.request("DELETE", f"{who}/votes/{state['last']}").json()["done"]
        == study.design.length - 1
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/api/participants/short", None, 422),
        ("PUT", "/api/participants/" + "A" * 32, None, 422),
        ("PUT", "/api/participants/{who}/votes/{key}", {"position": 0, "place": 3}, 422),
        ("PUT", "/api/participants/{who}/votes/{key}", {"position": 0, "place": -1}, 422),
        ("PUT", "/api/participants/{who}/votes/{key}", {"position": 1, "place": 0}, 409),
        ("PUT", "/api/participants/{who}/votes/{key}", {"position": 10**6, "place": 0}, 409),
        ("PUT", "/api/participants/{who}/votes/{key}", {"position": 0, "place": 0, "x": 1}, 422),
        ("PUT", "/api/participants/{key}/votes/{key}", {"position": 0, "place": 0}, 404),
        ("DELETE", "/api/participants/{who}/votes/{key}", None, 404),
        ("GET", "/pictures/..%2Fstudy.json", None, 404),
        ("GET", "/pictures/study.json", None, 404),
        ("GET", "/static/..%2Fapp.py", None, 404),
        ("GET", "/static/app.py", None, 404),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(
    client: kit.Client, method: str, path: str, body: Any, status: int
) -> None:
    who, key = kit.word(), kit.word()
    client.request("PUT", f"/api/participants/{who}")
    answer = client.request(method, path.format(who=who, key=key), json=body)
    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)


def test_a_database_that_is_away_is_told_and_the_vote_can_be_sent_again(
    tmp_path: Path, study: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.1)
    votes = store.connect(store.local(tmp_path), study.identity)
    client = kit.Client(app.create(study, tmp_path, votes))
    who, key = f"/api/participants/{kit.word()}", kit.word()
    client.request("PUT", who)
    other = sqlite3.connect(tmp_path / store.FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # another program holds it
    choice = {"position": 0, "place": 0}
    answer = client.request("PUT", f"{who}/votes/{key}", json=choice)
    assert answer.status_code == 503
    assert "does not answer" in answer.json()["detail"]
    other.execute("ROLLBACK")
    other.close()
    assert client.request("PUT", f"{who}/votes/{key}", json=choice).json()["done"] == 1
    votes.close()


def test_ctrl_c_ends_the_server_quietly(tmp_path: Path, study: Plan) -> None:
    with kit.serving(tmp_path) as server:
        assert httpx.get(f"{server.url}/api/study", trust_env=False).status_code == 200
        assert server.kill(signal.SIGINT) == 0


def test_a_study_without_its_pictures_is_not_served(tmp_path: Path, study: Plan) -> None:
    (tmp_path / "pictures" / study.pairs[0].results[0]).unlink()
    votes = store.connect(store.local(tmp_path), study.identity)
    with pytest.raises(ImpastoError, match="is missing"):
        app.create(study, tmp_path, votes)
    votes.close()


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_nothing_that_the_description_allows_or_forbids_breaks_the_api(
    tmp_path: Path, study: Plan, mode: schemathesis.GenerationMode
) -> None:
    votes = store.connect(store.local(tmp_path), study.identity)
    served = app.create(study, tmp_path, votes)
    asked = 0
    for found in schemathesis.openapi.from_asgi("/openapi.json", served).get_all_operations():

        @settings(max_examples=15, database=None, suppress_health_check=list(HealthCheck))
        @given(case=found.ok().as_strategy(generation_mode=mode))
        def check(case: schemathesis.Case) -> None:
            nonlocal asked
            asked += 1
            case.call_and_validate(
                checks=[not_a_server_error, response_schema_conformance, status_code_conformance]
                if mode.is_positive
                else [not_a_server_error]
            )

        with suppress(Unsatisfiable):  # what has no input cannot be asked wrongly
            check()
    assert asked >= 15 * 4
    votes.close()


# Load


class Voter:
    """Somebody who votes on everything and sends again what was not confirmed."""

    def __init__(self, port: int, number: int) -> None:
        self.lines = [kit.Line(port), kit.Line(port)]
        self.lot = random.Random(number)
        self.who = kit.word()
        self.confirmed: dict[int, int] = {}  # position: place

    async def ask(self, line: kit.Line, method: str, path: str, body: Any = None) -> Any:
        while True:
            try:
                status, answer = await line.ask(method, path, body)
            except (OSError, EOFError):
                await asyncio.sleep(0.1)  # killed: it will be back
                continue
            assert status == 200, answer
            return json.loads(answer)

    async def vote(self) -> None:
        base = f"/api/participants/{self.who}"
        state = await self.ask(self.lines[0], "PUT", base)
        while ballot := state["ballot"]:
            position, place = ballot["position"], self.lot.randrange(len(ballot["pictures"]))
            path, body = f"{base}/votes/{kit.word()}", {"position": position, "place": place}
            lines = self.lines if self.lot.random() < 0.2 else self.lines[:1]  # some twice at once
            answers = await asyncio.gather(*(self.ask(line, "PUT", path, body) for line in lines))
            self.confirmed[position] = place
            state = answers[0]
        for line in self.lines:
            line.close()


async def everybody(server: kit.Server, voters: list[Voter], total: int) -> None:
    """All vote at once; when a third is confirmed the server is killed and started again."""
    voting = [asyncio.ensure_future(voter.vote()) for voter in voters]
    while (confirmed := sum(len(voter.confirmed) for voter in voters)) < total / 3:
        await asyncio.sleep(0.005)
    assert confirmed < total  # it is in the middle
    server.kill()
    await asyncio.to_thread(server.start)
    await asyncio.gather(*voting)


def check_every_vote_once(folder: Path, study: Plan, url: str, *options: str) -> None:
    total = VOTERS * study.design.length
    with kit.serving(folder, *options) as server:
        voters = [Voter(server.port, number) for number in range(VOTERS)]
        asyncio.run(everybody(server, voters, total))
    kept = {(vote.participant, vote.position): vote for vote in kit.votes_in(url, study.identity)}
    assert len(kept) == len(kit.votes_in(url, study.identity)) == total
    seats = {vote.participant: vote.seat for vote in kept.values()}
    assert sorted(seats.values()) == list(range(VOTERS))
    for voter in voters:
        ballots = sequence(study.design, seats[voter.who])
        assert voter.confirmed == {
            position: ballots[position].methods.index(kept[voter.who, position].method)
            for position in range(study.design.length)
        }


def test_fifty_voters_and_a_killed_server_lose_no_vote_on_sqlite(
    tmp_path: Path, study: Plan
) -> None:
    check_every_vote_once(tmp_path, study, store.local(tmp_path))


def test_fifty_voters_and_a_killed_server_lose_no_vote_on_postgresql(
    tmp_path: Path, study: Plan
) -> None:
    with kit.postgres() as url:
        check_every_vote_once(tmp_path, study, url, "--database", url)
        assert not (tmp_path / "votes.sqlite").exists()
        found = store.connect(url, study.identity)
        with found.engine.connect() as connection:
            assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"
            assert connection.scalar(sa.text("SELECT version_num FROM alembic_version")) == "0001"
        found.close()
