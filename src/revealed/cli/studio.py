"""`revealed studio`: the web studio, served from this machine."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from revealed.cli._model import choose_noise
from revealed.cli._shared import Json, print_json, print_message

TOKEN_VARIABLE = "REVEALED_TOKEN"
"""The environment variable that holds the token of study administration."""
DEFAULT_PORT = 8000
"""The port of the studio; `revealed doctor` looks whether it is free."""


def studio(
    host: Annotated[
        str,
        typer.Option(help="Where to listen; other machines reach only what is not the loopback."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)
    ] = DEFAULT_PORT,
    database: Annotated[
        str, typer.Option(help="A file for SQLite, or postgresql://user@host/name.")
    ] = "revealed-studio.db",
    token: Annotated[
        str | None,
        typer.Option(
            help=f"What administering studies needs; default: {TOKEN_VARIABLE}, or a new one.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name that a proxy before the studio is called by; may be given often.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Requests a second that one address may make.")
    ] = 100.0,
    games: Annotated[float, typer.Option(help="Games a minute that one address may begin.")] = 60.0,
    learners: Annotated[int, typer.Option(help="Games whose posterior is kept in memory.")] = 32,
    particles: Annotated[int, typer.Option(help="Particles of each posterior.")] = 1000,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Of the players who are learnt: normal or logit; default: normal, and logit with "
            "--lapse.",
            show_default=False,
        ),
    ] = None,
    lapse: Annotated[
        str | None,
        typer.Option(
            metavar="[uniform]",
            help="Learn also how often a player moves blindly, and show which moves those were.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Play Tetris in a browser, be learnt as you play, meet your understudy, and run studies.

    Every accepted move is on disk before it is answered. Ctrl-C stops the studio; the games go on
    where they were.

    Example: `revealed studio --port 8000 --database games.db`
    """
    # Limits below these would lock everybody out, or learn nothing.
    minimums = (
        ("--rate", rate, 1),
        ("--games", games, 1),
        ("--learners", learners, 1),
        ("--particles", particles, 100),
    )
    for option, number, lowest in minimums:
        if not number >= lowest:
            raise ValueError(f"{option} must be at least {lowest}; it is {number:g}")
    players = _choose_noise(noise, lapse)
    # A token that could be guessed is refused.
    secret = token if token is not None else os.environ.get(TOKEN_VARIABLE)
    if secret is not None and (
        len(secret) < 16 or not secret.isascii() or not secret.isprintable()
    ):
        raise ValueError(
            "the token must have at least 16 letters or digits, or it could be guessed"
        )
    # The studio is an extra: without its packages, say how to install them.
    try:
        import uvicorn

        from revealed.studio.server.app import create_app
        from revealed.studio.server.settings import LOOPBACK_NAMES, Settings, new_token
    except ImportError as missing:
        raise ValueError(
            f"the studio needs {missing.name or 'more'}, which is not installed; "
            'pip install "revealed[studio]"'
        ) from None
    local = host in ("127.0.0.1", "::1", "localhost")
    # Names that a request may be addressed to; without a list, any of a machine that others reach.
    hosts = (
        (*LOOPBACK_NAMES, *(allow_host or ()))
        if local
        else tuple(allow_host)
        if allow_host
        else None
    )
    secret = secret or new_token()
    # Listen before the database is opened, so that a port that is taken is said first.
    server_socket = _listen(host, port)
    # A database that cannot be opened must not leave the port taken.
    try:
        app = create_app(
            Settings(
                database,
                secret,
                hosts,
                rate,
                games,
                learners=learners,
                particles=particles,
                noise=players,
            )
        )
    except ValueError:
        server_socket.close()
        raise
    # port 0 asked for any: say which it became
    address = f"http://{f'[{host}]' if ':' in host else host}:{server_socket.getsockname()[1]}"
    if json:
        print_json({"address": address, "token": secret, "database": app.name})
    else:
        print(f"Studio: {address}   (Ctrl-C stops it)")
        print(f"Token for studies: {secret}")
        print(f"Games are kept in {app.name}.")
        if not local:
            print_message(
                "note: other machines can reach this address; without a proxy that speaks https, "
                "tokens travel in the clear"
            )
    # whoever reads the address from a pipe needs it now
    sys.stdout.flush()
    # Threads that learn give way to those that answer players after a millisecond; Python's five
    # would be felt at every move.
    sys.setswitchinterval(0.001)
    # No headers that tell strangers what runs here; slow clients are cut off, and a stop waits for
    # answers under way.
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        limit_concurrency=2000,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    # Ctrl-C is how a studio is meant to end.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[server_socket])
    if not json:
        print(f"Stopped. The games are in {app.name}, and go on when the studio is started again.")


def _choose_noise(noise: str | None, lapse: str | None) -> Any:
    """The noise of players; placements have no labels, so that lapses have no habits."""
    if noise not in (None, "normal", "logit"):
        raise ValueError(f"--noise must be normal or logit; it is {noise!r}")
    if lapse not in (None, "uniform"):
        raise ValueError("placements have no labels and so no habits; give --lapse alone")
    # a player would wait: particles with lapses take ten times as long to move under normal noise
    if lapse is not None and noise == "normal":
        raise ValueError(
            "with --lapse and normal noise a posterior may take a minute; give --noise logit"
        )
    return choose_noise(noise or ("normal" if lapse is None else "logit"), None, lapse)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address.

    Where that cannot be, an error says why, and which option changes it.
    """
    # Closed again where binding fails.
    server_socket = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        # asyncio sends answers without delay only where the protocol is named
        server_socket = socket.socket(family, kind, protocol)
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server_socket.bind(address)
        # requests that come before the studio is ready wait
        server_socket.listen(2048)
    except OSError as reason:
        if server_socket is not None:
            server_socket.close()
        raise ValueError(
            f"cannot listen on {host}, port {port}: {reason.strerror or reason}; "
            "choose another with --port"
        ) from None
    return server_socket
