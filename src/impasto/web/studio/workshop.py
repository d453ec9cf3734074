"""The one who paints: one run at a time, sketches in between, everything noted as it comes."""

from __future__ import annotations

import io
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import PIL.Image

from impasto import files, imagefile, runfile
from impasto.recipe import Recipe
from impasto.types import ImpastoError, Losses, Picture, Step
from impasto.web.studio import pictures, wishes
from impasto.web.studio.store import OPEN, History, Run, Store, Upload

if TYPE_CHECKING:
    from impasto.api import Job, Source, Supplies
    from impasto.download import Progress
    from impasto.optimize import State

MAX_WAITING = 8  # runs
LIVE_SIDE = 1024  # pixels of a picture on the way
BETWEEN_PICTURES = 0.3  # seconds
BREATH = 1.0  # seconds after something that could not even be noted
BETWEEN_CHECKPOINTS = 10.0  # seconds at least, and twenty times what saving one takes
SKETCH_VIEW = 512  # pixels of a picture that a sketch is made from
INSPECTION_SIDE = 512
LAST_SECONDS = 20.0  # for the step under way when the studio ends

log = logging.getLogger("impasto.studio")


class Busy(ImpastoError):
    """There is no room for one more; it will be different later."""


@dataclass(frozen=True, kw_only=True)
class Glimpse:
    """What can be seen of a run while it is at work; replaced, never changed."""

    run: str
    number: int = 0  # counts every change
    phase: str = "opening"  # perhaps fetching; then sketching, then painting
    step: int = 0
    steps: int = 0
    size: tuple[int, int] = (0, 0)  # width and height that is being painted at
    progress: float = 0.0
    left: float | None = None  # seconds
    history: History = ()
    image: bytes = field(default=b"", repr=False)
    images: int = 0  # counts the pictures


@dataclass(frozen=True, kw_only=True)
class Errand:
    """Something quick that someone waits for, done between two steps."""

    do: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)


class Workshop:
    """The queue of runs and the thread that works through it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.glimpse: Glimpse | None = None  # of the run at work
        self.last: Glimpse | None = None  # of the run before: whoever looks may be a moment late
        self._queue: deque[str] = deque()
        self._errands: dict[str, Errand] = {}  # the newest of each kind
        self._stopping: set[str] = set()
        self._closing = False
        self._next_picture = 0.0  # by time.monotonic
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="workshop", daemon=True)

    def open(self) -> None:
        """Begin to work."""
        self._thread.start()

    def leave(self) -> None:
        """Begin to end; takes no lock, a signal may call it at any moment."""
        self._closing = True

    @property
    def leaving(self) -> bool:
        """Whether nothing new is begun."""
        return self._closing

    def close(self) -> bool:
        """End after the step under way; its run goes on from there another time.

        False where that step takes too long to wait for.
        """
        with self._news:
            self._closing = True
            self._news.notify_all()
        if self._thread.is_alive():
            self._thread.join(LAST_SECONDS)
        return not self._thread.is_alive()

    def add(
        self, content: Upload, style: Upload, recipe: Recipe, start: Upload | None = None
    ) -> Run:
        """Take on one more run."""
        with self._news:
            self._check_room()
            run = self.store.add_run(content, style, recipe, start)
            self._queue.append(run.id)
            self._news.notify_all()
        return run

    def again(self, run: Run) -> Run:
        """Take on a run that was interrupted or failed once more."""
        with self._news:
            if self.store.run(run.id).state not in ("interrupted", "failed"):
                raise Busy("this run is not one that stopped short; start a new one")
            self._check_room()
            self.store.mark(run, "waiting")
            self._queue.append(run.id)
            self._news.notify_all()
        return self.store.run(run.id)

    def stop(self, run: Run) -> Run:
        """End a run early: at work it keeps its best picture, waiting it leaves the queue."""
        with self._news:
            if run.id in self._queue:
                self._queue.remove(run.id)
                self.store.mark(run, "interrupted")
            elif self.store.run(run.id).state == "painting":
                self._stopping.add(run.id)
        return self.store.run(run.id)

    def remove(self, run: Run) -> None:
        """Forget a run that is over."""
        with self._news:
            if self.store.run(run.id).state in OPEN:
                raise Busy("the picture is being painted; stop it first")
            self.store.remove(run)

    def place(self, run: Run) -> int:
        """How many come before a waiting run, the one at work included."""
        with self._news:
            ahead = self._queue.index(run.id) if run.id in self._queue else 0
            return ahead + (self.glimpse is not None)

    def sketch(
        self, content: Upload, style: Upload, recipe: Recipe, start: Upload | None = None
    ) -> Future[bytes]:
        """A small quick picture, soon; only the newest wish counts."""
        return self._send("sketch", lambda: self._sketch(content, style, recipe, start))

    def inspect(self, run: Run) -> Future[dict[str, Any]]:
        """The features of a finished picture, soon; only the newest wish counts."""
        return self._send("inspection", lambda: self._inspect(run))

    def _send(self, kind: str, do: Callable[[], Any]) -> Future[Any]:
        errand = Errand(do=do)
        with self._news:
            if self._closing:
                raise Busy("the studio is closing")
            before = self._errands.pop(kind, None)
            self._errands[kind] = errand
            self._news.notify_all()
        if before is not None:
            before.answer.set_exception(Busy(f"a newer {kind} took its place"))
        return errand.answer

    def _check_room(self) -> None:
        if self._closing:
            raise Busy("the studio is closing")
        if len(self._queue) >= MAX_WAITING:
            raise Busy(f"{MAX_WAITING} pictures are waiting already; try again when one is done")

    # What follows runs in the thread.

    def _work(self) -> None:
        self._warm()
        while self._wait():
            self._turn()
        with self._news:
            for errand in self._errands.values():
                errand.answer.set_exception(Busy("the studio is closing"))

    def _wait(self) -> bool:
        """Until there is something to do; false at the end."""
        with self._news:
            self._news.wait_for(lambda: self._closing or self._errands or self._queue)
            return not self._closing

    def _turn(self) -> None:
        """One errand, or else one run."""
        try:
            run = self._next()
            self._errand() if run is None else self._attempt(run)
        except Exception:  # not even a failure could be noted: a full disk
            log.exception("the workshop stumbled")
            time.sleep(BREATH)

    def _next(self) -> Run | None:
        """The next run, where no errand comes first."""
        with self._news:
            if self._errands:
                return None
            run = self.store.run(self._queue[0])
            self.store.mark(run, "painting")
            self._queue.popleft()
            self.glimpse = Glimpse(run=run.id)
            return run

    def _warm(self) -> None:
        """Load torch and the network, that the first picture need not wait."""
        with suppress(ImpastoError):  # the first run will say it
            self.supplies.encoder(Recipe().weights, Recipe().device)

    def _attempt(self, run: Run) -> None:
        """Paint, and note whatever goes wrong as a sentence."""
        try:
            self._paint(run)
        except ImpastoError as error:
            self.store.mark(run, "failed", error=str(error))
        except Exception as error:
            log.exception("run %s failed", run.id)
            self.store.mark(run, "failed", error=_sentence(error))
        finally:
            with self._news:
                self._stopping.discard(run.id)
                self.last, self.glimpse = self.glimpse, None

    def _paint(self, run: Run) -> None:
        from impasto import api

        content, style = self.store.upload(run.content), self.store.upload(run.style)
        start = self.store.upload(run.start) if run.start else None
        recipe = Recipe.from_dict(run.recipe)
        state, losses = self._resumable(run)
        if state is None:
            self._show(phase="sketching")
            with suppress(ImpastoError):  # what is wrong with a small picture may be right later
                self._sketch(content, style, recipe, start, show=True)
        job = api.open_job(content, style, recipe, start=start, supplies=self.supplies)
        self._show(phase="painting")
        keeper = Keeper(self.store, run)
        step, began, first = None, time.monotonic(), -1.0
        for step, after in api.steps_of(job, state=state):
            if step.index >= len(losses):  # a resumed run looks at its first image once more
                losses.append(step.losses)
            first = step.progress if first < 0 else first
            self._show_step(step, losses, _left(began, first, step.progress))
            if self._ends(run, job, step, after, losses, keeper):
                break
            self._errand()
        if step is None or (self._closing and not step.reason):
            self.store.mark(run, "interrupted")
        else:
            self._finish(run, job, step, losses)

    def _ends(
        self, run: Run, job: Job, step: Step, state: State, losses: list[Losses], keeper: Keeper
    ) -> bool:
        if step.reason:
            return False  # it ends by itself
        keeper.keep(job, step, state, losses, now=self._closing)
        return self._closing or run.id in self._stopping

    def _finish(self, run: Run, job: Job, step: Step, losses: list[Losses]) -> None:
        from impasto import api

        result = api.finish(job, step, losses)
        files.write_atomically(self.store.thumb_path(run), pictures.thumb(result.array))
        result.save(self.store.result_path(run))
        self.store.complete(run, _history(losses))

    def _resumable(self, run: Run) -> tuple[State | None, list[Losses]]:
        """Where an earlier attempt was, if it left word."""
        path = self.store.checkpoint_path(run)
        if path.exists():
            try:
                _, state, history = runfile.load(path)
                return state, history
            except ImpastoError as error:
                log.warning("%s", error)
        return None, []

    def _errand(self) -> None:
        """Do what someone waits for, if there is anything."""
        with self._news:
            kind = next(iter(self._errands), "")
            errand = self._errands.pop(kind, None)
        if errand is None or not errand.answer.set_running_or_notify_cancel():
            return
        try:
            errand.answer.set_result(errand.do())
        except ImpastoError as error:
            errand.answer.set_exception(error)
        except Exception as error:
            log.exception("%s failed", kind)
            errand.answer.set_exception(ImpastoError(_sentence(error)))

    def _sketch(
        self,
        content: Upload,
        style: Upload,
        recipe: Recipe,
        start: Upload | None,
        *,
        show: bool = False,
    ) -> bytes:
        from impasto import api

        began = time.monotonic()
        recipe = wishes.sketch_of(recipe, pictures.size_of(content), pictures.size_of(style))
        supplies = replace(self.supplies, read=self._read_small)
        job = api.open_job(content, style, recipe, start=start, supplies=supplies)
        image = b""
        for step, _ in api.steps_of(job):
            # Alone it must show what the settings do, however slow the machine is.
            enough = show or step.index >= wishes.SKETCH_LEAST
            late = enough and time.monotonic() - began > wishes.SKETCH_SECONDS
            if show or late or step.reason:
                image = _jpeg(step)
            if show:
                self._show(image=image, size=_size_of(step))
            if late:
                break
        return image

    def _inspect(self, run: Run) -> dict[str, Any]:
        from impasto.experiments import inspection

        places = [self.store.upload_path(self.store.upload(id)) for id in (run.content, run.style)]
        size = min(max(run.width, run.height), INSPECTION_SIDE)
        return inspection.inspect(self.store.result_path(run), *places, size=size)

    def _read(self, upload: Upload, name: str) -> tuple[Picture, Source]:
        """A picture; its record calls it by its name, not by our place."""
        from impasto import api

        picture, source = api.read_picture(self.store.upload_path(upload), name)
        return picture, replace(source, path=upload.name)

    def _read_small(self, upload: Upload, name: str) -> tuple[Picture, Source]:
        """As much of a picture as a sketch can show."""
        from impasto import api

        view = pictures.view(self.store.upload_path(upload), SKETCH_VIEW)
        return api.read_picture(PIL.Image.open(io.BytesIO(view)), name)

    @cached_property
    def supplies(self) -> Supplies:
        """Where jobs get their pictures and the network, which is loaded once."""
        from impasto import api

        return api.Supplies(
            read=self._read,
            encoder=lru_cache(maxsize=2)(api.load_encoder),
            decoder=lru_cache(maxsize=4)(partial(api.load_decoder, tell=self._show_fetching)),
        )

    def _show_fetching(self, progress: Progress) -> None:
        """Tell whoever looks that a decoder is on its way, which may take a minute."""
        share = progress.done / progress.total if progress.total else 0.0
        if share < 1:
            self._show(phase="fetching", progress=share)
        else:
            self._show(phase="opening", progress=0.0)

    def _show_step(self, step: Step, losses: list[Losses], left: float | None) -> None:
        """Tell whoever looks; a picture only now and then."""
        now = time.monotonic()
        changes: dict[str, Any] = {}
        if step.reason or now >= self._next_picture:
            changes["image"] = _jpeg(step)
            self._next_picture = now + BETWEEN_PICTURES
        self._show(
            step=step.index,
            steps=step.steps,
            progress=1.0 if step.reason else step.progress,
            left=left,
            history=_history(losses),
            size=_size_of(step),
            **changes,
        )

    def _show(self, **changes: Any) -> None:
        seen = self.glimpse
        if seen is not None:
            images = seen.images + ("image" in changes)
            self.glimpse = replace(seen, number=seen.number + 1, images=images, **changes)


@dataclass
class Keeper:
    """Saves checkpoints now and then; a disk that is full must not end the painting."""

    store: Store
    run: Run
    due: float = field(default_factory=lambda: time.monotonic() + BETWEEN_CHECKPOINTS)

    def keep(self, job: Job, step: Step, state: State, history: list[Losses], *, now: bool) -> None:
        """Save the state if it is time, or at once."""
        from impasto import api

        began = time.monotonic()
        if not (now or began > self.due):
            return
        try:
            facts = api.facts_of(job, step)
            path = self.store.checkpoint_path(self.run)
            runfile.save(path, facts=facts, state=state, history=history)
        except ImpastoError as error:
            log.warning("no checkpoint: %s", error)
        ended = time.monotonic()
        self.due = ended + max(BETWEEN_CHECKPOINTS, 20 * (ended - began))


def _history(losses: list[Losses]) -> History:
    """Of every step that was measured; feed-forward methods have none."""
    return tuple((each.style, each.content, len(each.layers)) for each in losses if each.known)


def _size_of(step: Step) -> tuple[int, int]:
    height, width = step.image.shape[-2:]
    return width, height


def _jpeg(step: Step) -> bytes:
    return pictures.jpeg(imagefile.to_8bit(step.best.permute(1, 2, 0).cpu().numpy()), LIVE_SIDE)


def _left(began: float, first: float, progress: float) -> float | None:
    """The seconds to go, by the pace since this run was taken up."""
    if progress <= first:
        return None
    return (time.monotonic() - began) * (1 - progress) / (progress - first)


def _sentence(error: Exception) -> str:
    """What people can do about a problem that nobody foresaw."""
    if isinstance(error, MemoryError) or "memory" in str(error):
        return "there was not enough memory; choose a smaller size"
    return f"something went wrong inside ({type(error).__name__}); the terminal says more"
