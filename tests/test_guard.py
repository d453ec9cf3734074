"""The door of the web pages: what comes in, what is refused, what a browser is told."""

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from hypothesis import given
from hypothesis import strategies as st

from impasto.types import ImpastoError
from impasto.web import guard, serving

TOKEN = "a-token-of-the-test"


def application() -> FastAPI:
    app = FastAPI()

    @app.get("/")
    def page() -> str:
        return "page"

    @app.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    return app


def ask(door: guard.Guard, method: str = "GET", path: str = "/", **options: Any) -> httpx.Response:
    """One request straight to the application; Host is localhost unless told otherwise."""

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=door)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:80") as client:
            return await client.request(method, path, **options)

    return asyncio.run(asked())


@contextmanager
def served(door: guard.Guard) -> Any:
    """The real server on a free port of loopback."""
    with serving.listen() as listening:
        server = uvicorn.Server(uvicorn.Config(door, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield serving.link(listening).rstrip("/")
        finally:
            server.should_exit = True
            thread.join()


def local(**options: Any) -> guard.Guard:
    return serving.guarded(application(), **options)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000"])
def test_this_machine_is_served_by_every_name_it_has(host: str) -> None:
    assert ask(local(), headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "10.0.0.1", "", "[::2]", "127.0.0.1.evil.example"],
)
def test_a_host_of_another_name_is_refused(host: str) -> None:
    assert ask(local(), headers={"host": host}).status_code == 421


@given(st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"]), max_size=40))
def test_no_host_gets_in_that_is_not_in_the_list(host: str) -> None:
    raw = host.encode("latin-1")
    answer = ask(local(), headers=[(b"host", raw)])
    assert (answer.status_code == 200) == (guard._hostname(host) in guard.LOCAL_NAMES)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:81", "http://["]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_pages_requests_are_refused(origin: str, method: str) -> None:
    path = "/" if method == "GET" else "/echo"
    assert ask(local(), method, path, headers={"origin": origin}).status_code == 403


def test_the_own_pages_requests_pass() -> None:
    headers = {"origin": "http://localhost:81", "host": "localhost:81"}
    assert ask(local(), "POST", "/echo", content=b"12", headers=headers).json() == 2


def test_without_its_token_a_reachable_server_tells_nothing() -> None:
    door = local(host="0.0.0.0", token=TOKEN)
    for path in ("/", "/?token=", "/?token=wrong", "/openapi.json", "/?token=" + TOKEN[:-1]):
        answer = ask(door, path=path)
        assert answer.status_code == 401
        assert "token" in answer.json()["detail"]
    assert ask(door, "POST", f"/echo?token={TOKEN}").status_code == 401  # a link, not a form
    assert ask(door, headers={"authorization": f"Basic {TOKEN}"}).status_code == 401
    assert ask(door, headers={"cookie": 'impasto-80="\\777'}).status_code == 401


def test_the_token_passes_once_in_the_link_and_then_as_a_cookie() -> None:
    door = local(host="0.0.0.0", token=TOKEN)
    answer = ask(door, path=f"/?token={TOKEN}&b=1&c=")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?b=1&c="  # gone from the address bar and the history
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    name, value = cookie.partition(";")[0].split("=")
    assert ask(door, headers={"cookie": f"a=b; {name}={value}"}).text == '"page"'
    assert ask(door, headers={"authorization": f"Bearer {TOKEN}"}).text == '"page"'


def test_the_link_never_leads_to_another_host() -> None:
    door = local(host="0.0.0.0", token=TOKEN)
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example/"):
        answer = ask(door, path=f"http://localhost:80{path}?token={TOKEN}")
        assert answer.headers["location"] == "/evil.example/"


def test_a_server_on_all_interfaces_is_reached_by_address_or_given_name_only() -> None:
    door = local(host="0.0.0.0", token=TOKEN, names=("Study.example.org",))
    bearer = {"authorization": f"Bearer {TOKEN}"}
    for host, status in {
        "192.168.1.2:80": 200,
        "study.example.org": 200,
        "other.example": 421,
    }.items():
        assert ask(door, headers={"host": host, **bearer}).status_code == status


def test_what_others_can_reach_needs_a_token() -> None:
    for options in ({"host": "0.0.0.0"}, {"host": "::"}, {"names": ("study.example.org",)}):
        with pytest.raises(ImpastoError, match="token"):
            serving.guarded(application(), **options)  # type: ignore[arg-type]
    assert TOKEN not in repr(local(token=TOKEN))


def test_every_answer_forbids_framing_sniffing_and_foreign_scripts() -> None:
    door = local()
    refused = ask(door, headers={"host": "evil.example"})
    for answer in (ask(door), ask(door, path="/nowhere"), refused):
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self';" in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"


def test_headers_of_the_page_itself_win() -> None:
    app = FastAPI()

    @app.get("/")
    def page() -> PlainTextResponse:
        return PlainTextResponse("kept", headers={"Cache-Control": "max-age=60"})

    assert ask(serving.guarded(app)).headers.get_list("cache-control") == ["max-age=60"]


@given(st.integers(0, 300), st.integers(0, 100), st.booleans())
def test_a_body_passes_exactly_up_to_the_limit(limit: int, size: int, chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, size, 7):
            yield bytes(min(7, size - start))

    content: Any = chunks() if chunked else bytes(size)
    answer = ask(local(max_bytes=limit), "POST", "/echo", content=content)
    assert answer.status_code == (200 if size <= limit else 413)


def test_a_body_too_large_is_refused_before_it_is_read() -> None:
    """The answer comes although not one byte of the announced body was sent."""
    with served(local(max_bytes=1000)) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(
                b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_an_endless_body_is_cut_off() -> None:
    """Chunks without a length: the server hangs up, so the sender cannot go on."""
    with served(local(max_bytes=100_000)) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(
                b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            chunk = b"2710\r\n" + bytes(10_000) + b"\r\n"
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                connection.sendall(chunk * 10_000)


def websocket(door: guard.Guard, headers: dict[str, str]) -> str:
    """The first message that the server sends to a web socket."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "websocket", "headers": pairs, "path": "/", "server": ("localhost", 80)}
    asyncio.run(door(scope, receive, send))
    return str(sent[0]["type"])


def test_a_web_socket_passes_the_same_door() -> None:
    async def accepting(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})

    door = guard.Guard(app=accepting)
    own = {"host": "localhost:80", "origin": "http://localhost:80"}
    assert websocket(door, own) == "websocket.accept"
    for change in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
        assert websocket(door, own | change) == "websocket.close"
    assert websocket(door, {"host": "localhost:80"}) == "websocket.close"
    assert websocket(guard.Guard(app=accepting, token=TOKEN), own) == "websocket.close"


def test_by_default_a_socket_is_local() -> None:
    with serving.listen() as listening:
        host, port = listening.getsockname()
        assert serving.is_local(host)
        assert serving.link(listening) == f"http://127.0.0.1:{port}/"
        with pytest.raises(ImpastoError, match="--port"):
            serving.listen(port=port)
    for place in ("256.1.1.1", "no.such.host.invalid"):
        with pytest.raises(ImpastoError, match=place):
            serving.listen(place)
    with pytest.raises(ImpastoError, match="70000"):
        serving.listen(port=70_000)


def test_answers_are_not_held_back_by_the_kernel() -> None:
    """What asyncio asks of a socket before it sends small packets at once (TCP_NODELAY)."""
    with serving.listen() as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP


def test_tokens_are_long_and_never_twice(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(50)]
    for folder in folders:
        folder.mkdir()
    tokens = {serving.token_of(folder) for folder in folders}
    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 22  # 128 bits and more, six to a letter


SERVER = """
import asyncio
from impasto.web import serving

async def slow(scope, receive, send):
    if scope["type"] == "http":
        await asyncio.sleep(1)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})

with serving.listen() as listening:
    print(serving.link(listening), flush=True)
    serving.serve(serving.guarded(slow), listening)
print("ended", flush=True)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_the_server_waits_for_answers_under_way(end: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    threading.Timer(0.5, process.send_signal, (end,)).start()
    assert httpx.get(url, timeout=20).text == "whole"
    out, err = process.communicate(timeout=20)
    assert err == ""
    if end is signal.SIGINT:
        assert (out, process.returncode) == ("ended\n", 0)
