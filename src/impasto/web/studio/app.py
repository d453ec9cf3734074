"""The studio as an application: its API, its page, its start and its end."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

import impasto
from impasto.types import ImpastoError
from impasto.web.studio import pictures
from impasto.web.studio.answers import Problem
from impasto.web.studio.front import Front
from impasto.web.studio.routes import router
from impasto.web.studio.workshop import Busy

STATIC = Path(__file__).with_name("static")
LARGER = {"/api/pictures": pictures.MAX_BYTES}  # bodies that may be larger than others


def create(folder: Path) -> FastAPI:
    """The application on a folder of its own; it works while it is served."""
    front = Front(folder)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        front.workshop.open()
        yield
        await run_in_threadpool(front.close)

    app = FastAPI(
        title="Impasto Studio",
        version=impasto.__version__,
        description="Paint the content of one picture in the style of another.",
        lifespan=lifespan,
        docs_url=None,  # those pages load scripts from elsewhere; ours is /api
        redoc_url=None,
        responses={422: {"model": Problem, "description": "what is wrong, as a sentence"}},
        generate_unique_id_function=_name,
    )
    app.state.front = front
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ImpastoError, _refused)
    app.add_exception_handler(sqlite3.Error, _unable)
    app.include_router(router)
    app.get("/api", include_in_schema=False)(_api_page)
    app.mount("/", StaticFiles(directory=STATIC, html=True))
    return app


def _name(route: APIRoute) -> str:
    return route.name


def _api_page() -> FileResponse:
    return FileResponse(STATIC / "api.html")


async def _refused(request: Request, error: Exception) -> JSONResponse:
    return _answer(409 if isinstance(error, Busy) else 422, str(error))


async def _unable(request: Request, error: Exception) -> JSONResponse:
    return _answer(507, f"the studio cannot write to its folder ({error}); is the disk full?")


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return _answer(422, f"{place}: {first['msg']}")


def _answer(status: int, sentence: str) -> JSONResponse:
    # A lone surrogate in what was sent could not be sent back.
    plain = " ".join(sentence.split()).encode("utf-8", "replace").decode()
    return JSONResponse({"detail": plain}, status)
