"""The voting page and its API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

import impasto
from impasto.study.design import Ballot, sequence
from impasto.study.plan import PICTURES, Plan
from impasto.study.store import Conflict, Standing, Store, Unknown
from impasto.types import ImpastoError
from impasto.web.ballot.answers import BallotOut, Problem, Question, State, VoteIn

STATIC = Path(__file__).with_name("static")
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
PEOPLE = 4096  # whose sequences are kept in memory

Word = Annotated[str, InPath(pattern="^[0-9a-f]{32}$", description="32 random hexadecimal digits")]


class Picture(Response):
    """A picture, whole; to send a file of this size in parts would take longer."""

    media_type = "image/jpeg"


class Booth:
    """A study as requests see it."""

    def __init__(self, plan: Plan, folder: Path, store: Store) -> None:
        self.plan, self.store = plan, store
        self.ballots = lru_cache(PEOPLE)(lambda seat: sequence(plan.design, seat))
        self.seat = lru_cache(PEOPLE)(lambda who: store.standing(who).seat)  # for life
        # What can be asked for is a table; no word of a request becomes a path.
        self.pictures = {
            name: folder / PICTURES / name
            for pair in plan.pairs
            for name in (pair.content_picture, pair.style_picture, *pair.results)
        }
        if missing := [str(path) for path in self.pictures.values() if not path.is_file()]:
            raise ImpastoError(f"{missing[0]} is missing; create the study anew")

    def state(self, standing: Standing) -> State:
        """What a participant sees next."""
        ballots = self.ballots(standing.seat)
        shown = [self._shown(ballots, position) for position in (standing.done, standing.done + 1)]
        ahead = [shown[1].content, shown[1].style, *shown[1].pictures] if shown[1] else []
        return State(
            done=standing.done,
            total=len(ballots),
            last=standing.last,
            ballot=shown[0],
            ahead=ahead,
        )

    def _shown(self, ballots: list[Ballot], position: int) -> BallotOut | None:
        if position >= len(ballots):
            return None
        pair = self.plan.pairs[ballots[position].pair]
        return BallotOut(
            position=position,
            content=f"/pictures/{pair.content_picture}",
            style=f"/pictures/{pair.style_picture}",
            pictures=[f"/pictures/{pair.results[each]}" for each in ballots[position].methods],
        )

    def method(self, seat: int, vote: VoteIn) -> int:
        """The method behind the picture at a place of a ballot."""
        ballots = self.ballots(seat)
        if vote.position >= len(ballots):
            raise Conflict("there is no such ballot; reload the page")
        if vote.place >= len(ballots[vote.position].methods):
            raise HTTPException(422, f"place {vote.place} is not on this ballot")
        return ballots[vote.position].methods[vote.place]


def create(plan: Plan, folder: Path, store: Store) -> FastAPI:
    """The application for one study; it closes the store when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        store.close()

    app = FastAPI(
        title="Impasto study",
        version=impasto.__version__,
        description="Ballots and votes of a study of style transfer.",
        lifespan=lifespan,
        docs_url=None,  # those pages load scripts from elsewhere
        redoc_url=None,
        responses={422: {"model": Problem, "description": "what is wrong, as a sentence"}},
        generate_unique_id_function=_name,
    )
    booth = Booth(plan, folder, store)
    app.include_router(_api(booth))
    _add_files(app, booth)
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind, status in {Conflict: 409, Unknown: 404, ImpastoError: 422}.items():
        app.add_exception_handler(kind, _refusing(status))
    for trouble in (DBAPIError, PoolTimeout):
        app.add_exception_handler(trouble, _unavailable)
    return app


def _api(booth: Booth) -> APIRouter:
    """What the page asks; plain functions, which run in threads beside each other."""
    api = APIRouter(prefix="/api")

    @api.get("/study")
    def study() -> Question:
        """What is asked."""
        plan = booth.plan
        return Question(
            study=plan.identity,
            title=plan.title,
            question=plan.question,
            ballots=plan.design.length,
            shown=plan.design.shown,
        )

    @api.put("/participants/{participant}", responses=_refusals(409))
    def join(participant: Word) -> State:
        """Take part under a random word of one's own; the same word again goes on where it was."""
        return booth.state(booth.store.join(participant))

    @api.get("/participants/{participant}", responses=_refusals(404))
    def progress(participant: Word) -> State:
        """How far one has come."""
        return booth.state(booth.store.standing(participant))

    @api.put("/participants/{participant}/votes/{key}", responses=_refusals(404, 409))
    def vote(participant: Word, key: Word, choice: VoteIn) -> State:
        """Vote under a random key; the answer comes when the vote is on the disk.

        The same vote under the same key may be sent again: it counts once.
        """
        method = booth.method(booth.seat(participant), choice)
        standing = booth.store.vote(participant, key=key, position=choice.position, method=method)
        return booth.state(standing)

    @api.delete("/participants/{participant}/votes/{key}", responses=_refusals(404, 409))
    def withdraw(participant: Word, key: Word) -> State:
        """Take back the last vote."""
        return booth.state(booth.store.withdraw(participant, key=key))

    return api


def _add_files(app: FastAPI, booth: Booth) -> None:
    """The page, its parts and the pictures, each from a table made at the start."""
    parts = {
        file.name: (file.read_bytes(), KINDS[file.suffix])
        for file in STATIC.iterdir()
        if file.suffix in KINDS
    }

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return part("index.html")

    @app.get("/static/{name}", include_in_schema=False)
    def part(name: str) -> Response:
        if name not in parts:
            raise HTTPException(404, "there is no such file")
        body, kind = parts[name]
        return Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})

    @app.get("/pictures/{name}", responses=_refusals(404), response_class=Picture)
    def picture(name: str) -> Response:
        """A picture."""
        if name not in booth.pictures:
            raise HTTPException(404, "there is no such picture")
        kept = {"Cache-Control": "private, max-age=31536000, immutable"}  # names are never reused
        return Picture(booth.pictures[name].read_bytes(), headers=kept)


def _refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Refusals that a route may give, for the OpenAPI document."""
    words = {404: "not known here", 409: "does not fit what was voted before"}
    return {code: {"model": Problem, "description": words[code]} for code in codes}


def _name(route: APIRoute) -> str:
    return route.name


def _refusing(status: int) -> Any:
    async def refuse(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": " ".join(str(error).split())}, status)

    return refuse


async def _unavailable(request: Request, error: Exception) -> JSONResponse:
    sentence = "the database does not answer; what was not confirmed will be sent again"
    return JSONResponse({"detail": sentence}, 503, {"Retry-After": "2"})


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return JSONResponse({"detail": f"{place}: {first['msg']}"}, 422)
