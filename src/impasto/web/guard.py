"""The door of every page: who may ask, how much they may send, what a browser may do with it."""

from __future__ import annotations

import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

Message: TypeAlias = "MutableMapping[str, Any]"
Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[Message]]"
Send: TypeAlias = "Callable[[Message], Awaitable[None]]"
Application: TypeAlias = "Callable[[Scope, Receive, Send], Awaitable[None]]"

MAX_BYTES = 1 << 20  # of the body of a request, where the page asks for no more
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
COOKIE_SECONDS = 30 * 24 * 3600
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: dict[str, str] = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not no-referrer, under which a form of our own would be sent with the origin 'null'.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",  # what may be kept says so itself
}


class Refusal(NamedTuple):
    """Why a request goes no further."""

    status: int
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Guard:
    """An ASGI application behind its door.

    The Host must be one of ours, or a page elsewhere could reach this machine by a name of its
    own (DNS rebinding); a request that tells its Origin must come from this very host; where there
    is a token it comes in the link, once, and then as a cookie, or in the header Authorization;
    no more bytes are taken than allowed.
    """

    app: Application
    names: frozenset[str] = LOCAL_NAMES
    addresses: bool = False  # any IP address is a Host of ours: for a server on all interfaces
    token: str = field(default="", repr=False)  # empty: none is asked for
    max_bytes: int = MAX_BYTES
    larger: Mapping[str, int] = field(default_factory=dict)  # by path, where more is taken

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it here."""
        if scope["type"] not in ("http", "websocket"):  # the start and the end of the server
            return await self.app(scope, receive, send)
        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if scope["type"] == "websocket":
            if refusal or not self._admitted(scope, headers):
                return await send({"type": "websocket.close", "code": 1008})
            return await self.app(scope, receive, send)
        send = _protected(send)
        if refusal:
            return await _refuse(send, headers, refusal)
        if self.token and not self._admitted(scope, headers):
            return await self._welcome(scope, headers, send)
        limit = _Limit(receive=receive, send=send, left=self._most(scope))
        return await limit.run(self.app, scope)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Refusal | None:
        host = headers.get("host", "")
        if not self._is_ours(_hostname(host)):
            return Refusal(421, f"this server is not called {host[:80]!r}; use the link it printed")
        origin = headers.get("origin")
        if origin is not None and urlsplit_host(origin) != host.lower():
            return Refusal(403, "another page may not ask this server; open the server's own page")
        if not origin and scope["type"] == "websocket":
            return Refusal(403, "a web socket must tell its origin")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most(scope):
            return Refusal(413, _too_large(self._most(scope)))
        return None

    def _most(self, scope: Scope) -> int:
        return self.larger.get(scope["path"], self.max_bytes)

    def _is_ours(self, name: str) -> bool:
        return name in self.names or (self.addresses and _is_address(name))

    def _admitted(self, scope: Scope, headers: dict[str, str]) -> bool:
        scheme, _, word = headers.get("authorization", "").partition(" ")
        shown = [word.strip()] if scheme.lower() == "bearer" else []
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
        except CookieError:
            morsel = None
        shown += [morsel.value] if morsel else []
        return not self.token or any(self._is_token(each) for each in shown)

    def _is_token(self, word: str) -> bool:
        return hmac.compare_digest(word.encode("utf-8", "replace"), self.token.encode())

    async def _welcome(self, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Exchange the token of the link for a cookie, on the way to the link without it."""
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token", "")
        if scope["method"] not in ("GET", "HEAD") or not self._is_token(given):
            sentence = "this server wants its token; use the whole link it printed"
            await _refuse(send, headers, Refusal(401, sentence))
            return
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope.get("raw_path", b"/").decode("latin-1").split("?")[0].lstrip("/\\")
        cookie = f"{_cookie_name(scope)}={self.token}; Path=/; HttpOnly; SameSite=Lax"
        await _answer(
            send,
            303,
            b"",
            {
                "location": path + (f"?{rest}" if rest else ""),
                "set-cookie": f"{cookie}; Max-Age={COOKIE_SECONDS}",
            },
        )


@dataclass(kw_only=True)
class _Limit:
    """A request whose body ends where the limit is, whatever its headers promised."""

    receive: Receive
    send: Send
    left: int
    started: bool = False
    over: bool = False

    async def run(self, app: Application, scope: Scope) -> None:
        limit = self.left
        try:
            await app(scope, self._receive, self._send)
        except Exception:
            if not self.over:
                raise
        if self.over and not self.started:
            refusal = Refusal(413, _too_large(limit))
            await _refuse(self.send, _headers(scope), refusal)

    async def _receive(self) -> Message:
        if self.over:
            return {"type": "http.disconnect"}
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            self.over = True
            return {"type": "http.disconnect"}  # for the application the rest never comes
        return message

    async def _send(self, message: Message) -> None:
        if self.over and not self.started:
            return  # what it says of a body that was cut; the answer is ours
        self.started = True
        await self.send(message)


def urlsplit_host(origin: str) -> str:
    """The host and port of an origin in lower case; empty for 'null' and what is no URL."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _headers(scope: Scope) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def _hostname(host: str) -> str:
    """The name in a Host header, without its port and the brackets of IPv6."""
    name, bracket, _ = host.strip().lower().partition("]")
    return name.removeprefix("[") if bracket else name.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookie_name(scope: Scope) -> str:
    """A name of its own for every server: cookies know hosts but not ports."""
    return f"impasto-{(scope.get('server') or ('', 0))[1]}"


def _too_large(limit: int) -> str:
    return f"that is more than the {limit / 1e6:.1f} MB that may be sent; make it smaller"


def _protected(send: Send) -> Send:
    """The same with our headers on every response, where it has none of its own."""

    async def protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", ())}
            ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            own = [pair for pair in ours if pair[0] not in present]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await send(message)

    return protected


async def _refuse(send: Send, headers: dict[str, str], refusal: Refusal) -> None:
    """A sentence: plain for people, JSON for programs, and the end of the connection."""
    if "text/html" in headers.get("accept", ""):
        kind, body = "text/plain; charset=utf-8", refusal.sentence
    else:
        kind, body = "application/json", json.dumps({"detail": refusal.sentence})
    await _answer(
        send, refusal.status, body.encode(), {"content-type": kind, "connection": "close"}
    )


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    headers = {**headers, "content-length": str(len(body))}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
