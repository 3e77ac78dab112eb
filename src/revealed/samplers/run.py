"""Running chains: on threads, in chunks, with a state that can be written down and picked up again.

A run is an iterator. Each step advances every chain by a chunk of a quarter of a second or so;
progress bar, checkpoints and Ctrl-C are one loop around it, `run_to_end`. How a run is cut into
chunks does not change its draws.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from revealed._types import Floats
from revealed.io.checkpoints import Checkpoint, RunSnapshot
from revealed.kernels.interrupt import LoopsStopped, count_stops, stopped_loops, stopped_since
from revealed.samplers.base import Draws, Sampler, State
from revealed.samplers.progress import progress_bar

# Seconds of work between two moments at which a run can be stopped or written down. Shorter chunks
# cost more for handing work to threads, longer ones make Ctrl-C slow; draws do not depend on it.
CHUNK_SECONDS = 0.25


class ChainSnapshot(NamedTuple):
    """Where a chain is between two chunks.

    generator: state of its random generator. state: of the sampler, None before the first chunk.
    warmup_done, draws_done: iterations of warm-up and draws made so far.
    """

    generator: Any
    state: State | None
    warmup_done: int
    draws_done: int


class Chain:
    """One chain: where it is, and what it has drawn.

    Generator, state and counts change together, at the end of a chunk, in `snapshot`: whoever looks
    in between, after Ctrl-C or an error, finds them as they were before it.
    """

    def __init__(
        self, sampler: Sampler, seed: np.random.SeedSequence, position: Floats | None
    ) -> None:
        self.sampler = sampler
        # a generator of its own, so that chains can run on any thread
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.position = position
        self.snapshot = ChainSnapshot(self.rng.bit_generator.state, None, 0, 0)
        self.draws: list[Draws] = []
        self.stats: list[dict[str, Floats]] = []
        # a guess at first, measured after every chunk; only decides where a run is cut
        self.seconds_per_iteration = 1e-3

    @property
    def warmup_done(self) -> int:
        """Iterations of the warm-up that were made.

        The sampler counts them itself, as it may make more at a time than it was asked for.
        """
        return self.snapshot.warmup_done

    @property
    def draws_done(self) -> int:
        """Draws that were made."""
        return self.snapshot.draws_done

    def advance(self, warmup: int, draws: int, thin: int) -> None:
        """Go on for about a quarter of a second, towards so many iterations and draws in all."""
        stops = count_stops()
        try:
            self._advance(warmup, draws, thin, stops)
        # what came out of loops that were cut short by Ctrl-C may be no numbers at all
        except Exception:
            if stopped_since(stops):
                raise LoopsStopped from None
            raise

    def _advance(self, warmup: int, draws: int, thin: int, stops: int) -> None:
        """As `advance`; stops: from `count_stops`, before anything was begun."""
        # the snapshot is only replaced at the end, so that an error leaves the chain as it was
        _, state, warmup_done, draws_done = self.snapshot
        if state is None:
            state = self.sampler.init(self.rng, self.position)
        began = time.perf_counter()
        # iterations that take about a chunk's time, by how long the last ones took
        chunk = max(1, int(CHUNK_SECONDS / self.seconds_per_iteration))
        # the sampler adapts in warm-up only; afterwards every iteration leaves the posterior
        # invariant
        if warmup_done < warmup:
            state, iterations = self.sampler.warmup(self.rng, state, warmup - warmup_done, chunk)
            if stopped_since(stops):
                raise LoopsStopped
            warmup_done += iterations
        else:
            # whole draws only: thin iterations for each
            count = min(max(1, chunk // thin), draws - draws_done)
            if count == 0:
                return
            state, new_draws, stats = self.sampler.sample(self.rng, state, count, thin)
            if stopped_since(stops):
                raise LoopsStopped
            # overflow in a chain never heals by itself
            if not all(np.isfinite(array).all() for array in new_draws.values()):
                raise ValueError(
                    f'the sampler "{self.sampler.name}" produced numbers that are not finite, as '
                    "its utilities are too large for double precision; bring the features to a "
                    "scale of about one, or give a smaller prior sd"
                )
            self.draws.append(new_draws)
            self.stats.append(dict(stats))
            draws_done += count
            iterations = count * thin
        # one assignment, so that an interrupt leaves either the old snapshot or the new one
        generator = self.rng.bit_generator.state
        self.snapshot = ChainSnapshot(generator, state, warmup_done, draws_done)
        self.seconds_per_iteration = max((time.perf_counter() - began) / iterations, 1e-9)


class ResumableRun(Protocol):
    """Work in steps that can be written down after each of them, and continued from there."""

    @property
    def total(self) -> float:
        """How much work there is in all."""
        ...

    @property
    def done(self) -> float:
        """How much of it has been done."""
        ...

    def iterate(self) -> Iterator[float]:
        """Do the work step by step to the end; yields how much is done."""
        ...

    def snapshot(self) -> RunSnapshot:
        """Everything needed to go on, as it was after the last complete step."""
        ...

    def restore(self, snapshot: RunSnapshot) -> None:
        """Continue from a snapshot."""
        ...


class Run:
    """Several chains of one sampler, each with a random generator of its own.

    The generators are spawned from one seed, so that draws do not depend on the number of threads.
    """

    def __init__(
        self,
        sampler: Sampler,
        *,
        draws: int,
        warmup: int,
        thin: int,
        chains: int,
        seed: int,
        init: Floats | None = None,
        threads: int | None = None,
    ) -> None:
        # more threads than chains would have nothing to do
        self.draws, self.warmup, self.thin = draws, warmup, thin
        self.threads = threads or min(chains, os.cpu_count() or 1)
        # spawned sequences are independent, and the same whatever the number of threads
        seeds = np.random.SeedSequence(seed).spawn(chains)
        # one point for all chains, or one for each
        positions = (
            [None] * chains
            if init is None
            else list(np.broadcast_to(init, (chains, np.shape(init)[-1])))
        )
        self.chains = [
            Chain(sampler, seed_of_chain, position)
            for seed_of_chain, position in zip(seeds, positions, strict=True)
        ]

    @property
    def total(self) -> int:
        """How many iterations there are in all.

        Of all chains, warm-up and thinning included.
        """
        return len(self.chains) * (self.warmup + self.draws * self.thin)

    @property
    def done(self) -> int:
        """How many iterations have been made."""
        return sum(chain.warmup_done + chain.draws_done * self.thin for chain in self.chains)

    def iterate(self) -> Iterator[int]:
        """Advance all chains chunk by chunk to the end; yields the iterations done so far.

        Every step takes about a quarter of a second, whatever the sampler.
        """

        def advance(chain: Chain) -> None:
            chain.advance(self.warmup, self.draws, self.thin)

        with ThreadPoolExecutor(self.threads) as pool:
            while self.done < self.total:
                # chains wait for one another, so that a snapshot has them at about the same place
                try:
                    list(pool.map(advance, self.chains))
                # loops return at once, so that nobody waits for the end of a chunk
                except KeyboardInterrupt:
                    with stopped_loops():
                        pool.shutdown()
                    raise
                yield self.done

    def collect(self) -> tuple[Draws, Draws]:
        """Draws (chain, draw, ...) and stats (chain, draw) by name, as many as every chain has.

        The run lets go of its draws as they are copied, because there may be gigabytes of them.
        """
        # after Ctrl-C some chains are a chunk ahead of others
        count = self.complete_draws
        chunks = [(chain.draws, chain.stats) for chain in self.chains]
        draws, stats = (_join([chain[i] for chain in chunks], count) for i in (0, 1))
        return draws, stats

    @property
    def complete_draws(self) -> int:
        """How many draws every chain has; refuses none.

        After Ctrl-C chains may differ by a chunk; draws beyond the shortest are left out.
        """
        count = min(chain.draws_done for chain in self.chains)
        if count == 0:
            raise ValueError("no draw has been made yet")
        return count

    def snapshot(self) -> RunSnapshot:
        """Everything needed to go on, as of each chain's last complete chunk.

        Arrays are named `chain/state/name`, `chain/draws/name` and `chain/stats/name`.
        """
        # counts and generators are JSON, states and draws are arrays
        heads: list[dict[str, Any]] = []
        arrays: dict[str, Any] = {}
        for i, chain in enumerate(self.chains):
            generator, state, warmup_done, draws_done = chain.snapshot
            head = {"rng": generator, "warmup_done": warmup_done, "draws_done": draws_done}
            heads.append(head)
            arrays |= {f"{i}/state/{name}": value for name, value in (state or {}).items()}
            if draws_done:
                # an interrupted chunk may have added draws that its snapshot does not count
                for kind, chunks in (("draws", chain.draws), ("stats", chain.stats)):
                    arrays |= {
                        f"{i}/{kind}/{name}": np.concatenate([made[name] for made in chunks])[
                            :draws_done
                        ]
                        for name in chunks[0]
                    }
        return RunSnapshot({"chains": heads}, arrays)

    def restore(self, snapshot: RunSnapshot) -> None:
        """Continue where `snapshot` was taken.

        The run must have been made with the same sampler and settings, which a fingerprint
        ensures.
        """
        head, arrays = snapshot

        def below(prefix: str) -> dict[str, Any]:
            return {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }

        # generator, state and counts belong together: with one of them missing, draws would differ
        for i, (chain, stored) in enumerate(zip(self.chains, head["chains"], strict=True)):
            chain.snapshot = ChainSnapshot(
                stored["rng"],
                below(f"{i}/state/") or None,
                stored["warmup_done"],
                stored["draws_done"],
            )
            chain.rng.bit_generator.state = stored["rng"]
            if chain.draws_done:
                chain.draws = [below(f"{i}/draws/")]
                chain.stats = [below(f"{i}/stats/")]


def _join(chains: list[list[Draws]], count: int) -> Draws:
    """(chain, count, ...) arrays by name, from the chunks of each chain, which are used up.

    Allocated once and filled chunk by chunk, to hold no second copy.
    """
    joined = {
        name: np.empty((len(chains), count, *array.shape[1:]), array.dtype)
        for name, array in chains[0][0].items()
    }
    for c, chunks in enumerate(chains):
        copied = 0
        while chunks:
            made = chunks.pop(0)
            for name, array in made.items():
                part = array[: count - copied]
                joined[name][c, copied : copied + len(part)] = part
            copied = min(count, copied + len(array))
    return joined


def run_chains(
    run: Run, title: str, progress: bool | None, checkpoint: Checkpoint | None, resume: bool
) -> bool:
    """Run all chains to the end, from where a checkpoint left them if it is to be resumed.

    Returns whether the draws are complete: after Ctrl-C the run holds those made so far. Ctrl-C
    before every chain has its first draw is an interrupt, as there is nothing to return.
    """
    # the name of the sampler, and how many chains the bar stands for
    title = f"{title}: {len(run.chains)} chains"
    complete = run_to_end(run, title, progress, checkpoint, resume)
    if not all(chain.draws_done for chain in run.chains):
        raise KeyboardInterrupt
    return complete


def run_to_end(
    run: ResumableRun,
    title: str,
    progress: bool | None,
    checkpoint: Checkpoint | None,
    resume: bool,
) -> bool:
    """Take all steps of a run, with a progress bar and checkpoints; False when Ctrl-C ended it.

    A checkpoint is written before the first step, unless resumed; now and then; and at the end, be
    it the last step, Ctrl-C or an error.
    """
    # the state of a resumed run is on disk already, and need not be written again
    if resume:
        assert checkpoint is not None
        run.restore(checkpoint.read())
    elif checkpoint is not None:
        checkpoint.write(run.snapshot())
    # a clock that never goes backwards, as the time of day may
    began = written = time.monotonic()
    write_seconds = 0.0
    with progress_bar(title, total=run.total, completed=run.done, show=progress) as update:
        try:
            # one step of all chains, then progress and perhaps a checkpoint
            for done in run.iterate():
                update(done)
                now = time.monotonic()
                if checkpoint is None:
                    continue
                if now - written >= checkpoint.seconds_until_next(write_seconds, now - began):
                    checkpoint.write(run.snapshot())
                    written = time.monotonic()
                    write_seconds = written - now
        # what has been drawn so far is the answer, and the checkpoint below continues it
        except KeyboardInterrupt:
            return False
        finally:
            if checkpoint is not None:
                checkpoint.write(run.snapshot())
    return True
