"""What every command that paints does: steps with progress, Ctrl-C, files written at the end."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from impasto.cli.progress import Progress, clock
from impasto.types import ImpastoError

if TYPE_CHECKING:
    from impasto.api import Job, Result
    from impasto.optimize import State
    from impasto.recipe import Recipe
    from impasto.types import Losses, Step

LARGE = 2_000_000  # pixels: from here on it is said before how long it will take
PLURALS = {"step": "s", "pass": "es"}
BETWEEN_CHECKPOINTS = 10.0  # seconds at least, and twenty times what saving one takes


def paint(
    job: Job,
    *,
    output: str,
    report: str = "",
    checkpoint: str = "",
    quiet: bool = False,
    state: State | None = None,
    history: list[Losses] | None = None,
    until: int | None = None,
) -> tuple[Result | None, int]:
    """Make the steps of a job and write its files: the result and the exit code."""
    from impasto import api, files, imagefile

    imagefile.check_writable(output, size=(job.scene.size[1], job.scene.size[0]))
    history = list(history or [])
    step, stopped = _steps(
        job, history, state=state, until=until, checkpoint=checkpoint, quiet=quiet
    )
    if step is None:
        print("impasto: interrupted before the first step; nothing written", file=sys.stderr)
        return None, 130
    with _undisturbed():
        result = api.finish(job, step, history)
        result.save(output)
        if report:
            data = {**result.record, "history": [vars(losses) for losses in result.history]}
            files.write_atomically(report, (json.dumps(data, indent=1) + "\n").encode())
        if checkpoint and not stopped:
            Path(checkpoint).unlink(missing_ok=True)  # there is nothing left to resume
    if not quiet:
        print(summary(result, output, checkpoint if stopped else ""), file=sys.stderr)
    return result, 130 if stopped else 0


def fetch_missing(recipe: Recipe, *, quiet: bool) -> None:
    """Get decoders that a recipe needs and this machine has not, and show it."""
    from impasto import api, download
    from impasto.cli.weights import show
    from impasto.networks import checkpoints

    for name in set(api.decoders_of(recipe).values()) & set(checkpoints.SOURCES):
        if checkpoints.location(name).is_file():
            continue
        source = checkpoints.SOURCES[name]
        with contextlib.closing(download.obtain(name, source)) as progress:
            if quiet:
                for _ in progress:
                    pass
            else:
                show(progress, title=source.file, stream=sys.stderr)


def summary(result: Result, output: str, checkpoint: str) -> str:
    """What was made, in a line."""
    record = result.record
    steps = record["steps"]
    height, width = result.array.shape[:2]
    unit = "step" if "losses" in record else "pass"
    count = f"1 {unit}" if steps["done"] == 1 else f"{steps['done']} {unit}{PLURALS[unit]}"
    text = f"{output}: {width}×{height}, {count} in {clock(record['seconds'])}"
    if "losses" in record:
        losses = record["losses"]["end"]
        text += f", style {losses['style']:.4f}, content {losses['content']:.3f}"
    if steps["reason"] in ("stopped", "flat", "settled", "budget"):
        text += f" ({steps['reason']})"
    return text + (
        f"\ngo on with: impasto resume {shlex.quote(checkpoint)} -o {shlex.quote(output)}"
        if checkpoint
        else ""
    )


def _steps(
    job: Job,
    history: list[Losses],
    *,
    state: State | None,
    until: int | None,
    checkpoint: str,
    quiet: bool,
) -> tuple[Step | None, bool]:
    """The last step that was made, and whether it was cut short by Ctrl-C."""
    from impasto import api

    known = len(history) - 1 if state is not None else -1
    if state is None and not quiet and not job.recipe.budget:
        _announce(job)
    progress, step, after = Progress(quiet), None, state
    keeper = Keeper(job, checkpoint, history)
    before = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        for step, after in api.steps_of(job, state=state, until=until):
            if step.index > known:  # a resumed run looks at its first image once more
                history.append(step.losses)
            progress.show(_share(job, step), _line(step), last=bool(step.reason))
            if not step.reason:
                keeper.keep(step, after)
    except KeyboardInterrupt:
        progress.break_line()
        if step is not None and after is not None:
            with _undisturbed():
                keeper.keep(step, after, now=True)
        return step, True
    finally:
        signal.signal(signal.SIGTERM, before)
    return step, False


@dataclass
class Keeper:
    """Saves checkpoints now and then; a disk that is full must not end the painting."""

    job: Job
    path: str
    history: list[Losses]
    due: float = field(default_factory=lambda: time.monotonic() + BETWEEN_CHECKPOINTS)

    def keep(self, step: Step, state: State, *, now: bool = False) -> None:
        """Save the state if it is time, or at once."""
        from impasto import api, runfile

        began = time.monotonic()
        if not self.path or not (now or began > self.due):
            return
        try:
            facts = api.facts_of(self.job, step)
            runfile.save(self.path, facts=facts, state=state, history=self.history)
        except ImpastoError as error:
            print(f"impasto: no checkpoint: {error}", file=sys.stderr)
        ended = time.monotonic()
        self.due = ended + max(BETWEEN_CHECKPOINTS, 20 * (ended - began))


def _announce(job: Job) -> None:
    """Say how long a large picture will take, before it is begun."""
    from impasto.course import forecast

    height, width = job.scene.size
    if height * width < LARGE:
        return
    text = f"{width}×{height} pixels, about {clock(forecast(job.scene))}"
    if job.scene.in_blocks:
        text += f", in blocks within {job.scene.memory / 1e9:.1f} GB"
    if not job.scene.recipe.passes:
        text += "; a --budget or fewer --steps shorten it"
    print(text, file=sys.stderr)


def _share(job: Job, step: Step) -> float:
    """How much is done: of the steps, or of the time where that is what ends the run."""
    if step.reason:
        return 1.0
    if not job.recipe.budget:
        return step.progress
    return max(step.progress, min(0.99, (time.monotonic() - job.began) / job.recipe.budget))


def _line(step: Step) -> str:
    height, width = step.image.shape[-2:]
    text = f"{width}×{height}  step {step.index}/{step.steps}"
    if not step.losses.known:
        return text
    return f"{text}  style {step.losses.style:.4f}  content {step.losses.content:.3f}"


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not spoil what the first one saves."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
