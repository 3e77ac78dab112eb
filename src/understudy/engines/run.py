"""Running chains: on threads, in pieces, with a state that can be written down and picked up again.

A run is an iterator. Each turn advances every chain by a piece of a quarter of a second or so; progress bars,
checkpoints and Ctrl-C are loops around it. How a run is cut into pieces does not change its draws.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from understudy._arrays import Floats
from understudy._files import whole_file
from understudy.engines.base import Engine, State

PIECE_SECONDS = 0.25


class Chain:
    """One chain: its generator, its state, and what it has drawn."""

    def __init__(self, engine: Engine, seed: np.random.SeedSequence, init: Floats | None) -> None:
        self.engine = engine
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.init = init
        self.state: State | None = None
        self.warm = 0
        self.draws: list[Floats] = []
        self.stats: list[dict[str, Floats]] = []
        self.done = 0
        self.pace = 1e-3  # seconds an iteration, measured; only decides where a run is cut

    def advance(self, warmup: int, draws: int, thin: int) -> None:
        """Go on for about a quarter of a second."""
        if self.state is None:
            self.state = self.engine.start(self.rng, self.init)
        began = time.perf_counter()
        piece = max(1, int(PIECE_SECONDS / self.pace))
        if self.warm < warmup:
            self.state, iterations = self.engine.warm(self.rng, self.state, warmup - self.warm, piece)
            self.warm += iterations
        else:
            count = min(max(1, piece // thin), draws - self.done)
            if count == 0:
                return
            self.state, made, stats = self.engine.advance(self.rng, self.state, count, thin)
            self.draws.append(made)
            self.stats.append(dict(stats))
            self.done += count
            iterations = count * thin
            if not np.isfinite(made).all():
                raise ValueError(
                    f'the engine "{self.engine.name}" produced numbers that are not finite; rescale the features'
                )
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

    def save(self, path: Path, fingerprint: str) -> None:
        """Write everything needed to go on, in one step that cannot leave half a file."""
        arrays: dict[str, Any] = {}
        heads = []
        for i, chain in enumerate(self.chains):
            heads.append({"rng": chain.rng.bit_generator.state, "warm": chain.warm, "done": chain.done})
            arrays |= {f"{i}/state/{name}": value for name, value in (chain.state or {}).items()}
            if chain.draws:
                arrays[f"{i}/draws"] = np.concatenate(chain.draws)
                arrays |= {f"{i}/stats/{n}": np.concatenate([s[n] for s in chain.stats]) for n in chain.stats[0]}
        head = json.dumps({"fingerprint": fingerprint, "chains": heads})
        arrays["head"] = np.frombuffer(head.encode(), dtype=np.uint8)
        with whole_file(path) as stream:
            np.savez(stream, **arrays)

    def restore(self, path: Path, fingerprint: str) -> None:
        """Pick up where `save` left off; refuses a checkpoint of another problem."""
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            head = json.loads(arrays.pop("head").tobytes())
        except FileNotFoundError:
            raise ValueError(f"there is no checkpoint {path} to resume from") from None
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise ValueError(f"{path} is not a checkpoint of understudy, or it is damaged") from None
        if head["fingerprint"] != fingerprint:
            raise ValueError(
                f"the checkpoint {path} belongs to other decisions, prior or settings; run without resuming"
            )
        for i, (chain, kept) in enumerate(zip(self.chains, head["chains"], strict=True)):
            chain.rng.bit_generator.state = kept["rng"]
            chain.warm, chain.done = kept["warm"], kept["done"]
            state = {n.removeprefix(f"{i}/state/"): a for n, a in arrays.items() if n.startswith(f"{i}/state/")}
            chain.state = state or None
            if f"{i}/draws" in arrays:
                chain.draws = [arrays[f"{i}/draws"]]
                prefix = f"{i}/stats/"
                chain.stats = [{n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}]
