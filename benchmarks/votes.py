"""How long a vote takes, and a page, while fifty people vote at once.

    python benchmarks/votes.py

A server in a process of its own on loopback, on SQLite and on PostgreSQL. A page is what a browser
asks for to show a ballot: its state and its eight pictures at once. Twice: with a pause of about a
second between votes, which is faster than people are, and without any pause. All voters are one
process on the same machine, which takes its part of it. Writes `benchmarks/data/votes.json` and the
table in `docs/study.md`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests import study as kit

from impasto import files
from impasto.study import store

DATA = Path(__file__).parent / "data" / "votes.json"
DOCS = ROOT / "docs" / "study.md"
BEGIN, END = "<!-- votes: written by benchmarks/votes.py -->", "<!-- end -->"
METHODS = ("adain", "gram", "mm", "ost", "wct", "cmd")
VOTERS, PAIRS = 50, (2, 5)
PAUSES = {"a pause of a second": 1.0, "no pause": 0.0}


async def timed(times: list[float], asking: Any) -> Any:
    began = time.perf_counter()
    answer = await asking
    times.append(1000 * (time.perf_counter() - began))
    return answer


class Person:
    """Somebody at a browser, which opens up to six connections."""

    def __init__(self, port: int) -> None:
        self.lines = [kit.Line(port) for _ in range(6)]
        self.who = f"/api/participants/{kit.word()}"

    async def ask(self, method: str, path: str, body: Any = None, line: int = 0) -> bytes:
        """The answer to a request over one of the connections."""
        status, answer = await self.lines[line].ask(method, path, body)
        assert status == 200, answer
        return answer

    async def page(self) -> Any:
        """The state, and then the pictures of its ballot over all connections."""
        state = json.loads(await self.ask("GET", self.who))
        if ballot := state["ballot"]:
            names = [ballot["content"], ballot["style"], *ballot["pictures"]]
            parts = [names[first :: len(self.lines)] for first in range(len(self.lines))]
            await asyncio.gather(*(self.pictures(each, part) for each, part in enumerate(parts)))
        return state

    async def pictures(self, line: int, names: list[str]) -> None:
        """Pictures one after the other."""
        for name in names:
            await self.ask("GET", name, line=line)

    async def vote(self, pause: float, times: dict[str, list[float]]) -> None:
        """Vote on all ballots, with a look at each."""
        await self.ask("PUT", self.who)
        while ballot := (await timed(times["page"], self.page()))["ballot"]:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            place = random.randrange(len(ballot["pictures"]))
            choice = {"position": ballot["position"], "place": place}
            path = f"{self.who}/votes/{kit.word()}"
            await timed(times["vote"], self.ask("PUT", path, choice))
        for line in self.lines:
            line.close()


async def everybody(port: int, pause: float) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"vote": [], "page": []}
    await asyncio.gather(*(Person(port).vote(pause, times) for _ in range(VOTERS)))
    return times


def measure(made: Path, pause: float, url: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        study = kit.study(Path(folder), made)
        options = ["--database", url] if url else []
        with kit.serving(Path(folder), *options) as server:
            began = time.perf_counter()
            times = asyncio.run(everybody(server.port, pause))
            seconds = time.perf_counter() - began
        kept = kit.votes_in(url or store.local(Path(folder)), study.identity)
        assert len(kept) == len(times["vote"])
    row: dict[str, Any] = {"votes": len(kept), "seconds": round(seconds, 1)}
    for name, values in times.items():
        median, high = np.percentile(values, [50, 95])
        row |= {
            f"{name}, median ms": round(float(median), 1),
            f"{name}, p95 ms": round(float(high), 1),
        }
    return row


def kilobytes(made: Path) -> int:
    """What a picture weighs on the way to the browser."""
    with tempfile.TemporaryDirectory() as folder:
        kit.study(Path(folder), made)
        sizes = [file.stat().st_size for file in (Path(folder) / "pictures").iterdir()]
    return round(sum(sizes) / len(sizes) / 1000)


def document(found: dict[str, Any]) -> None:
    """Write the table of the documentation anew."""
    lines = [
        "| database | between votes | vote: median, p95 | page: median, p95 |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['database']} | {row['between votes']} "
        f"| {row['vote, median ms']:.0f}, {row['vote, p95 ms']:.0f} ms "
        f"| {row['page, median ms']:.0f}, {row['page, p95 ms']:.0f} ms |"
        for row in found["rows"]
    ]
    words = (
        f"{VOTERS} voters at once, {found['rows'][0]['votes']} votes in all; a page is the state "
        f"and eight pictures of {found['kilobytes of a picture']} kB. Taken with voters and server "
        f"on one machine ({found['machine']}) whose load by other programs was "
        f"{found['load average before']}; by `benchmarks/votes.py`."
    )
    before, _, rest = DOCS.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = "\n".join([BEGIN, *lines, "", *textwrap.wrap(words, 118), END])
    files.write_atomically(DOCS, f"{before}{text}{after}".encode())


def main() -> None:
    rows, busy = [], round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as folder, kit.postgres() as postgres:
        made = kit.results(Path(folder), methods=METHODS, pairs=PAIRS, scale=128, grain=0.06)
        size = kilobytes(made)
        for database, url in {"SQLite": "", "PostgreSQL": postgres}.items():
            for name, pause in PAUSES.items():
                row = {"database": database, "voters": VOTERS, "between votes": name}
                rows.append(row | measure(made, pause, url))
                print(rows[-1], flush=True)
    found = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load average before": busy,  # by other programs
        "kilobytes of a picture": size,
        "rows": rows,
    }
    files.write_atomically(DATA, (json.dumps(found, indent=1) + "\n").encode())
    document(found)


if __name__ == "__main__":
    main()
