"""How long the studio lets people wait: for a first sketch, and for a page of its history.

    python benchmarks/gallery.py

A sketch is waited for from the wish to paint at 512 pixels to the first picture that can be seen.
A page is what the studio's own asks for in a browser that has nothing in its cache: the list of 24
paintings and their thumbnails over six connections, while five people leaf, with the studio at
rest, while it paints, and while fifty vote in a study; and while fifty leaf. All share the machine.
Writes `benchmarks/data/gallery.json` and the table in `docs/studio.md`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
from plain import DATA, machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import votes
from tests import studio, study
from tests.study import Line

from impasto import files

DOCS = ROOT / "docs" / "studio.md"
BEGIN, END = "<!-- gallery: written by benchmarks/gallery.py -->", "<!-- end -->"
PAGES, PAINTINGS, CONNECTIONS = 6, 24, 6
PAUSE = 2.0  # seconds between two pages, on average


async def read(port: int, times: list[float], sizes: list[int]) -> None:
    """Somebody who leafs."""

    async def ask(line: Line, *paths: str) -> bytes:
        for path in paths:
            status, answer = await line.ask("GET", path)
            assert status == 200, answer
            sizes.append(len(answer))
        return answer

    for _ in range(PAGES):
        await asyncio.sleep(PAUSE * random.uniform(0.5, 1.5))
        began = time.perf_counter()
        lines = [Line(port) for _ in range(CONNECTIONS)]
        runs = json.loads(await ask(lines[0], f"/api/runs?limit={PAINTINGS}"))["runs"]
        thumbs = [f"/api/runs/{run['id']}/thumb" for run in runs if run["state"] == "done"]
        parts = [thumbs[first::CONNECTIONS] for first in range(CONNECTIONS)]
        await asyncio.gather(*(ask(line, *part) for line, part in zip(lines, parts, strict=True)))
        times.append(1000 * (time.perf_counter() - began))
        for line in lines:
            line.close()


async def everybody(port: int, readers: int) -> tuple[list[float], list[int]]:
    times: list[float] = []
    sizes: list[int] = []
    await asyncio.gather(*(read(port, times, sizes) for _ in range(readers)))
    return times, sizes


async def beside_voters(port: int, readers: int) -> tuple[list[float], list[int]]:
    """The same while people vote, for as long as anybody reads."""

    async def vote(port: int) -> None:
        while True:
            await votes.everybody(port, 1.0)

    with tempfile.TemporaryDirectory() as folder:
        made = study.results(Path(folder) / "made", methods=votes.METHODS, pairs=votes.PAIRS)
        study.study(Path(folder), made)
        with study.serving(Path(folder)) as booth:
            voting = asyncio.create_task(vote(booth.port))
            found = await everybody(port, readers)
            assert not voting.done(), voting.exception()
            voting.cancel()
    return found


def measure(
    server: studio.Server, name: str, readers: int, reading: Any = everybody
) -> dict[str, Any]:
    times, sizes = asyncio.run(reading(server.port, readers))
    median, high = np.percentile(times, [50, 95])
    return {
        "the studio": name,
        "readers": readers,
        "pages": len(times),
        "median ms": round(float(median), 1),
        "p95 ms": round(float(high), 1),
        "kilobytes of a page": round(sum(sizes) / len(times) / 1000),
    }


def sketches(server: studio.Server, times: int = 5) -> list[float]:
    """Seconds until something can be seen, each time of a run that is stopped then."""
    found = []
    for number in range(times):
        began = time.perf_counter()
        run = server.paint(size=512, steps=60, seed=number)
        while server.client.get(f"/api/runs/{run['id']}/live").status_code != 200:
            time.sleep(0.01)
        found.append(round(time.perf_counter() - began, 2))
        server.client.post(f"/api/runs/{run['id']}/stop")
        server.until(run["id"], "done")
    return found


def document(found: dict[str, Any]) -> None:
    """Write the table of the documentation anew."""
    lines = ["| the studio | readers | page: median, p95 |", "|---|---|---|"]
    lines += [
        f"| {row['the studio']} | {row['readers']} "
        f"| {row['median ms']:.0f}, {row['p95 ms']:.0f} ms |"
        for row in found["rows"]
    ]
    words = (
        f"Readers at once, a page about every {PAUSE:.0f} seconds each: the list of "
        f"{PAINTINGS} paintings and their thumbnails, {found['rows'][0]['kilobytes of a page']} kB."
        f" Readers and server on one machine ({found['machine']}) whose load by "
        f"other programs was {found['load average before']}; by `benchmarks/gallery.py`. The first "
        f"sketch of a painting at 512 pixels appeared after "
        f"{', '.join(map(str, found['seconds to a sketch']))} s."
    )
    before, _, rest = DOCS.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = "\n".join([BEGIN, *lines, "", *textwrap.wrap(words, 118), END])
    files.write_atomically(DOCS, f"{before}{text}{after}".encode())


def main() -> None:
    busy = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as folder:
        server = studio.Server(Path(folder))
        try:
            for number in range(PAINTINGS):
                run = server.paint(method="adain", size=256, seed=number)
                server.until(run["id"], "done")
            waited = sketches(server)
            rows = [measure(server, "at rest", readers) for readers in (5, 50)]
            rows.append(measure(server, "beside fifty voters", 5, beside_voters))
            server.paint(size=512, steps=1000, stop="never")
            rows.append(measure(server, "painting at 512 pixels", 5))
        finally:
            server.end()
    found = {
        "machine": machine(),
        "load average before": busy,
        "seconds to a sketch": waited,
        "rows": rows,
    }
    path = DATA / "gallery.json"
    files.write_atomically(path, (json.dumps(found, indent=1) + "\n").encode())
    document(found)
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
