"""`understudy studio`: the studio, served from this machine."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import Annotated

import typer

from understudy.cli.shell import Json, answer, say

TOKEN = "UNDERSTUDY_TOKEN"
PORT = 8000
LOCAL = ("127.0.0.1", "::1", "localhost")


def studio(
    host: Annotated[
        str, typer.Option(help="Where to listen; other machines reach only what is not the loopback.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = PORT,
    database: Annotated[
        str, typer.Option(help="A file for SQLite, or postgresql://user@host/name.")
    ] = "understudy-studio.db",
    token: Annotated[
        str | None,
        typer.Option(
            help=f"What study administration needs; a new one unless said, here or in {TOKEN}.", show_default=False
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name that a proxy before the studio is called by; may be given often.", show_default=False
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second that one address may make.")] = 100.0,
    games: Annotated[float, typer.Option(help="Games a minute that one address may begin.")] = 60.0,
    learners: Annotated[int, typer.Option(help="Games whose posterior is kept in memory.")] = 32,
    particles: Annotated[int, typer.Option(help="Particles of each posterior.")] = 1000,
    json: Json = False,
) -> None:
    """Play Tetris in a browser, be learnt as you play, watch your understudy take the stage, and run studies.

    Every accepted move is on disk before it is answered. Ctrl-C stops the studio; the games go on where they were.

    Example: `understudy studio --port 8000 --database games.db`
    """
    least = (("--rate", rate, 1), ("--games", games, 1), ("--learners", learners, 1), ("--particles", particles, 100))
    for option, number, lowest in least:
        if not number >= lowest:
            raise ValueError(f"{option} must be at least {lowest}; it is {number:g}")
    secret = token if token is not None else os.environ.get(TOKEN)
    if secret is not None and (len(secret) < 16 or not secret.isascii() or not secret.isprintable()):
        raise ValueError("the token must have at least 16 letters or digits, or it could be guessed")
    try:
        import uvicorn

        from understudy.studio.app import create_app
        from understudy.studio.settings import LOOPBACK, Settings, new_token
    except ImportError as missing:
        raise ValueError(
            f'the studio needs {missing.name or "more"}, which is not installed; pip install "understudy[studio]"'
        ) from None
    local = host in LOCAL
    hosts = (*LOOPBACK, *(allow_host or ())) if local else tuple(allow_host) if allow_host else None
    secret = secret or new_token()
    listening = _listen(host, port)
    try:
        app = create_app(Settings(database, secret, hosts, rate, games, learners=learners, particles=particles))
    except ValueError:
        listening.close()
        raise
    place = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    if json:
        answer({"address": place, "token": secret, "database": app.name})
    else:
        print(f"Studio: {place}   (Ctrl-C stops it)")
        print(f"Token for studies: {secret}")
        print(f"Games are kept in {app.name}.")
        if not local:
            say(
                "note: other machines can reach this address; without a proxy that speaks https, tokens travel in the clear"
            )
    sys.stdout.flush()
    sys.setswitchinterval(0.001)  # seconds: who learns lets who plays through
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, lifespan="on",
        limit_concurrency=2000, timeout_keep_alive=30, timeout_graceful_shutdown=10,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):  # this is how a studio is meant to end
        uvicorn.Server(config).run(sockets=[listening])
    if not json:
        print(f"Stopped. The games are in {app.name}, and go on when the studio is started again.")


def _listen(host: str, port: int) -> socket.socket:
    """A socket on this address, or a sentence on why there is none."""
    listening = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(
            family, kind, protocol
        )  # only where TCP is named does asyncio send answers without delay
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)  # who comes before the studio is ready waits
    except OSError as reason:
        if listening is not None:
            listening.close()
        raise ValueError(
            f"cannot listen on {host}, port {port}: {reason.strerror or reason}; choose another with --port"
        ) from None
    return listening
