"""A run of experiments: pictures, data, figures and the report, each written when it is there."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

import impasto
from impasto import files
from impasto.experiments import EXPERIMENTS, Data, Row, experiment, figures, report
from impasto.experiments.gallery import Gallery
from impasto.experiments.plan import Order, Plan
from impasto.recipe import EVERY_METHOD
from impasto.types import ImpastoError

REPORT = "report.html"
OWN_SIZE = ("toy", "runtime", "votes")  # experiments that go by no size and steps of the plan


@dataclass(frozen=True)
class Tick:
    """How far a run has come."""

    share: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Experiments in a folder; what is there from an earlier run is not made again."""

    plan: Plan
    folder: Path

    @cached_property
    def gallery(self) -> Gallery:
        """The pictures of all experiments."""
        return Gallery(folder=self.folder / "pictures", plan=self.plan)

    def run(self, names: Sequence[str]) -> Iterator[Tick]:
        """Make what is missing; the report is written after every experiment."""
        gallery, done = self.gallery, 0.0
        gallery.folder.mkdir(parents=True, exist_ok=True)
        wanted = [name for name in names if not self.is_done(name)]
        orders = {name: self._missing(name) for name in wanted}
        distinct = {order.name: order for each in orders.values() for order in each}
        gallery.check(distinct.values())
        total = sum(order.work for order in distinct.values())
        total += sum(effort(name, self.plan) for name in wanted)
        for name in wanted:
            for order in orders[name]:
                if distinct.pop(order.name, None) is None:
                    continue
                # Another process may work in the same folder.
                for share in () if gallery.has(order) else gallery.paint(order):
                    yield Tick((done + share * order.work) / total, f"{name}: {order.name}")
                done += order.work
            yield from self._measure(name, done, total)
            done += effort(name, self.plan)
            self.write_report()
        self.write_report()

    def is_done(self, name: str) -> bool:
        """Whether the data and the figure of an experiment are there, made by this very plan."""
        drawn = all(self._file(name, suffix).exists() for suffix in (".csv", ".png", ".svg"))
        return drawn and self._known(name) is not None

    def write_report(self) -> None:
        """The page of all experiments that are in the folder."""
        sections = []
        for name, title in EXPERIMENTS.items():
            try:
                found, figure = self._read(name), self._file(name, ".png").read_bytes()
            except (OSError, ValueError):
                continue
            module = experiment(name)
            sections.append(
                report.Section(
                    name=name,
                    title=title,
                    caption=module.caption(found["data"]),
                    rows=module.rows(found["data"]),
                    figure=figure,
                    made=found["made"],
                )
            )
        _write(self.folder / REPORT, report.page(sections, about=machine()).encode())

    def _missing(self, name: str) -> list[Order]:
        wanted = experiment(name).orders(self.plan)
        return [order for order in wanted if not self.gallery.has(order)]

    def _measure(self, name: str, done: float, total: float) -> Iterator[Tick]:
        """Data, table and figure of an experiment whose pictures are there."""
        module, gallery, own = experiment(name), self.gallery, effort(name, self.plan)
        data = self._known(name)
        if data is None:
            work = _Work(module.measure(self.plan, gallery))
            for share in work:
                yield Tick((done + share * own) / total, f"{name}: measuring")
            kept = {"key": self._key(name), "made": made(name, self.plan), "data": work.data}
            text = json.dumps(kept, indent=1, ensure_ascii=False, allow_nan=False)
            _write(self._file(name, ".json"), text.encode())
            data = json.loads(text)["data"]
        with figures.look():
            drawn = figures.rendered(module.draw(data, gallery))
        for suffix, content in drawn.items():
            _write(self._file(name, suffix), content)
        _write(self._file(name, ".csv"), as_csv(module.rows(data)).encode())

    def _known(self, name: str) -> Data | None:
        """The data of an experiment, if they are there and made by this very plan."""
        try:
            found = self._read(name)
            return found["data"] if found["key"] == self._key(name) else None
        except (OSError, ValueError, KeyError):
            return None

    def _key(self, name: str) -> str:
        """What the data depend on, as a hash."""
        plan = self.plan.to_dict()
        for pair in plan["pairs"]:
            for source in pair.values():
                del source["path"]
        orders = [order.name for order in experiment(name).orders(self.plan)]
        facts = [impasto.__version__, plan, orders, sorted(EVERY_METHOD)]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def _file(self, name: str, suffix: str) -> Path:
        return self.folder / f"{name}{suffix}"

    def _read(self, name: str) -> dict[str, Any]:
        return json.loads(self._file(name, ".json").read_bytes())


@dataclass
class _Work:
    """A generator that is remembered for what it returns."""

    steps: Generator[float, None, Data]
    data: Data = field(default_factory=dict)

    def __iter__(self) -> Iterator[float]:
        self.data = yield from self.steps


def effort(name: str, plan: Plan) -> float:
    """What measuring costs beside the pictures, in steps of a megapixel: rough."""
    if name == "toy":
        return 15 * plan.toy_steps / 3000
    if name == "runtime":
        return (
            len(EVERY_METHOD) * plan.timed_runs * (plan.timed_steps + 3) * plan.timed_size**2 / 1e6
        )
    if name == "alignment":
        return len(EVERY_METHOD) * plan.measured * 3 * plan.size**2 / 1e6
    return 0.05


def as_csv(rows: Sequence[Row]) -> str:
    """A table as text."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def made(name: str, plan: Plan) -> str:
    """With what the data of an experiment were made."""
    facts = ", ".join(f"{key} {value}" for key, value in machine().items())
    if name in OWN_SIZE:
        return f"Made with {facts}."
    return (
        f"Made at {plan.size} pixels, {plan.steps} steps (the paper's procedure: "
        f"{plan.paper_steps}), with {facts}."
    )


def machine() -> dict[str, str]:
    """What runs here."""
    return {
        "impasto": impasto.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": f"{platform.machine()}, {torch.get_num_threads()} threads",
    }


def chosen(text: str) -> list[str]:
    """The experiments that were named, in the order of the table; all where none was."""
    wanted = {part.strip() for part in text.split(",") if part.strip()}
    for name in sorted(wanted - set(EXPERIMENTS)):
        raise ImpastoError(f"unknown experiment '{name}'; known: {', '.join(EXPERIMENTS)}")
    return [name for name in EXPERIMENTS if name in wanted or not wanted]


def _write(path: Path, content: bytes) -> None:
    """The file, left alone where it is the same already."""
    if not (path.exists() and path.read_bytes() == content):
        files.write_atomically(path, content)
