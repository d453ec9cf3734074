"""The HTTP API: what the page does, programs can do."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from impasto import samples
from impasto.types import ImpastoError
from impasto.web.studio import pictures, wishes
from impasto.web.studio.answers import (
    ID,
    Painting,
    PictureOut,
    Problem,
    RunOut,
    RunsOut,
    SamplesOut,
)
from impasto.web.studio.front import Front, picture_out
from impasto.web.studio.store import sample
from impasto.web.studio.workshop import Busy

Responses: TypeAlias = "dict[int | str, dict[str, Any]]"

KEEP = {"cache-control": "private, max-age=86400, immutable"}  # what an id names never changes
PATIENCE = 60.0  # seconds
RAW = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
MISSING: Responses = {404: {"model": Problem, "description": "it is not here"}}
BUSY: Responses = {409: {"model": Problem, "description": "not now"}, **MISSING}


def front_of(request: Request) -> Front:
    """The studio that a request has come to."""
    return request.app.state.front


Here = Annotated[Front, Depends(front_of)]
Id = Annotated[str, Path(pattern=ID, description="of a picture or a run")]

router = APIRouter(prefix="/api")


def kind(media: str) -> Responses:
    """A response that is a file of some kind."""
    return {200: {"content": {media: {}}, "description": "the file"}}


def view(whole: FilePath, thumb: FilePath, side: int) -> Response:
    """A picture made small, or its thumbnail where there is one."""
    if side == pictures.THUMB_SIDE and thumb.exists():
        data = thumb.read_bytes()  # sent at once: in parts it would take longer
    else:
        data = pictures.view(whole, side)
    return Response(data, media_type="image/webp", headers=KEEP)


def soon(answer: Future[Any]) -> Any:
    """What is done between two steps."""
    try:
        return answer.result(PATIENCE)
    except TooLate:
        raise Busy("a step of a large picture is under way; try again later") from None


@router.get("/samples", tags=["pictures"])
def list_samples() -> SamplesOut:
    """The photos and the paintings that come along; none where they are not installed."""
    try:
        photos, paintings = (
            [picture_out(sample(name)) for name in table]
            for table in (samples.PHOTOS, samples.PAINTINGS)
        )
    except ImpastoError:
        photos, paintings = [], []
    return SamplesOut(photos=photos, paintings=paintings)


@router.post(
    "/pictures",
    tags=["pictures"],
    status_code=201,
    openapi_extra={"requestBody": {"content": RAW, "required": True}},
    responses={
        408: {"model": Problem, "description": "too slow"},
        413: {"model": Problem, "description": "too large"},
    },
)
async def upload_picture(
    request: Request, here: Here, name: Annotated[str, Query(max_length=400)] = ""
) -> PictureOut:
    """Give a picture: the body is the file as it is."""
    async with here.uploads:  # the others wait unread, so that memory stays bounded
        try:
            # The door lets no more bytes in than are allowed.
            data = await asyncio.wait_for(request.body(), PATIENCE)
        except asyncio.TimeoutError:
            raise HTTPException(408, "the picture did not come through; try again") from None
        return await run_in_threadpool(here.keep, data, pictures.label(name))


@router.get("/pictures/{id}", tags=["pictures"], responses=MISSING)
def show_picture(id: Id, here: Here) -> PictureOut:
    """What is known of a picture."""
    return picture_out(here.upload(id))


@router.get(
    "/pictures/{id}/view",
    tags=["pictures"],
    response_class=Response,
    responses=kind("image/webp") | MISSING,
)
def view_picture(
    id: Id, here: Here, side: Annotated[int, Query(ge=16, le=4096)] = 1024
) -> Response:
    """A picture upright, its long side at most as asked for."""
    upload = here.upload(id)
    return view(here.store.upload_path(upload), here.store.thumb_path(upload), side)


@router.post("/runs", tags=["runs"], status_code=201, responses=BUSY)
def start_run(wanted: Painting, here: Here) -> RunOut:
    """Paint; the run waits until those before it are done."""
    return here.shown(here.workshop.add(*here.wish(wanted)))


@router.get("/runs", tags=["runs"])
def list_runs(
    here: Here,
    limit: Annotated[int, Query(ge=1, le=100)] = 40,
    before: Annotated[float | None, Query(description="`created` of the last one seen")] = None,
) -> RunsOut:
    """The history, the newest first, without the losses of what is over."""
    found = here.store.runs(limit=limit + 1, before=before)
    return RunsOut(runs=[here.shown(run) for run in found[:limit]], more=len(found) > limit)


@router.get("/runs/{id}", tags=["runs"], responses=MISSING)
def show_run(id: Id, here: Here) -> RunOut:
    """A run and its losses so far."""
    return here.shown(here.run(id))


@router.post("/runs/{id}/stop", tags=["runs"], responses=MISSING)
def stop_run(id: Id, here: Here) -> RunOut:
    """End a run early; the best picture so far is kept."""
    return here.shown(here.workshop.stop(here.run(id)))


@router.post("/runs/{id}/again", tags=["runs"], responses=BUSY)
def resume_run(id: Id, here: Here) -> RunOut:
    """Go on with a run that was interrupted, or try one anew that failed."""
    return here.shown(here.workshop.again(here.run(id)))


@router.delete("/runs/{id}", tags=["runs"], status_code=204, responses=BUSY)
def delete_run(id: Id, here: Here) -> None:
    """Delete a run that is over, and its picture."""
    here.workshop.remove(here.run(id))


@router.get(
    "/runs/{id}/events",
    tags=["runs"],
    response_class=StreamingResponse,
    responses=kind("text/event-stream") | MISSING,
)
async def follow_run(id: Id, here: Here) -> StreamingResponse:
    """Server-sent events: `waiting`, `step` while a run is at work, and `end` when it is over."""
    run = await run_in_threadpool(here.run, id)
    return StreamingResponse(here.events(run), media_type="text/event-stream")


@router.get(
    "/runs/{id}/live",
    tags=["runs"],
    response_class=Response,
    responses=kind("image/jpeg") | MISSING,
)
def look_at_run(id: Id, here: Here) -> Response:
    """The picture as it is now, while a run is at work."""
    for seen in (here.workshop.glimpse, here.workshop.last):
        if seen is not None and seen.run == id and seen.image:
            return Response(seen.image, media_type="image/jpeg")
    raise HTTPException(404, "there is nothing to see yet, or no more")


@router.get(
    "/runs/{id}/result.png",
    tags=["runs"],
    response_class=FileResponse,
    responses=kind("image/png") | MISSING,
)
def fetch_result(id: Id, here: Here, download: bool = False) -> FileResponse:
    """The finished picture with its record inside; see `impasto rerun`."""
    run = here.finished(id)
    name = here.download_name(run) if download else None
    path = here.store.result_path(run)
    return FileResponse(path, media_type="image/png", filename=name, headers=KEEP)


@router.get(
    "/runs/{id}/thumb",
    tags=["runs"],
    response_class=Response,
    responses=kind("image/webp") | MISSING,
)
def fetch_thumb(id: Id, here: Here) -> Response:
    """The finished picture, small."""
    run = here.finished(id)
    return view(here.store.result_path(run), here.store.thumb_path(run), pictures.THUMB_SIDE)


@router.get("/runs/{id}/inspection", tags=["runs"], responses=BUSY)
def inspect_run(id: Id, here: Here) -> dict[str, Any]:
    """Histograms of the features before, after and of the target, layer by layer."""
    return soon(here.workshop.inspect(here.finished(id)))


@router.post(
    "/sketches",
    tags=["sketches"],
    response_class=Response,
    responses=kind("image/jpeg") | BUSY,
)
def sketch(wanted: Painting, here: Here) -> Response:
    """A small quick picture of what a run would become, in a second or two."""
    data = soon(here.workshop.sketch(*here.wish(wanted)))
    return Response(data, media_type="image/jpeg")


@router.get("/settings", tags=["settings"])
def list_settings() -> dict[str, Any]:
    """Every setting of a recipe, the presets and the methods."""
    return wishes.schema()
