"""Studies for the tests: grids of pictures, a server in a process of its own, a real PostgreSQL."""

import asyncio
import contextlib
import getpass
import hashlib
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from impasto import imagefile
from impasto.study import grid, making
from impasto.study.plan import Plan

METHODS = ("cmd", "gram", "mm")


def word() -> str:
    return secrets.token_hex(16)


def picture(
    path: Path, seed: int, *, scale: int = 16, grain: float = 0.0, record: Any = None
) -> Path:
    """Twelve fields of color, different for every seed, each of so many pixels squared."""
    rng = np.random.default_rng(seed)
    coarse = rng.random((3, 4, 3)).astype(np.float32)
    pixels = coarse.repeat(scale, 0).repeat(scale, 1)
    noise = grain * rng.standard_normal(pixels.shape).astype(np.float32)
    imagefile.write(path, pixels + noise, record=record)
    return path


def record(content: Path, style: Path, method: str, **settings: Any) -> dict[str, Any]:
    """What the record of a picture says of its origin."""
    inputs = {
        name: {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in {"content": content, "style": style}.items()
    }
    return {"recipe": {"method": method, **settings}, "inputs": inputs}


def results(
    folder: Path,
    methods: tuple[str, ...] = METHODS,
    pairs: tuple[int, int] = (2, 2),
    **look: Any,
) -> Path:
    """A folder of results with records, as of a batch, their inputs beside it."""
    inputs, made = folder / "inputs", folder / "grid"
    for each in (inputs, made):
        each.mkdir(parents=True)
    contents = [picture(inputs / f"photo{n}.png", n, **look) for n in range(pairs[0])]
    styles = [picture(inputs / f"painting{n}.png", 50 + n, **look) for n in range(pairs[1])]
    for content in contents:
        for style in styles:
            for method in methods:
                name = f"{content.stem}-{style.stem}-{method}"
                seed = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
                told = record(content, style, method)
                picture(made / f"{name}.png", seed, record=told, **look)
    return made


def study(folder: Path, made: Path, **wish: Any) -> Plan:
    """A study in a folder."""
    *_, (_, plan) = making.create(folder, grid.read(made), making.Wish(**wish))
    assert plan is not None
    return plan


def votes_in(url: str, identity: str) -> list[Any]:
    from impasto.study import store

    found = store.connect(url, identity)
    try:
        return found.choices()
    finally:
        found.close()


class Client:
    """Asks an application without a server."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                return await client.request(method, path, **options)

        return asyncio.run(asked())


class Line:
    """One connection to a server that is kept open: light enough to be had by the hundred."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """The status and the body of an answer; OSError or EOFError where none comes."""
        try:
            if self.writer is None:
                opened = await asyncio.open_connection("127.0.0.1", self.port)
                self.reader, self.writer = opened
            data = b"" if body is None else json.dumps(body).encode()
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n"
            self.writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + data)
            answer = await self.reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", answer)
            assert length is not None
            return int(answer.split()[1]), await self.reader.readexactly(int(length[1]))
        except (OSError, EOFError):
            self.close()
            raise

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class Server:
    """`impasto study serve` as people run it, always on the same port."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "impasto", "study", "serve", str(folder), "--no-browser"]
        self.command = [*command, "--port", str(self.port), *options]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start it; the link that it prints."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("vote at http"), line
        return line.split()[-1]

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    server = Server(folder, *options)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.kill(signal.SIGTERM)


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL of our own, in a folder that is gone afterwards."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = shutil.which("initdb") or (str(found[-1]) if found else None)
    if initdb is None:
        pytest.skip("PostgreSQL is not installed: no initdb found")
    root = os.getuid() == 0  # PostgreSQL refuses to run as root
    if root and not shutil.which("runuser"):
        pytest.skip("PostgreSQL does not run as root, and there is no runuser")
    user = "postgres" if root else getpass.getuser()
    if user not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip(f"PostgreSQL needs a user to run as, and there is no {user}")
    before = ["runuser", "-u", user, "--"] if root else []
    place = Path(tempfile.mkdtemp(prefix="impasto-postgres-"))
    if root:
        shutil.chown(place, user)
    control, data = str(Path(initdb).with_name("pg_ctl")), str(place / "data")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def run(*command: str) -> None:
        with (place / "log").open("a") as log:
            subprocess.run([*before, *command], check=True, cwd=place, stdout=log, stderr=log)

    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place}"
    try:
        run(initdb, "-D", data, "-A", "trust", "-U", "impasto", "--no-sync")
        run(control, "-D", data, "-w", "-t", "60", "-o", options, "start")
        try:
            yield f"postgresql://impasto@127.0.0.1:{port}/postgres"
        finally:
            run(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())
