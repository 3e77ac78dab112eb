"""The outermost layer: which requests are let in, and the headers that every answer carries.

A request is refused where it is meant for another host, comes from another site's page, is too
large, too slow, or one too many. The body is read whole before the application sees it, so nothing
inside waits for a slow sender.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from revealed.studio.server.errors import RequestError
from revealed.studio.server.rate_limit import RateLimit
from revealed.studio.server.settings import Settings

log = logging.getLogger("revealed.studio")

INTERNAL_ERROR = (
    "this is a mistake in the studio, not in what you did; the board is as it was, load it again"
)


@dataclass(frozen=True)
class BodyLimits:
    """What a request's body may be.

    The largest sound body, a study with twelve conditions, has about 3 kB; a larger bound costs
    memory for each open connection. A phone on a bad line sends a move within seconds; a longer
    time lets idle senders hold connections.
    """

    max_bytes: int
    max_seconds: float


BODY_LIMITS = BodyLimits(max_bytes=64 * 1024, max_seconds=15.0)


def _security_headers() -> list[tuple[bytes, bytes]]:
    """The headers of every answer, as ASGI takes them.

    The content security policy lets the page load from its own server alone: no script, style or
    connection from elsewhere, no frames, and no script inside the HTML.
    """
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "manifest-src": "'self'",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    joined = "; ".join(f"{directive} {sources}" for directive, sources in policy.items())
    return [
        (b"content-security-policy", joined.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]


SECURITY_HEADERS = _security_headers()


class RequestMiddleware:
    """The ASGI application that is served: checks a request, then hands it to the studio's own.

    `name` is the database as it may be shown to a person, without a password.
    """

    def __init__(self, app: ASGIApp, settings: Settings, name: str) -> None:
        self.app, self.name = app, name
        # Names of hosts are compared in small letters.
        self._hosts = None if settings.hosts is None else {host.lower() for host in settings.hosts}
        self._limit = RateLimit(settings.rate, 4.0 * settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here with a refusal.

        What goes wrong inside is logged and answered with one sentence; no traceback ever reaches
        a browser. Websockets are closed at once, as the studio has none.
        """
        # Lifespan messages pass; there is nothing to check in them.
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
                return
            await self.app(scope, receive, send)
            return
        # Answers of the API hold private games: no cache keeps them. Static files are validated.
        cache_control = b"no-store" if scope["path"].startswith("/api") else b"no-cache"
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                headers = message["headers"] = [*message.get("headers", []), *SECURITY_HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", cache_control))
            await send(message)

        try:
            self._check_origin(scope)
            body = await _read_body(scope, receive)
            # The application sees a request whose body has already arrived.
            await self.app(scope, _replay_body(body, receive), send_with_headers)
        except RequestError as refusal:
            await _send_json(send_with_headers, refusal.status, refusal.payload)
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            # Once the status is sent, nothing else can be said: the connection just ends.
            if not has_started:
                await _send_json(send_with_headers, 500, {"error": INTERNAL_ERROR})

    def _check_origin(self, scope: Scope) -> None:
        """Refuse requests that are too many, for another host, or from another site's page."""
        # Cheap checks come first: a flood is refused before anything is parsed.
        client = scope.get("client")
        if not self._limit.allows(client[0] if client else ""):
            raise RequestError(429, "there are too many requests from your address; wait a second")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        # A foreign name that resolves to the loopback (DNS rebinding) carries its own Host.
        host = headers.get(b"host", "")
        if self._hosts is not None and _host_name(host) not in self._hosts:
            raise RequestError(
                400,
                "the studio is not known under this name; "
                "use the address that it printed when it started",
            )
        # Browsers add Origin to whatever another site's page posts.
        origin = headers.get(b"origin")
        if (
            origin is not None
            and scope["method"] != "GET"
            and urlsplit(origin).netloc.lower() != host.lower()
        ):
            raise RequestError(403, "this request comes from another site's page")


def _host_name(host: str) -> str:
    """The host's name without its port; empty where it cannot be read.

    Square brackets of IPv6 addresses are removed.
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body of a request; RequestError where it is too large, cut short, or too slow.

    An announced length is believed where it is too large, and counted where it is not: a chunked
    body announces nothing.
    """
    too_large = f"the request is larger than {BODY_LIMITS.max_bytes // 1024} kB"
    # A length that is announced is refused before a byte is read.
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > BODY_LIMITS.max_bytes:
            raise RequestError(413, too_large)
    # What arrives is counted, whatever was announced.
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_LIMITS.max_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestError(400, "the request was cut short")
                part = message.get("body", b"")
                size += len(part)
                if size > BODY_LIMITS.max_bytes:
                    raise RequestError(413, too_large)
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RequestError(400, "the request took too long to arrive") from None


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body as one message, and after that whatever comes."""
    is_given = False

    async def read() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


async def _send_json(send: Send, status: int, payload: dict[str, Any]) -> None:
    """Answer with a JSON object.

    After a body that was refused unread the connection is closed, because the rest of it would be
    taken for the next request.
    """
    # Written by hand, because this layer is outside the framework.
    body = json.dumps(payload).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 413 or status == 400:
        headers.append((b"connection", b"close"))
    if status == 429 or status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
