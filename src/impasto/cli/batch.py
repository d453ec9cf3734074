"""``impasto batch``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from impasto.cli import flags
from impasto.cli.progress import Progress
from impasto.types import ImpastoError

if TYPE_CHECKING:
    from impasto.batch.folder import Folder
    from impasto.batch.tasks import Task
    from impasto.batch.worker import Outcome

SOME_FAILED = 3  # the exit code where some jobs failed and the others are done
TOLD = 5  # failures that are also said on the screen
EPILOG = """examples:
  impasto batch --contents photos --styles paintings --methods cmd,gram -o out --size 256
  impasto batch --jobs jobs.csv -o out --score
  impasto batch --jobs jobs.csv -o out --engine ray
  impasto batch --jobs s3://bucket/jobs.json -o s3://bucket/out --engine ray --address auto

jobs.csv has the columns content and style and, where wanted, name, preset and any setting below
(alpha, size, moment_weights, …); what a row leaves out comes from the flags.

The same command again makes what is missing and nothing else, also after Ctrl-C, a crash or a full
disk. Exit codes: 0 all done, 3 some jobs failed (see failures.csv), 130 interrupted."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--contents", metavar="DIR", help="folder of pictures to paint, or one")
    parser.add_argument("--styles", metavar="DIR", help="folder of pictures to take styles from")
    parser.add_argument(
        "--methods",
        metavar="A,B,…",
        help="every pair by each of these; see `impasto methods` [cmd]",
    )
    parser.add_argument("--jobs", metavar="FILE", help="CSV or JSON of jobs, instead of a grid")
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder of the results"
    )
    parser.add_argument("--score", action="store_true", help="also measure: scores.csv, .parquet")
    parser.add_argument(
        "--engine", choices=("process", "ray"), default="process", help="who works [process]"
    )
    parser.add_argument(
        "--address", default="", metavar="X", help="ray: of a cluster [this machine]"
    )
    parser.add_argument(
        "--workers", type=int, default=0, metavar="N", help="ray: at most so many [all cores]"
    )
    parser.add_argument(
        "--threads", type=int, default=0, metavar="N", help="of a worker [process: all, ray: 1]"
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")
    flags.add_recipe(parser)
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing in the folder; the exit code says whether all is there then."""
    from impasto.batch import storage, tables
    from impasto.batch.folder import Folder

    _check(arguments)
    tasks = _tasks(arguments)
    arguments.output = storage.absolute(arguments.output)
    folder = Folder(place=arguments.output)
    _check_apart(arguments, folder, tasks)
    storage.make_folder(folder.place)
    if arguments.score:
        storage.make_folder(storage.join(folder.place, "scores"))
    if storage.absolute(arguments.jobs or "") != folder.jobs:
        tables.write_jobs(folder, tasks)
    state = State(quiet=arguments.quiet)
    before = signal.signal(signal.SIGTERM, _as_interrupt)
    missing: list[Task] = []
    try:
        missing = state.survey(tasks, folder, score=arguments.score)
        if missing:
            state.follow(_outcomes(arguments, missing), total=len(missing))
    except ImpastoError:  # no worker is left
        tables.write_failures(folder, tasks, state.failures)
        raise
    except KeyboardInterrupt:
        if missing:  # else nothing is known yet of what failed
            tables.write_failures(folder, tasks, state.failures)
        state.say(
            f"stopped with {len(state.records)} of {len(tasks)} done; the same command goes on"
        )
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return _finish(arguments, folder, tasks, state)


@dataclass
class State:
    """What is known of a batch while it runs."""

    quiet: bool
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[Outcome] = field(default_factory=list)

    def survey(self, tasks: list[Task], folder: Folder, *, score: bool) -> list[Task]:
        """The tasks that are still to be made."""
        missing, progress = [], Progress(self.quiet, printed=time.monotonic())
        for number, task in enumerate(tasks, start=1):
            progress.show(number / len(tasks), f"looking at what is there: {number}/{len(tasks)}")
            record = folder.record_of(task)
            taken = folder.score_of(task, record) if record else None
            if record:
                self.records[task.name] = record
            if taken:
                self.scores[task.name] = taken
            if record is None or (score and taken is None):
                missing.append(task)
        progress.break_line()
        ready = len(tasks) - len(missing)
        self.say(f"{len(tasks)} jobs, {ready} done before, {len(missing)} to do")
        return missing

    def follow(self, outcomes: Generator[Outcome | None, None, None], *, total: int) -> None:
        """Take in what workers report, and tell about it."""
        progress, done = Progress(self.quiet), 0
        try:
            with closing(outcomes):
                for outcome in outcomes:
                    if outcome is not None:
                        done += 1
                        self._note(outcome)
                    minutes = (time.monotonic() - progress.began) / 60
                    rate = f"{done / minutes:.1f} per minute, " if done else ""
                    text = f"{done}/{total} jobs, {rate}{len(self.failures)} failed"
                    progress.show(done / total, text, last=done == total and outcome is not None)
        finally:
            progress.break_line()

    def _note(self, outcome: Outcome) -> None:
        if outcome.record:
            self.records[outcome.name] = outcome.record
        if outcome.score:
            self.scores[outcome.name] = outcome.score
        if outcome.reason:
            self.failures.append(outcome)

    def say(self, text: str) -> None:
        """A line, unless nothing is to be said."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)


def _check(arguments: argparse.Namespace) -> None:
    if bool(arguments.jobs) == bool(arguments.contents or arguments.styles):
        raise ImpastoError("name either --jobs FILE, or --contents DIR and --styles DIR")
    if not arguments.jobs and not (arguments.contents and arguments.styles):
        raise ImpastoError("a grid needs both --contents DIR and --styles DIR")
    if arguments.jobs and arguments.methods:
        raise ImpastoError("--methods is for a grid; in a table of jobs it is the column 'method'")
    if arguments.methods and hasattr(arguments, "method"):
        raise ImpastoError("name either --methods or --method")
    if min(arguments.workers, arguments.threads) < 0:
        raise ImpastoError("--workers and --threads cannot be negative")
    if arguments.engine != "ray" and (arguments.address or arguments.workers):
        raise ImpastoError("--address and --workers go with --engine ray")


def _check_apart(arguments: argparse.Namespace, folder: Folder, tasks: list[Task]) -> None:
    """No result may replace a picture that is read, or be taken for one the next time."""
    from impasto.batch import storage

    read = {place for task in tasks for place in (task.content, task.style, task.recipe.start)}
    if replaced := sorted(read & {folder.picture(task) for task in tasks}):
        raise ImpastoError(f"{replaced[0]} would be replaced by a result; choose another folder")
    for place in filter(None, (arguments.contents, arguments.styles)):
        if storage.absolute(place) == folder.place:
            raise ImpastoError(f"the results would become inputs of {place}; choose another folder")


def _tasks(arguments: argparse.Namespace) -> list[Task]:
    from impasto.batch import tasks

    settings = flags.settings_of(arguments)
    if arguments.jobs:
        return tasks.table(arguments.jobs, preset=arguments.preset, **settings)
    methods = (arguments.methods or settings.pop("method", "cmd")).split(",")
    methods = list(dict.fromkeys(name.strip() for name in methods))
    return tasks.grid(
        arguments.contents, arguments.styles, methods, preset=arguments.preset, **settings
    )


def _outcomes(
    arguments: argparse.Namespace, missing: list[Task]
) -> Generator[Outcome | None, None, None]:
    from impasto.batch import engines
    from impasto.batch.worker import Order

    order = Order(folder=arguments.output, score=arguments.score, threads=arguments.threads)
    if arguments.engine == "process":
        return engines.in_process(missing, order)
    return engines.on_ray(missing, order, address=arguments.address, workers=arguments.workers)


def _finish(arguments: argparse.Namespace, folder: Folder, tasks: list[Task], state: State) -> int:
    """Write what belongs to all jobs together, and say how it went."""
    from impasto.batch import tables

    for failure in state.failures[:TOLD]:
        print(f"impasto: {failure.name}: {failure.reason}", file=sys.stderr)
    if more := len(state.failures[TOLD:]):
        print(f"impasto: and {more} more", file=sys.stderr)
    complete = True
    try:
        tables.write_failures(folder, tasks, state.failures)
        if arguments.score and not tables.write_scores(folder, tasks, state.records, state.scores):
            state.say("no scores.parquet: it needs pip install impasto[ray]")
        tables.write_records(folder, tasks, state.records)
    except ImpastoError as error:
        print(f"impasto: {error}", file=sys.stderr)
        complete = False
    if state.failures:
        state.say(
            f"{len(state.failures)} of {len(tasks)} jobs failed; the same command tries again"
        )
        return SOME_FAILED
    state.say(f"{folder.place}: all {len(tasks)} jobs are done")
    return 0 if complete else 1


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
