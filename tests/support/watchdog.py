"""A fit in a process of its own that is sent SIGINT, and has to end by itself.

    python -m tests.support.watchdog CASE PHASE SIZE FOLDER

A compiled loop that does not look up would hang a test for ever, and with it the suite; so the loop
runs in a child, which is killed where it does not end. The child says on stdout when it is about to
enter the loops of a phase, and at the end how it ended. Of a small problem its chunks never end by
themselves: a loop that cannot be interrupted is seen, however quick the machine. Of a large one
(20,000 decisions of 10 rows and 10 features, or what comes near it) they are as users have them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import revealed as rv
from revealed.samplers import run as running
from revealed.samplers.laplace import Laplace
from tests.support.cases import choose, mdp_offers
from tests.support.kill_and_resume import (
    CORRELATED,
    NORMAL,
    features,
    games,
    labelled,
    labelled_people,
    people,
    states,
    trajectories,
)

ROOT = Path(__file__).parents[2]
# Seconds that a child may take to get to its phase, in which it may have to compile, and then to end
# after the signal: far more than any needs, and far less than the loops of a small problem take.
START_LIMIT, LIMIT = 900, 120
# Iterations of a warm-up, draws, and iterations for each of these, that no loop comes to the end of
# within the limit. The first draws must come soon.
ENDLESS = {"warmup": 5 * 10**7, "draws": 10**5, "thin": 1000}
# The same of samplers without chains of draws.
MANY_DRAWS = 200_000
CHAINS = 2


class Case(NamedTuple):
    """A sampler of the registry, with a model and data for it: small, and large."""

    sampler: str
    model: rv.ChoiceModel | rv.RankingModel
    small: Callable[[], Any]
    large: Callable[[], Any]


def offers(count: int, rows: int, width: int) -> tuple[Any, Any, Any]:
    """Rows, starts and choices of a controller, with normal features."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((count * rows, width))
    utility = x @ rng.standard_normal(width) + rng.standard_normal(count * rows)
    return x, np.arange(0, count * rows + 1, rows), utility.reshape(count, rows).argmax(1)


def many() -> rv.Decisions:
    return rv.Decisions(*offers(20_000, 10, 10))


def many_states() -> rv.Decisions:
    """Of a controller in an MDP, whose rows add up to one."""
    given = mdp_offers(10, 10, 20_000, seed=3)
    return given.with_choices(choose(np.random.default_rng(1), given, np.arange(10.0))[0])


def many_labelled(groups: int | None = None) -> rv.Decisions:
    """Four labels, as the noise of each is inferred: 20,000 decisions of 4 rows, 10 features."""
    x, start, chosen = offers(20_000, 4, 10)
    whose = None if groups is None else np.arange(20_000) % groups
    return rv.Decisions(x, start, chosen, actions=np.tile(list("abcd"), 20_000), groups=whose)


def many_people() -> rv.Decisions:
    return rv.Decisions(*offers(20_000, 10, 10), groups=np.arange(20_000) % 100)


def many_trajectories() -> rv.Trajectories:
    mdp = rv.random_mdp(np.random.default_rng(4), 40, 5)
    value = np.random.default_rng(6).standard_normal(40)
    seen = mdp.simulate(np.random.default_rng(5), value, 20_000)
    return rv.Trajectories(seen, 40, 5)


def dated() -> rv.Decisions:
    """Sixty decisions, one after the other."""
    return rv.Decisions(*offers(60, 3, 2), times=range(60))


def many_dated() -> rv.Decisions:
    """As many as other samplers have, each at a time of its own."""
    return rv.Decisions(*offers(20_000, 10, 10), times=range(20_000))


def dated_people() -> rv.Decisions:
    """The same, of three people who take turns."""
    return rv.Decisions(*offers(60, 3, 2), times=range(60), groups=np.arange(60) % 3)


def many_dated_people() -> rv.Decisions:
    """As many as others have, of a hundred people."""
    return rv.Decisions(
        *offers(20_000, 10, 10), times=range(20_000), groups=np.arange(20_000) % 100
    )


def many_games() -> rv.Rankings:
    rng = np.random.default_rng(3)
    names = [f"player {k}" for k in range(200)]
    return rv.Rankings.from_lists(
        [[names[k] for k in rng.permutation(200)[:6]] for _ in range(5000)]
    )


def dated_games() -> rv.Rankings:
    """The same games, one after the other."""
    return replace(games(), times=np.arange(float(len(games()))))


def many_dated_games() -> rv.Rankings:
    """As many as skills that do not change have, each at a time of its own."""
    return replace(many_games(), times=np.arange(float(len(many_games()))))


POPULATION = rv.ChoiceModel(groups=rv.Hierarchical())
CASES = {
    "composite": Case("composite", NORMAL, features, many),
    "da": Case("da", NORMAL, features, many),
    "px-scale": Case("px-scale", NORMAL, features, many),
    "px-translate": Case("px-translate", NORMAL, states, many_states),
    "px-both": Case("px-both", NORMAL, states, many_states),
    "ibis": Case("ibis", NORMAL, lambda: features(25), many),
    "laplace": Case("laplace", NORMAL, lambda: features(600), many),
    "ghk-hmc": Case("ghk-hmc", CORRELATED, labelled, many_labelled),
    "da with a noise covariance": Case("da", CORRELATED, labelled, many_labelled),
    "hierarchical": Case(
        "hierarchical", POPULATION, lambda: people("ann", "bob", "cid"), many_people
    ),
    "hierarchical-hmc": Case(
        "hierarchical-hmc", POPULATION, lambda: people("ann", "bob", "cid"), many_people
    ),
    "hierarchical-gibbs": Case(
        "hierarchical-gibbs",
        CORRELATED.replace(groups=rv.Hierarchical()),
        labelled_people,
        lambda: many_labelled(100),
    ),
    "transitions-hmc": Case(
        "transitions-hmc",
        NORMAL.replace(transitions=rv.Dirichlet()),
        trajectories,
        many_trajectories,
    ),
    "state-space": Case(
        "state-space", NORMAL.replace(over_time=rv.RandomWalk()), dated, many_dated
    ),
    "hierarchical-state-space": Case(
        "hierarchical-state-space",
        POPULATION.replace(over_time=rv.RandomWalk()),
        dated_people,
        many_dated_people,
    ),
    "da with paths": Case("da", NORMAL.replace(over_time=rv.RandomWalk()), dated, many_dated),
    "hidden-markov": Case(
        "hidden-markov", NORMAL.replace(over_time=rv.Switching()), dated, many_dated
    ),
    "skill-paths": Case(
        "skill-paths", rv.RankingModel(over_time=rv.RandomWalk()), dated_games, many_dated_games
    ),
    "ranking-hmc": Case("ranking-hmc", rv.RankingModel(), games, many_games),
}


class Ending(NamedTuple):
    """How a child ended, in its own words, and how many seconds after the signal."""

    words: str
    seconds: float


def interrupt_fit(case: str, phase: str, folder: Path, size: str = "small") -> Ending:
    """Send SIGINT to a fit as it enters the loops of a phase, "warm-up" or "draws"."""
    command = [sys.executable, "-m", "tests.support.watchdog", case, phase, size, str(folder)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    # the limit ends a child that never gets to its phase, too: it closes what is read from
    before = signal.signal(signal.SIGALRM, lambda *_: child.kill())
    signal.alarm(START_LIMIT)
    try:
        line = child.stdout.readline().strip()
        if line != phase:
            pytest.fail(f"{case}: the fit ended before its {phase}: {line!r}")
        signal.alarm(LIMIT)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        words = child.stdout.read().strip()
        child.wait()
        seconds = time.monotonic() - sent
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        child.kill()
        child.wait()
        child.stdout.close()
    if child.returncode != 0:
        pytest.fail(f"{case}: not interrupted in its {phase}, and killed or failed: {words!r}")
    return Ending(words, seconds)


# The child


def say(words: str) -> None:
    print(words, flush=True)


def announce(phase: str, endless: bool) -> None:
    """Have runs say when they enter the loops of a phase; these end only by Ctrl-C if endless."""
    advance, iterate = running.Chain.advance, Laplace.iterate
    said: list[str] = []
    drawing: set[int] = set()

    def told(chain: running.Chain, warmup: int, draws: int, thin: int) -> None:
        # draws can be returned when every chain has one
        if chain.draws_done > 0:
            drawing.add(id(chain))
        in_phase = phase == "warm-up" or len(drawing) == CHAINS
        if in_phase and endless:
            chain.seconds_per_iteration = 1e-12
        if in_phase and not said:
            said.append(phase)
            say(phase)
        advance(chain, warmup, draws, thin)

    def told_of_passes(laplace: Laplace) -> Iterator[float]:
        say(phase)
        yield from iterate(laplace)

    patch = pytest.MonkeyPatch()
    patch.setattr(running.Chain, "advance", told)
    patch.setattr(Laplace, "iterate", told_of_passes)


def main(case: str, phase: str, size: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    # a shell may have started us deaf to it, as it does in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sampler, model, small, large = CASES[case]
    data = (small if size == "small" else large)()
    endless = size == "small"
    settings: dict[str, Any] = {}
    if endless and sampler in ("laplace", "ibis"):
        settings = {"draws": MANY_DRAWS}
    elif endless:
        settings = dict(ENDLESS)
    # a short warm-up, where it is the draws that matter
    if phase == "draws":
        settings["warmup"] = 20
    given: dict[str, Any] = {"sampler": sampler, "chains": CHAINS, "executor": 2, "progress": False}
    # all loops are compiled first: that takes as long as it takes, and nobody can interrupt it
    short: dict[str, Any] = {} if sampler in ("laplace", "ibis") else {"warmup": 150}
    rv.fit(small(), model, draws=100, **short, **given)
    announce(phase, endless)
    try:
        post = rv.fit(data, model, checkpoint=Path(folder) / "run.checkpoint", **given, **settings)
    except KeyboardInterrupt:
        say("interrupted")
    else:
        say("draws so far" if not post.settings["complete"] else "complete")
    # not by way of Python's own end, which would wait for threads that cannot be interrupted
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
