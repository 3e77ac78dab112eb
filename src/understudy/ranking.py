"""Ranking: draws of skills, and what follows from them: who is better, how sure that is, and what would happen next."""

from __future__ import annotations

import difflib
import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from understudy._arrays import Bools, Floats
from understudy._netcdf import Variables, content, read_file, to_arviz, write_file
from understudy.diagnostics import Summary, summarise
from understudy.kernels.orders import log_order_each
from understudy.orders import Orders, Team, as_team

AVERAGED = 1000  # draws that predictions average over
LISTED = 6  # entries of a line-up whose orderings are all listed: 720
SHOWN = 20  # players in a printed table
FORMAT = 1  # of the file; raise it when an older understudy could no longer read what is written


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """Draws of everybody's skill, of their spread, and of the margin of a tie.

    skills: (chain, draw, K), summing to zero where games do not see their level. spread: (chain, draw), infinite under a flat
    prior. margin: (chain, draw), zero where no two tied. noise: of an entry or of each player in it. stats: (chain, draw) each, what the
    engine tells. settings: how it was run.

    >>> found = us.rank([["ann", "bob", "cid"], ["bob", "ann", "cid"], ["cid", "ann", "bob"]], draws=2000)
    >>> found.win_probabilities(["ann", "cid"]).sum().round(6)
    np.float64(1.0)
    >>> [line["player"] for line in found.table()][0]
    'ann'
    """

    orders: Orders
    skills: Floats
    spread: Floats
    margin: Floats
    noise: str
    stats: Mapping[str, Floats] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The players."""
        return self.orders.names

    @property
    def values(self) -> Floats:
        """(chains * draws, K) skills, the chains one after the other."""
        return self.skills.reshape(-1, len(self.names))

    def summary(self) -> Summary:
        """Means, spreads and diagnostics of every skill, of the spread and of the margin, and whether to trust them."""
        parts, names = [self.skills], list(self.names)
        for name, each in (("spread of skills", self.spread), ("margin of a tie", self.margin)):
            if each.min() < each.max():
                parts.append(each[:, :, None])
                names.append(name)
        whole = np.concatenate(parts, axis=2)
        return summarise(
            whole, tuple(names), fixed=np.zeros(whole.shape[2], np.bool_),
            interrupted=self.settings.get("complete") is False, requested=self.settings.get("draws"),
        )  # fmt: skip

    def table(self) -> list[dict[str, Any]]:
        """A line a player, best first: skill with sd and 90 % interval, likely places, the probability to be the best."""
        values = self.values
        places = 1 + np.argsort(np.argsort(-values, axis=1), axis=1)
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
        best, worst = np.quantile(places, [0.05, 0.95], axis=0, method="nearest")
        games, lines = self.orders.games, []
        for k in np.argsort(-values.mean(axis=0)):
            lines.append({
                "player": self.names[k], "skill": float(values[:, k].mean()), "sd": float(values[:, k].std()),
                "low": float(low[k]), "high": float(high[k]), "place_low": int(best[k]), "place_high": int(worst[k]),
                "best": float((places[:, k] == 1).mean()), "games": int(games[k]),
            })  # fmt: skip
        return lines

    def __repr__(self) -> str:
        lines = self.table()
        wide = max(len(line["player"]) for line in lines[:SHOWN])
        text = [f"{'':{wide}}  skill    sd   places   games"]
        for line in lines[:SHOWN]:
            places = f"{line['place_low']}-{line['place_high']}"
            text.append(
                f"{line['player']:{wide}}  {line['skill']:5.2f}  {line['sd']:4.2f}  {places:>7}  {line['games']:6d}"
            )
        if len(lines) > SHOWN:
            text.append(f"... and {len(lines) - SHOWN} more players")
        return "\n".join([*text, self.summary().verdict])

    def better(self, one: str, other: str) -> float:
        """The probability that one player is more skilled than another."""
        _, (a, b), _ = self._drawn([(one,), (other,)], strangers=False)
        return float((a > b).mean())

    def win_probabilities(self, line_up: Sequence[Any], strangers: bool = False) -> Floats:
        """(n,) the probability of each entry to come first; an entry is a name, or a tuple of names for a team.

        Where games can be tied they add up to less than one: the rest is a shared first place. strangers: take players never seen
        before for anybody, which is what the spread of skills knows of them; otherwise they are refused.
        """
        teams, means, margin = self._drawn(line_up, strangers)
        order = np.arange(len(teams))
        first = [np.roll(order, -k) for k in order]
        return np.exp([self._log_mean(means, teams, margin, each, 1) for each in first])

    def order_probability(self, line_up: Sequence[Any], strangers: bool = False) -> float:
        """The probability that the entries finish just in this order, without ties."""
        teams, means, margin = self._drawn(line_up, strangers)
        return float(np.exp(self._log_mean(means, teams, margin, np.arange(len(teams)), len(teams))))

    def orderings(self, line_up: Sequence[Any], strangers: bool = False) -> list[tuple[tuple[Any, ...], float]]:
        """Every order in which up to six entries may finish, and its probability; the most likely first."""
        if len(line_up) > LISTED:
            raise ValueError(
                f"{len(line_up)} entries have {math.factorial(len(line_up))} orderings; they are listed for up to {LISTED} "
                "entries, and order_probability has the one you ask for"
            )
        teams, means, margin = self._drawn(line_up, strangers)
        found = [
            (tuple(line_up[k] for k in each), float(np.exp(self._log_mean(means, teams, margin, each, len(teams)))))
            for each in map(np.array, itertools.permutations(range(len(teams))))
        ]
        return sorted(found, key=lambda pair: -pair[1])

    def log_score(self, orders: Orders, strangers: bool = False) -> Floats:
        """(G,) the log predictive probability of what happened in other games."""
        found = np.empty(len(orders))
        for g in range(len(orders)):
            entries, tied, known = orders.game(g)
            teams, means, margin = self._drawn(entries, strangers)
            found[g] = self._log_mean(means, teams, margin, np.arange(len(teams)), known, tied)
        return found

    def to_arviz(self, log_likelihood: bool = False) -> Any:
        """The same as ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x).

        Args:
            log_likelihood: add the exact log-likelihood of every game under every draw, as arviz.loo needs.
        """
        return to_arviz(self._attributes(), self._groups(log_likelihood))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file that `Ranking.load` and ArviZ read; the file is there whole or not at all."""
        write_file(path, self._attributes(), self._groups(log_likelihood=False))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Ranking:
        """Read a ranking that `save` wrote."""
        return read_file(path, "a ranking", FORMAT, _read)

    def _attributes(self) -> dict[str, Any]:
        return {
            "created_by": "understudy", "format_version": FORMAT, "kind": "a ranking", "noise": self.noise,
            "settings": json.dumps(dict(self.settings)),
        }  # fmt: skip

    def _groups(self, log_likelihood: bool) -> dict[str, Variables]:
        """Everything that is an array, as ArviZ groups it."""
        o, (chains, draws, _), each = self.orders, self.skills.shape, ("chain", "draw")
        drawn: Variables = {"chain": (("chain",), np.arange(chains)), "draw": (("draw",), np.arange(draws))}
        player: Variables = {"player": (("player",), np.array(self.names, dtype=object))}
        groups: dict[str, Variables] = {
            "posterior": {
                **drawn, **player, "skill": ((*each, "player"), self.skills), "spread": (each, self.spread),
                "margin": (each, self.margin),
            }
        }  # fmt: skip
        if self.stats:
            groups["sample_stats"] = {**drawn, **{name: (each, values) for name, values in self.stats.items()}}
        ids = np.array(o.ids if all(isinstance(i, str) for i in o.ids) else [str(i) for i in o.ids], dtype=object)
        game: Variables = {"game": (("game",), ids)}
        if log_likelihood:
            seen = np.empty((chains * draws, len(o)))
            for g in range(len(o)):
                teams, tied, known = o.game(g)
                place = {name: k for k, name in enumerate(self.names)}
                means = np.stack([self.values[:, [place[n] for n in team]].sum(axis=1) for team in teams], axis=1)
                seen[:, g] = log_order_each(means, self._sd(teams), tied, known, self.margin.ravel())
            shaped = seen.reshape(chains, draws, len(o))
            groups["log_likelihood"] = {**drawn, **game, "order": ((*each, "game"), shaped)}
        groups["observed_data"] = {
            **game, "known": (("game",), o.known), "tied": (("entry",), o.tied), "member": (("place",), o.players),
        }  # fmt: skip
        groups["constant_data"] = {"first": (("entry_boundary",), o.first), "start": (("game_boundary",), o.start)}
        return groups

    def _sd(self, teams: Sequence[Team]) -> Floats:
        """(n,) of the noise of each entry."""
        return np.sqrt([float(len(team)) if self.noise == "player" else 1.0 for team in teams])

    def _log_mean(
        self, means: Floats, teams: Sequence[Team], margin: Floats, order: Any, known: int, tied: Bools | None = None
    ) -> float:
        """Log of the mean over draws of the probability that teams finish in this order."""
        flags = np.zeros(len(teams), np.bool_) if tied is None else tied
        logs = log_order_each(np.ascontiguousarray(means.T[:, order]), self._sd(teams)[order], flags, known, margin)
        return float(logsumexp(logs) - np.log(len(logs)))

    def _drawn(self, line_up: Sequence[Any], strangers: bool) -> tuple[list[Team], Floats, Floats]:
        """The teams, (n, S) draws of what they are worth, and (S,) of the margin; a stranger is drawn from the population.

        Where skills sum to zero, the population's mean lies around theirs by spread / sqrt(K).
        """
        teams = refuse_bad_line_up(line_up, self.names, strangers)
        every = max(1, self.values.shape[0] // AVERAGED)
        values, spread = self.values[::every], self.spread.ravel()[::every]
        place = {name: k for k, name in enumerate(self.names)}
        new = sorted({name for team in teams for name in team if name not in place})
        if new and np.isinf(spread).any():
            raise ValueError(
                f"under a flat prior nothing is known of {new[0]!r}, who was in no game; give us.Gaussian(variance)"
            )
        rng = np.random.default_rng(0)
        level = rng.standard_normal(len(spread)) / np.sqrt(len(self.names)) if self.orders.level else 0.0
        drawn = {name: spread * (rng.standard_normal(len(spread)) + level) for name in new}
        worth = [sum(drawn[n] if n in drawn else values[:, place[n]] for n in team) for team in teams]
        return teams, np.stack(worth), self.margin.ravel()[::every]


def refuse_bad_line_up(line_up: Sequence[Any], names: Sequence[str], strangers: bool) -> list[Team]:
    """The entries as teams; refuses fewer than two, players who stand twice, and strangers unless they are allowed."""
    teams = [as_team(entry) for entry in line_up]
    if len(teams) < 2:
        raise ValueError(f"a line-up needs at least two entries; there are {len(teams)}")
    if not all(teams):
        raise ValueError("an entry of the line-up has no players")
    members = [name for team in teams for name in team]
    if len(set(members)) < len(members):
        raise ValueError(f"{next(n for n in members if members.count(n) > 1)} stands twice in the line-up")
    known = set(names)
    new = next((name for name in members if name not in known), None)
    if new is not None and not strangers:
        near = difflib.get_close_matches(new, names, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"{new!r} was in no game{hint}; say strangers to take a player never seen for anybody")
    return teams


def _read(file: Any) -> Ranking:
    """What `save` wrote, checked afresh as it is put together."""

    def get(name: str) -> Any:
        return content(file[name])

    orders = Orders(
        tuple(get("posterior/player").tolist()), get("observed_data/member"), get("constant_data/first"),
        get("constant_data/start"), get("observed_data/tied"), get("observed_data/known"), tuple(get("observed_data/game").tolist()),
    )  # fmt: skip
    stats = {key: get(f"sample_stats/{key}") for key in file.get("sample_stats", ()) if key not in ("chain", "draw")}
    skills, spread, margin = (get(f"posterior/{name}") for name in ("skill", "spread", "margin"))
    return Ranking(orders, skills, spread, margin, str(file.attrs["noise"]), stats, json.loads(file.attrs["settings"]))
