"""A stream of decisions: each one in, the posterior out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy._arrays import Floats
from understudy._netcdf import Variables, read_file, write_file
from understudy.decisions import Block, Decisions
from understudy.engines.sequential import Cloud, chances, dense, draw_sizes, learn_one, refuse_unfit, systematic
from understudy.posterior import FORMAT, Posterior, attributes, groups, read_origin, reader
from understudy.priors import Gaussian, Prior, place

FEWEST = 100  # particles


class Stream:
    """Learn from decisions as they come, with a cloud of particles (Chopin 2002).

    A decision costs as much as its probability under every particle; now and then the particles are resampled and move, which costs as much as
    all decisions so far. The same seed and decisions give the same particles.

    Args:
        names: of the K coefficients, or how many there are.
        prior: ``Gaussian(2500.0)`` unless said; a flat one is refused.
        particles: how many values carry the posterior.
        seed: of all random numbers.
        blocks: the blocks of coefficients, as in ``Decisions``.

    >>> stream = us.Stream(["price", "speed"], us.Gaussian(1.0), seed=1)
    >>> stream.update([[1.0, 0.0], [0.0, 1.0]], chosen=1)
    <Stream: 1 decisions, 2 coefficients, 1000 particles, ...>
    >>> len(stream), bool(stream.mean[1] > stream.mean[0])
    (1, True)
    """

    def __init__(
        self,
        names: Sequence[str] | int,
        prior: Prior | None = None,
        particles: int = 1000,
        seed: int = 0,
        *,
        blocks: Sequence[Block] | None = None,
    ) -> None:
        if not isinstance(particles, int | np.integer) or particles < FEWEST:
            raise ValueError(f"particles must be a whole number, at least {FEWEST}; it is {particles!r}")
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed must be a whole number, at least 0; it is {seed!r}")
        if isinstance(names, int):
            names = [f"v{k}" for k in range(names)]
        if not len(names):
            raise ValueError("there is nothing to learn: give the names of the coefficients, or how many there are")
        self.prior: Prior = Gaussian(2500.0) if prior is None else prior
        self._none = Decisions(np.zeros((1, len(names))), [0, 1], [0], names=names, blocks=blocks)
        self._placed = place(self.prior, self._none)
        refuse_unfit(self._placed)
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._cloud = Cloud.of(self._rng, self._placed, int(particles))
        self._rows: list[Floats] = []
        self._chosen: list[int] = []
        self._settings: dict[str, Any] = {"seed": int(seed), "particles": int(particles)}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return self._none.names

    def __len__(self) -> int:
        """How many decisions have been learnt."""
        return len(self._chosen)

    def __repr__(self) -> str:
        return (
            f"<Stream: {len(self)} decisions, {len(self.names)} coefficients, {len(self.particles)} particles, "
            f"{self.effective:.0f} effective, log evidence {self.log_evidence:.2f}>"
        )

    def update(self, rows: Any, chosen: Any = None) -> Stream:
        """Learn one decision, the choice of that one of rows (M, K); or Decisions, one after the other."""
        if isinstance(rows, Decisions):
            if chosen is not None:
                raise ValueError("Decisions know their own choices; leave out chosen")
            self._refuse_others(rows)
            for first, last, row in zip(rows.start[:-1], rows.start[1:], rows.taken, strict=True):
                self._learn(dense(rows.rows[first:last]), int(row - first))
            return self
        offered = self._checked(rows)
        if not isinstance(chosen, int | np.integer) or not 0 <= chosen < len(offered):
            raise ValueError(
                f"decision {len(self)}: chosen is {chosen!r}, but {len(offered)} actions are offered; it counts from 0"
            )
        self._learn(offered, int(chosen))
        return self

    def _learn(self, rows: Floats, chosen: int) -> None:
        before = len(self)
        self._rows.append(rows)
        self._chosen.append(chosen)
        kept = self._rng.bit_generator.state
        try:
            self._cloud = learn_one(self._rng, self._cloud, rows, chosen, lambda: self.decisions, self._placed)
        except BaseException:  # Ctrl-C too: the stream is as it was before this decision
            del self._rows[before:], self._chosen[before:]
            self._rng.bit_generator.state = kept
            raise

    def _checked(self, rows: Any) -> Floats:
        """Rows (M, K) of finite numbers."""
        return dense(Decisions(rows, [0, len(rows)], names=self.names, ids=[len(self)]).rows)

    def _refuse_others(self, decisions: Decisions) -> None:
        if decisions.names != self.names or decisions.blocks != self._none.blocks:
            raise ValueError(
                f"the decisions have the coefficients {', '.join(decisions.names)}, but the stream learns {', '.join(self.names)}"
                if decisions.names != self.names
                else "the decisions have other blocks of coefficients than the stream"
            )

    @property
    def decisions(self) -> Decisions:
        """All that was learnt, as Decisions."""
        if not len(self):
            raise ValueError("the stream has not learnt any decision yet")
        start = np.concatenate([[0], np.cumsum([len(rows) for rows in self._rows])])
        return Decisions(np.vstack(self._rows), start, self._chosen, names=self.names, blocks=self._none.blocks)

    @property
    def particles(self) -> Floats:
        """(N, K) values; with `weights` they stand for the posterior."""
        return self._cloud.values

    @property
    def weights(self) -> Floats:
        """(N,) of the particles; they sum to one."""
        return self._cloud.weights

    @property
    def effective(self) -> float:
        """How many particles of equal weight would be worth as much."""
        return self._cloud.effective

    @property
    def log_evidence(self) -> float:
        """The log probability of all choices so far under prior and model."""
        return self._cloud.log_evidence

    @property
    def mean(self) -> Floats:
        """(K,) posterior means."""
        return np.asarray(self.weights @ self.particles)

    @property
    def sd(self) -> Floats:
        """(K,) posterior standard deviations."""
        return np.asarray(np.sqrt(self.weights @ (self.particles - self.mean) ** 2))

    def probabilities(self, rows: Any) -> Floats:
        """(M,) how likely each of rows (M, K) is to be chosen next, averaged over the posterior."""
        return np.asarray(self.weights @ chances(self._checked(rows), self.particles))

    def draw(self, rng: np.random.Generator) -> Floats:
        """(K,) one value from the posterior."""
        return np.asarray(self.particles[rng.choice(len(self.weights), p=self.weights)])

    def posterior(self) -> Posterior:
        """The posterior so far, as `us.fit` would give it: as many draws as particles, picked by their weights."""
        rng = np.random.default_rng([self._settings["seed"], len(self)])
        parents = systematic(rng, self.weights)
        count = len(parents)
        values = self.particles[parents]
        stats = {
            "log_weight": np.log(count * self.weights[parents])[None],
            "log_evidence": np.full((1, count), self.log_evidence),
        }
        if self._placed.scale is not None:
            stats["prior_sd"] = draw_sizes(rng, self._placed, values)[None]
        return Posterior(values[None], self.decisions, self.prior, "ibis", stats, self._settings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file from which `Stream.load` goes on exactly; `us.load` and ArviZ read it as a posterior."""
        post = self.posterior()
        cloud: Variables = {
            "values": (("particle", "component"), self.particles),
            "log_weights": (("particle",), self._cloud.log_weights),
            "log_evidence": (("one",), np.array([self.log_evidence])),
        }
        generator = json.dumps(self._rng.bit_generator.state)
        write_file(path, attributes(post) | {"generator": generator}, groups(post, False) | {"cloud": cloud})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Stream:
        """Read what `save` wrote, and go on as if nothing had happened."""
        (stream,) = read_file(path, "a posterior", FORMAT, lambda file: (cls._read(file),))
        if stream is None:
            raise ValueError(f"{path} holds a posterior, but not a stream that could go on; Stream.save writes those")
        return stream

    @classmethod
    def _read(cls, file: Any) -> Stream | None:
        if "generator" not in file.attrs:
            return None
        get = reader(file)
        decisions, prior, settings = read_origin(file)
        stream = cls(decisions.names, prior, settings["particles"], settings["seed"], blocks=decisions.blocks)
        pieces = np.split(decisions.rows, decisions.start[1:-1])
        stream._rows = [np.ascontiguousarray(rows) for rows in pieces]
        stream._chosen = (decisions.taken - decisions.start[:-1]).tolist()
        values, log_weights = (np.ascontiguousarray(get(f"cloud/{name}")) for name in ("values", "log_weights"))
        stream._cloud = Cloud(values, log_weights, float(get("cloud/log_evidence")[0]))
        stream._rng.bit_generator.state = json.loads(file.attrs["generator"])
        return stream
