"""The store and the workshop as requests see them: ids become pictures and runs, or 404."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import HTTPException
from starlette.concurrency import run_in_threadpool

from impasto import samples
from impasto.recipe import Recipe
from impasto.types import ImpastoError
from impasto.web.studio import pictures, wishes
from impasto.web.studio.answers import Painting, PictureOut, RunOut
from impasto.web.studio.store import OPEN, Run, Store, Upload
from impasto.web.studio.workshop import Workshop

UPLOADS = 4  # pictures that may come in at the same time
LOOK = 0.1  # seconds between two looks at a run that someone follows
ALIVE = 15.0  # seconds after which a silent stream says that it is there
SEEN = ("number", "phase", "step", "steps", "size", "progress", "left", "images")


class Front:
    """What the routes ask."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.workshop = Workshop(self.store)
        self.uploads = asyncio.Semaphore(UPLOADS)

    def close(self) -> None:
        """End the work and let go of the folder."""
        if self.workshop.close():
            self.store.close()

    def upload(self, id: str) -> Upload:
        """The picture of an id, or 404."""
        try:
            return self.store.upload(id)
        except KeyError:
            raise HTTPException(404, "this picture is not here any more; choose it again") from None

    def run(self, id: str) -> Run:
        """The run of an id, or 404."""
        try:
            return self.store.run(id)
        except KeyError:
            raise HTTPException(404, "this painting is not here any more") from None

    def finished(self, id: str) -> Run:
        """The run of an id whose picture is there, or 404."""
        run = self.run(id)
        if run.state != "done":
            raise HTTPException(404, "this painting is not finished")
        return run

    def wish(self, wanted: Painting) -> tuple[Upload, Upload, Recipe, Upload | None]:
        """What a request wants to be painted: content, style, recipe, start."""
        recipe = wishes.recipe_of(wanted.preset, wanted.settings)
        start = None if recipe.start in wishes.STARTS else self.upload(recipe.start)
        return self.upload(wanted.content), self.upload(wanted.style), recipe, start

    def keep(self, data: bytes, name: str) -> PictureOut:
        """Check a picture and keep it."""
        size, thumb = pictures.inspect(data, name)
        return picture_out(self.store.add_upload(data, name=name, size=size, thumb=thumb))

    def shown(self, run: Run) -> RunOut:
        """A run as the API tells of it."""
        record = run.record or {}
        seen = self.workshop.glimpse
        history = seen.history if seen is not None and seen.run == run.id else run.history
        return RunOut(
            id=run.id,
            state=run.state,
            created=run.created,
            content=self._named(run.content),
            style=self._named(run.style),
            recipe=run.recipe,
            error=run.error,
            place=self.workshop.place(run) if run.state == "waiting" else 0,
            width=run.width,
            height=run.height,
            steps=record.get("steps", {}).get("done", 0),
            seconds=record.get("seconds", 0.0),
            reason=record.get("steps", {}).get("reason", ""),
            history=list(history),
        )

    def download_name(self, run: Run) -> str:
        """A name that tells which two pictures these were, in letters that any system takes."""
        both = [self._named(run.content), self._named(run.style)]
        name = (
            "-".join(each.id if each.title else Path(each.name).stem for each in both if each)
            or "painting"
        )
        return "".join(each if each.isalnum() or each in "-_" else "_" for each in name) + ".png"

    def _named(self, id: str) -> PictureOut | None:
        try:
            return picture_out(self.store.upload(id))
        except (KeyError, ImpastoError):
            return None

    async def events(self, run: Run) -> AsyncIterator[str]:
        """What a follower of a run is told; every loss once."""
        number, told, place, silent = -1, 0, -1, 0.0
        while not self.workshop.leaving:  # a stream would hold the end of the server up
            seen = self.workshop.glimpse
            if seen is not None and seen.run == run.id:
                if seen.number != number:
                    data = {name: getattr(seen, name) for name in SEEN}
                    yield _event("step", data | {"from": told, "history": seen.history[told:]})
                    number, told, silent = seen.number, len(seen.history), 0.0
            else:
                try:
                    run = await run_in_threadpool(self.store.run, run.id)
                except KeyError:
                    return  # deleted meanwhile
                if run.state not in OPEN:
                    yield _event("end", (await run_in_threadpool(self.shown, run)).model_dump())
                    return
                now = await run_in_threadpool(self.workshop.place, run)
                if run.state == "waiting" and now != place:
                    place, silent = now, 0.0
                    yield _event("waiting", {"place": place})
            await asyncio.sleep(LOOK)
            silent += LOOK
            if silent > ALIVE:
                silent = 0.0
                yield ": still here\n\n"


def picture_out(upload: Upload) -> PictureOut:
    """A picture as the API tells of it."""
    known = samples.SAMPLES.get(upload.id)
    width, height = pictures.size_of(upload)
    return PictureOut(
        id=upload.id,
        name=upload.name,
        width=width,
        height=height,
        title=known.title if known else "",
        license=known.license if known else "",
    )


def _event(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
