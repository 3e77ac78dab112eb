"""What every request passes: is it for us, is it small enough, are there too many; and what every answer carries.

The body is read whole before anything looks at it, so nothing behind the gate waits for a slow sender.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from understudy.studio.faults import Refusal
from understudy.studio.limits import Limit
from understudy.studio.settings import Settings

log = logging.getLogger("understudy.studio")

LARGEST = 64 * 1024
SLOWEST = 15.0  # seconds for a body to arrive
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
OUR_MISTAKE = "this is a mistake in the studio, not in what you did; the board is as it was, load it again"


class Gate:
    """The outermost layer of the studio."""

    def __init__(self, app: ASGIApp, settings: Settings, name: str) -> None:
        self.app, self.name = app, name  # the name of the database, to be told
        self._hosts = None if settings.hosts is None else {host.lower() for host in settings.hosts}
        self._limit = Limit(settings.rate, 4.0 * settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
                return
            await self.app(scope, receive, send)
            return
        kept = b"no-store" if scope["path"].startswith("/api") else b"no-cache"
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = message["headers"] = [*message.get("headers", []), *HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", kept))
            await send(message)

        try:
            self._refuse_stranger(scope)
            body = await _body(scope, receive)
            await self.app(scope, _again(body, receive), answer)
        except Refusal as refused:
            await _refuse(answer, refused.status, refused.answer)
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            if not begun:
                await _refuse(answer, 500, {"error": OUR_MISTAKE})

    def _refuse_stranger(self, scope: Scope) -> None:
        client = scope.get("client")
        if not self._limit.allows(client[0] if client else ""):
            raise Refusal(429, "there are too many requests from your address; wait a second")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if self._hosts is not None and _name(host) not in self._hosts:
            raise Refusal(
                400, "the studio is not known under this name; use the address that it printed when it started"
            )
        origin = headers.get(b"origin")
        if origin is not None and scope["method"] != "GET" and urlsplit(origin).netloc.lower() != host.lower():
            raise Refusal(403, "this request comes from another site's page")


def _name(host: str) -> str:
    """The host's name without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


async def _body(scope: Scope, receive: Receive) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > LARGEST:
            raise Refusal(413, f"the request is larger than {LARGEST // 1024} kB")
    parts, size = [], 0
    try:
        async with asyncio.timeout(SLOWEST):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "the request was cut short")
                part = message.get("body", b"")
                size += len(part)
                if size > LARGEST:
                    raise Refusal(413, f"the request is larger than {LARGEST // 1024} kB")
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refusal(400, "the request took too long to arrive") from None


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, as one message; after that, whatever comes."""
    given = False

    async def read() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


async def _refuse(send: Send, status: int, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 413 or status == 400:
        headers.append((b"connection", b"close"))
    if status == 429 or status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
