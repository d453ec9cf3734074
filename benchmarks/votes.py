"""How long a vote takes, and a page, while fifty people vote at once.

    python benchmarks/votes.py

A server in a process of its own on loopback, on SQLite and on PostgreSQL. A page is what a browser
asks for to show a ballot: its state and its eight pictures at once. Twice: with a pause of about a
second between votes, which is faster than people are, and without any pause. All voters are one
process on the same machine, which takes its part of it. Writes `benchmarks/data/votes.json`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests import study as kit

from impasto import files
from impasto.study import store

DATA = Path(__file__).parent / "data" / "votes.json"
METHODS = ("adain", "gram", "mm", "ost", "wct", "cmd")
VOTERS, PAIRS = 50, (2, 5)
PAUSES = {"a pause of a second": 1.0, "no pause": 0.0}


async def timed(times: list[float], asking: Any) -> Any:
    began = time.perf_counter()
    answer = await asking
    times.append(1000 * (time.perf_counter() - began))
    return answer


async def person(client: httpx.AsyncClient, pause: float, times: dict[str, list[float]]) -> None:
    who = f"/api/participants/{kit.word()}"
    (await client.put(who)).raise_for_status()
    while True:
        state, pictures = await timed(times["page"], page(client, who))
        if not state["ballot"]:
            return
        await asyncio.sleep(pause * random.uniform(0.5, 1.5))
        choice = {"position": state["ballot"]["position"], "place": random.randrange(pictures)}
        vote = client.put(f"{who}/votes/{kit.word()}", json=choice)
        (await timed(times["vote"], vote)).raise_for_status()


async def page(client: httpx.AsyncClient, who: str) -> tuple[Any, int]:
    state = (await client.get(who)).json()
    if not (ballot := state["ballot"]):
        return state, 0
    names = (ballot["content"], ballot["style"], *ballot["pictures"])
    for answer in await asyncio.gather(*map(client.get, names)):
        answer.raise_for_status()
    return state, len(ballot["pictures"])


async def everybody(url: str, pause: float) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"vote": [], "page": []}
    limits = httpx.Limits(max_connections=6 * VOTERS)  # as many as a browser opens
    async with httpx.AsyncClient(
        base_url=url, timeout=120, limits=limits, trust_env=False
    ) as client:
        await asyncio.gather(*(person(client, pause, times) for _ in range(VOTERS)))
    return times


def measure(made: Path, pause: float, url: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        study = kit.study(Path(folder), made)
        options = ["--database", url] if url else []
        with kit.serving(Path(folder), *options) as server:
            began = time.perf_counter()
            times = asyncio.run(everybody(server.url, pause))
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
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.python_version()}",
        "load average before": busy,  # by other programs
        "kilobytes of a picture": size,
        "rows": rows,
    }
    files.write_atomically(DATA, (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
