"""A studio as a process of its own, for the tests of its API and of its page."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx

PATIENCE = 120  # seconds after which something hangs


class Server:
    """``impasto studio`` on a free port; it can be killed and started again at the same place."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.words, self.port = folder, words, 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "impasto", "studio", "--no-browser", *self.words]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), "--data", str(self.folder)],
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self.process.stderr is not None
        self.link = next(filter(None, (_link(line) for line in self.process.stderr)))
        self.port = int(re.search(r":(\d+)/", self.link)[1])
        self.said: list[str] = []
        # Read on, or a full pipe would hold the server up.
        self.reader = threading.Thread(target=self.said.extend, args=[self.process.stderr])
        self.reader.start()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.client.close()
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stderr.close()
        return code

    def paint(self, **settings: Any) -> dict[str, Any]:
        """A run of two samples, small unless told otherwise."""
        wanted = {"content": "coffee", "style": "cypresses"}
        settings = {"size": 64, "steps": 3, **settings}
        answer = self.client.post("/api/runs", json={**wanted, "settings": settings})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def until(self, id: str, *states: str) -> dict[str, Any]:
        """A run once it is in one of these states."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            run = self.client.get(f"/api/runs/{id}").json()
            if run["state"] in states:
                return run
            time.sleep(0.05)
        raise AssertionError(f"run is still {run['state']}")

    @property
    def peak(self) -> int:
        """The most bytes of memory that the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def _link(line: str) -> str:
    found = re.search(r"http://\S+", line)
    return found[0] if found else ""
