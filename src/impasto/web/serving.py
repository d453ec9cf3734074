"""A server on this machine: its socket, its link, its token, its end."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import socket
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import uvicorn

from impasto.types import ImpastoError
from impasto.web.guard import LOCAL_NAMES, MAX_BYTES, Application, Guard

LOCAL = "127.0.0.1"
BACKLOG = 2048  # connections that wait to be taken
LAST_SECONDS = 3  # for requests under way when the server is told to end


def is_local(host: str) -> bool:
    """Whether nobody but this machine can reach a server bound to this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_of(folder: Path) -> str:
    """A word that nobody guesses, made once, so that links stay good; for its owner only."""
    path = folder / "token"
    try:
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(18))
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise ImpastoError(f"the token in {path} cannot be read or written: {problem}") from None
    if (
        len(token) < 16
        or not token.isascii()
        or not token.isprintable()
        or set(token) & set(' ";,')
    ):
        raise ImpastoError(f"{path} is not a token; delete it and a new one is made")
    return token


def listen(host: str = LOCAL, port: int = 0) -> socket.socket:
    """A socket that takes connections from now on; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not 0 <= port <= 65_535:
        raise ImpastoError(f"port {port} does not exist; choose one up to 65535, or 0 for any free")
    # Said to be TCP, or asyncio would not switch off the delay of small packets: 40 ms an answer.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # a server that ended a moment ago does not hold its port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as problem:
        listening.close()
        reason = problem.strerror or problem
        raise ImpastoError(
            f"cannot listen on {host} port {port}: {reason}; choose another --port, 0 is any free"
        ) from None
    return listening


def link(listening: socket.socket, token: str = "") -> str:
    """The address of the page for a browser, with the token where one is asked for."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:  # all interfaces: the name others know
        host = socket.gethostname()
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{port}/" + (f"?token={token}" if token else "")


def guarded(
    app: Application,
    *,
    host: str = LOCAL,
    names: tuple[str, ...] = (),
    token: str = "",
    max_bytes: int = MAX_BYTES,
    larger: Mapping[str, int] | None = None,
) -> Guard:
    """The application behind its door; names are further ones that this server is known by."""
    local = is_local(host)
    if not token and (names or not local):
        raise ImpastoError("a server that others can reach needs a token")
    own = frozenset() if local else frozenset({host.lower(), socket.gethostname().lower()})
    known = LOCAL_NAMES | own | frozenset(name.lower() for name in names)
    return Guard(
        app=app,
        names=known,
        addresses=not local,
        token=token,
        max_bytes=max_bytes,
        larger=larger or {},
    )


class _Server(uvicorn.Server):
    """A server that says when it was told to end."""

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self.ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.ending()
        super().handle_exit(sig, frame)


def serve(
    app: Application,
    listening: socket.socket,
    *,
    browser: str = "",
    ending: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until Ctrl-C or SIGTERM; those under way are finished first.

    The socket listens already, so the browser may be sent to its link before the first answer.
    ``ending`` is called by the signal: answers that never end by themselves can end then.
    """
    with listening, contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
        if browser:
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(browser)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nobody may say for others where they come from
            timeout_graceful_shutdown=LAST_SECONDS,
        )
        _Server(config, ending).run(sockets=[listening])
