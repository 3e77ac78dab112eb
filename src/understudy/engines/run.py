"""Running chains: on threads, in pieces, with a state that can be written down and picked up again.

A run is an iterator. Each turn advances every chain by a piece of a quarter of a second or so; progress bars,
checkpoints and Ctrl-C are loops around it. How a run is cut into pieces does not change its draws.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.engines.base import Engine, State

PIECE_SECONDS = 0.25

Packed = tuple[dict[str, Any], dict[str, Any]]
"""A run written down: what JSON can hold, and arrays."""


class Kept(NamedTuple):
    """Where a chain is between two pieces: its generator, its state (None before the first), iterations of warm-up, draws."""

    generator: Any
    state: State | None
    warm: int
    done: int


class Chain:
    """One chain: where it is, and what it has drawn.

    Generator, state and counts change together, at the end of a piece: whoever looks in between, after Ctrl-C or a mistake, finds them as they
    were before it.
    """

    def __init__(self, engine: Engine, seed: np.random.SeedSequence, init: Floats | None) -> None:
        self.engine = engine
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.init = init
        self.kept = Kept(self.rng.bit_generator.state, None, 0, 0)
        self.draws: list[Floats] = []
        self.stats: list[dict[str, Floats]] = []
        self.pace = 1e-3  # seconds an iteration, measured; only decides where a run is cut

    @property
    def warm(self) -> int:
        """Iterations of the warm-up that were made."""
        return self.kept.warm

    @property
    def done(self) -> int:
        """Draws that were made."""
        return self.kept.done

    def advance(self, warmup: int, draws: int, thin: int) -> None:
        """Go on for about a quarter of a second."""
        _, state, warm, done = self.kept
        if state is None:
            state = self.engine.start(self.rng, self.init)
        began = time.perf_counter()
        piece = max(1, int(PIECE_SECONDS / self.pace))
        if warm < warmup:
            state, iterations = self.engine.warm(self.rng, state, warmup - warm, piece)
            warm += iterations
        else:
            count = min(max(1, piece // thin), draws - done)
            if count == 0:
                return
            state, made, stats = self.engine.advance(self.rng, state, count, thin)
            if not np.isfinite(made).all():
                raise ValueError(
                    f'the engine "{self.engine.name}" produced numbers that are not finite; rescale the features'
                )
            self.draws.append(made)
            self.stats.append(dict(stats))
            done += count
            iterations = count * thin
        self.kept = Kept(self.rng.bit_generator.state, state, warm, done)
        self.pace = max((time.perf_counter() - began) / iterations, 1e-9)


class Run:
    """Several chains of one engine."""

    def __init__(
        self, engine: Engine, *, draws: int, warmup: int, thin: int, chains: int, seed: int, init: Floats | None
    ) -> None:
        self.draws, self.warmup, self.thin = draws, warmup, thin
        seeds = np.random.SeedSequence(seed).spawn(chains)
        starts = [None] * chains if init is None else list(np.broadcast_to(init, (chains, np.shape(init)[-1])))
        self.chains = [Chain(engine, s, start) for s, start in zip(seeds, starts, strict=True)]

    @property
    def total(self) -> int:
        """How many iterations there are in all."""
        return len(self.chains) * (self.warmup + self.draws * self.thin)

    @property
    def done(self) -> int:
        """How many iterations have been made."""
        return sum(chain.warm + chain.done * self.thin for chain in self.chains)

    def go(self, threads: int) -> Iterator[int]:
        """Advance all chains piece by piece to the end; yields the iterations done so far."""
        with ThreadPoolExecutor(threads) as pool:
            while self.done < self.total:
                list(pool.map(lambda chain: chain.advance(self.warmup, self.draws, self.thin), self.chains))
                yield self.done

    def collect(self) -> tuple[Floats, dict[str, Floats]]:
        """(chain, draw, K) draws and (chain, draw) stats, as many as every chain has."""
        count = min(chain.done for chain in self.chains)
        if count == 0:
            raise ValueError("no draw has been made yet")
        draws = np.stack([np.concatenate(chain.draws)[:count] for chain in self.chains])
        names = self.chains[0].stats[0]
        stats = {n: np.stack([np.concatenate([s[n] for s in c.stats])[:count] for c in self.chains]) for n in names}
        return draws, stats

    def packed(self) -> Packed:
        """Everything needed to go on, as of each chain's last whole piece: what is plain, and arrays."""
        heads: list[dict[str, Any]] = []
        arrays: dict[str, Any] = {}
        for i, chain in enumerate(self.chains):
            generator, state, warm, done = chain.kept
            heads.append({"rng": generator, "warm": warm, "done": done})
            arrays |= {f"{i}/state/{name}": value for name, value in (state or {}).items()}
            if done:
                arrays[f"{i}/draws"] = np.concatenate(chain.draws)[:done]
                arrays |= {f"{i}/stats/{n}": np.concatenate([s[n] for s in chain.stats])[:done] for n in chain.stats[0]}
        return {"chains": heads}, arrays

    def unpack(self, head: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Pick up where `packed` left off."""
        for i, (chain, kept) in enumerate(zip(self.chains, head["chains"], strict=True)):
            state = {n.removeprefix(f"{i}/state/"): a for n, a in arrays.items() if n.startswith(f"{i}/state/")}
            chain.kept = Kept(kept["rng"], state or None, kept["warm"], kept["done"])
            chain.rng.bit_generator.state = kept["rng"]
            if chain.done:
                chain.draws = [arrays[f"{i}/draws"]]
                prefix = f"{i}/stats/"
                chain.stats = [{n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}]
