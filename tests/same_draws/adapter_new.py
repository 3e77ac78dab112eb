"""What cases.py needs of the package, in the vocabulary of cases.py: this file is the new package, `revealed`.

To pin another package, write adapter_new.py with the same names. What goes in is plain (numbers, arrays, lists, words) or a handle that
some function of the adapter gave back; what comes out to be digested is a plain dict {name: array}. Such a dict may hold another under "stats",
whose names compare.py forgives. Words of the cases, which an adapter translates:

    engine   "auto" "blended" "da" "px-scale" "px-translate" "px-both" "ibis" "laplace"; with noise "auto" "conditioned" "da"
    options  {"utilities": "exact" | "metropolis", "a": , "b": , "newton": }
    prior    what normal(), learnt(), flat() gave; None is the package's own default
    run      draws, warmup, chains, seed, thin, threads, init, checkpoint, resume, checkpoint_seconds, cluster
             (checkpoint: a path; cluster: a dask client)

Sds are what is given; whoever wants variances squares them. All sds of the cases have exact squares.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

import revealed as rv
import revealed.sklearn
from revealed.environments import bus_engine as _bus
from revealed.environments import tetris as _tetris
from revealed.models import likelihood as _likelihood
from revealed.models.priors import resolve_prior as _resolve
from revealed.results import diagnostics as _diagnostics

PACKAGE = rv
SAMPLERS = {"blended": "composite", "conditioned": "ghk-hmc"}  # the others kept their names
Numbers = dict[str, Any]


def _square(sd: Any) -> Any:
    if isinstance(sd, dict):
        return {name: float(each) ** 2 for name, each in sd.items()}
    return float(sd) ** 2 if np.ndim(sd) == 0 else np.asarray(sd, float) ** 2


# What is believed


def normal(sd: Any = 50.0, mean: Any = 0.0, sum_to_zero: bool | None = None, covariance: Any = None) -> Any:
    """sd: a number, K of them, or {block: number}; or a (K, K) covariance. sum_to_zero: of all blocks, None to follow them."""
    if covariance is not None:
        return rv.Normal(mean=mean, sum_to_zero=sum_to_zero, covariance=np.asarray(covariance, float))
    return rv.Normal(sd, mean, sum_to_zero)


def learnt(
    scale: float = 10.0, shape_sd: Any = None, shape_covariance: Any = None, mean: Any = 0.0, sum_to_zero: bool | None = None
) -> Any:
    """A normal whose sd is learnt, scale |t| with t Student with four degrees of freedom; times sds or a covariance of size one."""
    shape = None if shape_sd is None else _square(shape_sd)
    shape = shape if shape_covariance is None else np.asarray(shape_covariance, float)
    return rv.Normal(rv.HalfStudentT(4, scale=scale), mean, sum_to_zero, shape)


def flat(sum_to_zero: bool | None = None) -> Any:
    return rv.Flat(sum_to_zero)


def full_noise(base: Any = None, scale: str = "trace", df: float | None = None, centre: Any = None) -> Any:
    return rv.CorrelatedNoise(base, scale, df, centre)


def known_noise(base: Any, others: Any, covariance: Any, points: int = 256) -> Any:
    return rv.NoiseCovariance(base, tuple(others), np.asarray(covariance, float), points)


def prior_numbers(prior: Any, d: Any, seed: int, points: Any = None) -> Numbers:
    """The prior in the coordinates of decisions: basis, constants, precision, mean; draws from it and its log density."""
    placed = _resolve(prior, d)
    out = {"basis": placed.basis, "constants": placed.constant_directions, "precision": placed.precision, "mean": placed.mean}
    if not placed.flat:
        out["draws"] = placed.draw(np.random.default_rng(seed), 20)
        out["log_density"] = placed.log_density(out["draws"])
    return out


# What was observed


def block(name: str, size: int, sum_to_zero: bool = False) -> Any:
    return rv.Block(name, size, sum_to_zero)


def decisions(
    rows: Any, start: Any, chosen: Any = None, *, names: Any = None, actions: Any = None, groups: Any = None, blocks: Any = None
) -> Any:
    return rv.Decisions(rows, start, chosen, names=names, actions=actions, groups=groups, blocks=blocks)


def with_choices(d: Any, chosen: Any) -> Any:
    return d.with_choices(chosen)


def pick(d: Any, which: Any) -> Any:
    """Some of the decisions, by slice or positions."""
    return d[which]


def join(one: Any, other: Any) -> Any:
    return one + other


def rows_of(d: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """rows (dense or sparse), start, chosen."""
    return d.rows, d.start, d.chosen


def decision_numbers(d: Any) -> Numbers:
    rows = d.rows.toarray() if hasattr(d.rows, "toarray") else d.rows
    out = {"rows": rows, "start": d.start, "names": np.array(d.names)}
    for name in ("chosen", "actions", "groups"):
        if getattr(d, name) is not None:
            out[name] = np.asarray(getattr(d, name))
    out["blocks"] = np.array([f"{b.name} {b.size} {bool(b.sum_to_zero)}" for b in d.blocks])
    return out


def to_file(d: Any, path: Path) -> None:
    """.csv or .parquet"""
    rv.write_file(d, path)


def read_file(path: Path, **columns: Any) -> Any:
    """columns: decision, chosen, action, group, available, features."""
    return rv.read_file(path, **columns)


def to_table(d: Any) -> Any:
    """A pyarrow table."""
    return rv.to_dataframe(d)


def from_table(table: Any, **columns: Any) -> Any:
    return rv.from_dataframe(table, **columns)


def parquet_folder(path: Path) -> Any:
    """A folder of Parquet files, read piece by piece."""
    return rv.scan_parquet(path)


# Finite worlds


def random_mdp(rng: np.random.Generator, states: int, actions: int, concentration: float = 1.0) -> Any:
    return rv.random_mdp(rng, states, actions, concentration)


def mdp(transitions: Any, available: Any = None, states: Any = None, actions: Any = None) -> Any:
    return rv.MDP(transitions, available, states=states, actions=actions)


def mdp_transitions(m: Any) -> Any:
    """(M, N, N), or a tuple of sparse matrices."""
    return m.transitions


def mdp_decisions(m: Any, states: Any, actions: Any = None, action_rewards: bool = False) -> Any:
    return m.decisions(states, actions, action_rewards=action_rewards)


def mdp_simulate(m: Any, rng: Any, value: Any, length: int, start: Any = None, action_reward: Any = None) -> tuple[Any, Any]:
    """States and actions."""
    seen = m.simulate(rng, value, length, start, action_reward=action_reward)
    return seen.states, seen.actions


def mdp_solve(m: Any, reward: Any, discount: float, action_reward: Any = None, noise: bool = False) -> np.ndarray:
    return m.solve(reward, discount, action_reward=action_reward, noise=noise)


def mdp_policy(m: Any, value: Any, action_reward: Any = None) -> np.ndarray:
    return m.policy(value, action_reward=action_reward)


def mdp_reward(m: Any, value: Any, discount: float, noise: bool = False, action_reward: Any = None) -> np.ndarray:
    """Draws of the reward behind draws of the value."""
    return m.reward(value, discount, noise=noise, action_reward=action_reward).draws


# Fits


def fit(
    d: Any, prior: Any = None, engine: str = "auto", options: Any = None, noise: Any = None, init: Any = None, **run: Any
) -> Any:
    model = rv.ChoiceModel(prior=prior, noise=noise or rv.NormalNoise())
    return rv.fit(d, model, sampler=SAMPLERS.get(engine, engine), options=options, init=init, **_run(run))


def _run(run: dict[str, Any]) -> dict[str, Any]:
    """What `rv.fit` is given: threads and cluster are its executor."""
    given = {name: value for name, value in run.items() if name not in ("threads", "cluster")}
    return {"progress": False, "executor": run.get("cluster", run.get("threads")), **given}


def _grouped(d: Any, by: Any) -> Any:
    """Decisions with their groups: a table with the name of its column, or decisions with a label each or their own."""
    if not isinstance(d, rv.Decisions):
        return rv.from_dataframe(d, group=by or "group")
    if by is None or isinstance(by, str):
        return d
    return rv.Decisions(
        d.rows, d.start, d.chosen, names=d.names, blocks=d.blocks, actions=d.actions, groups=by, ids=d.ids
    )


def fit_population(d: Any, by: Any = None, prior: Any = None, sd_scale: float = 5.0, **run: Any) -> Any:
    return rv.fit(_grouped(d, by), rv.ChoiceModel(prior=prior, groups=rv.Hierarchical(sd_scale)), **_run(run))


def fit_each(d: Any, by: Any = None, prior: Any = None, engine: str = "auto", options: Any = None, **run: Any) -> Any:
    model = rv.ChoiceModel(prior=prior, groups=rv.Separate())
    return rv.fit(_grouped(d, by), model, sampler=SAMPLERS.get(engine, engine), options=options, **_run(run))


def learn_mdp(trajectories: Any, states: Any, actions: Any, **given: Any) -> Any:
    """trajectories: (states, actions), or a list of such. Also concentration, prior, action_rewards, available, episodes, run."""
    rows = {name: given.pop(name) for name in ("concentration", "available", "action_rewards") if name in given}
    seen = rv.Trajectories(trajectories, states, actions, episodes=given.pop("episodes", None))
    model = rv.ChoiceModel(prior=given.pop("prior", None), transitions=rv.Dirichlet(**rows))
    return rv.fit(seen, model, **_run(given))


def rank(results: Any, prior: Any = None, winner_only: bool = False, noise: str = "entry", columns: Any = None, **run: Any) -> Any:
    """results: lists of entries, best first; a table; a path. columns: {"game", "player", "position", "team"}."""
    lists = isinstance(results, list)
    games = rv.Rankings.from_lists(results, winner_only) if lists else rv.read_rankings(
        results, winner_only=winner_only, **(columns or {})
    )
    return rv.fit(games, rv.RankingModel(prior=prior, team_noise=noise), **_run(run))


def stream(names: Any, prior: Any = None, particles: int = 1000, seed: int = 0, blocks: Any = None) -> Any:
    return rv.OnlineLearner(rv.ChoiceModel(prior=prior), names, particles, seed, blocks=blocks)


def stream_update(s: Any, rows: Any, chosen: Any = None) -> None:
    """One decision, or Decisions."""
    s.update(rows, chosen)


def stream_save(s: Any, path: Path) -> None:
    s.save(path)


def stream_load(path: Path) -> Any:
    return rv.OnlineLearner.load(path)


def stream_posterior(s: Any) -> Any:
    return s.posterior()


def stream_numbers(s: Any, rows: Any, seed: int) -> Numbers:
    """rows: of a next decision."""
    return {
        "particles": s.particles, "weights": s.weights, "log_evidence": s.log_evidence, "mean": s.mean, "sd": s.sd,
        "effective": s.effective_sample_size, "probabilities": s.probabilities(rows), "draw": s.draw(np.random.default_rng(seed)),
    }  # fmt: skip


# What came of them


def draws_of(post: Any) -> np.ndarray:
    """(chain, draw, K) of a fit."""
    return post.draws["value"]


def _stats(found: Any) -> Numbers:
    """Statistics of draws; the prior's sd was one of them."""
    return dict(found.sample_stats) | {name: each for name, each in found.draws.items() if name == "prior_sd"}


def numbers(found: Any) -> Numbers:
    """All that was drawn, by its kind."""
    if isinstance(found, rv.HierarchicalPosterior):
        mean, covariance = found.draws["population_mean"], found.draws["population_covariance"]
        return {"mean": mean, "covariance": covariance, "values": found.draws["value"], "stats": _stats(found)}
    if isinstance(found, rv.RankingPosterior):
        return {"skills": found.draws["skill"], "spread": found.spread, "margin": found.margin, "stats": _stats(found)}
    if isinstance(found, rv.MDPPosterior):
        return {"draws": found.draws["value"], "transitions": found.transitions, "stats": _stats(found)}
    if isinstance(found, rv.SeparatePosterior):
        out: Numbers = {"stats": {}}
        for label in found:
            mine = numbers(found.select(group=label))
            out["stats"] |= {f"{label}/{name}": each for name, each in mine.pop("stats").items()}
            out |= {f"{label}/{name}": each for name, each in mine.items()}
        return out
    out = {"draws": found.draws["value"], "stats": _stats(found)}
    if "noise_covariance" in found.draws:
        out["covariance"] = found.draws["noise_covariance"]
    for name in ("pareto_k", "effective", "proposals", "passes", "decisions"):  # what "laplace" tells
        if name in found.settings:
            out[f"laplace/{name}"] = found.settings[name]
    return out


def _summary_numbers(s: Any) -> Numbers:
    names = ("mean", "sd", "mcse", "low", "high", "ess_bulk", "ess_tail", "r_hat", "fixed")
    return {name: getattr(s, name) for name in names} | {"trusted": s.converged}


def summary(found: Any) -> Numbers:
    """mean, sd, mcse, low, high, ess_bulk, ess_tail, r_hat, fixed: (K,); trusted."""
    return _summary_numbers(found.summary())


def diagnostics(draws: np.ndarray) -> Numbers:
    """Of (chain, draw, K) draws."""
    names = ("r_hat", "ess_bulk", "ess_tail", "ess_mean", "ess_squares", "mcse_mean", "mcse_sd")
    out = {name: getattr(_diagnostics, {"ess_squares": "ess_sd"}.get(name, name))(draws) for name in names}
    return out | {"autocorrelation": _diagnostics.autocorrelation(draws[:, :, 0])}


def summary_of_players(population: Any) -> Numbers:
    return _summary_numbers(population.summary_of_groups())


def log_likelihood_of(found: Any) -> np.ndarray:
    """(chain, draw, T) of every choice of what was fitted, as ArviZ gets it."""
    (logs,) = found.to_arviz(log_likelihood=True).log_likelihood.data_vars.values()
    return np.asarray(logs)


def save(found: Any, path: Path) -> None:
    found.save(path)


def load(path: Path, kind: str = "posterior") -> Any:
    """kind: posterior, population, ranking, mdp."""
    return rv.load(path)


def _prediction_numbers(found: Any) -> Numbers:
    out = {"probabilities": found.probabilities, "action": found.predicted, "confidence": found.confidence}
    if found.log_probability_chosen is not None:
        told = found.calibration(5)
        out |= {"log_taken": found.log_probability_chosen, "error": found.error_rate, "log_score": found.log_score}
        fields = ("low", "high", "count", "predicted", "observed", "standard_error", "error")
        out |= {f"calibration/{name}": getattr(told, name) for name in fields}
    return out


def predict(post: Any, d: Any, method: str = "average", seed: int = 0) -> Numbers:
    """post: a fit, or draws (S, K), or a point (K,). method: average, vote, point."""
    return _prediction_numbers(rv.predict(post, d, method, seed=seed))


def _policy_numbers(found: Any) -> Numbers:
    names = ("optimal", "probability", "low", "high", "best", "certainty")
    return {name: getattr(found, name) for name in names}


def policy(post: Any, d: Any) -> Numbers:
    return _policy_numbers(rv.policy(post, d))


def identify(post: Any) -> Numbers:
    found = post.identification()
    out = {
        "posterior_sd": found.posterior_sd, "directions": found.directions, "learnt": found.contraction, "untested": found.unidentified,
        "explained": found.explained, "decisions": found.decisions,
    }  # fmt: skip
    if found.prior_sd is not None:
        out |= {"prior_sd": found.prior_sd, "ratio": found.sd_ratio}
    if found.unbounded is not None:
        out["opening"] = found.unbounded.direction
    if found.sensitivity is not None:
        s = found.sensitivity
        out |= {"sensitivity/modes": s.modes, "sensitivity/sds": s.sds, "sensitivity/moves": s.moves}
    return out


def compare(posts: dict[str, Any]) -> Numbers:
    found = rv.compare(posts)
    names = ("elpd", "elpd_se", "behind", "behind_se", "log_evidence", "log_evidence_se")
    new = {"behind": "elpd_diff", "behind_se": "elpd_diff_se"}
    return {name: getattr(found, new.get(name, name)) for name in names} | {
        "models": np.array(found.models), "shaky": np.array(found.n_high_pareto_k), "decisions": found.decisions,
    }  # fmt: skip


def population_more(p: Any, label: Any, new: Any, d: Any, by: Any) -> Numbers:
    """One player, a new one, predictions of decisions by some players among whom `new` are new, and shrinkage."""
    shrunk = p.shrinkage()
    out = {f"player/{name}": each for name, each in numbers(p.select(group=label)).items() if name != "stats"}
    out |= {f"player prediction/{name}": each for name, each in predict(p.select(group=label), d).items()}
    out |= {f"prediction/{name}": each for name, each in _prediction_numbers(p.predict(_grouped(d, by), new, 3)).items()}
    out |= {"sd": p.population_sd, "new_player": p.new_group(5), "separate": shrunk.unpooled, "shrunken": shrunk.pooled}
    return out | {"kept": shrunk.shrinkage_factor, "centre": shrunk.centre}


def mdp_more(found: Any, states: Any, actions: Any, discount: float) -> Numbers:
    """What follows from a world that was learnt with the value."""
    out = {"mean": found.mean_transitions, "sd": found.sd_transitions, "reward": found.reward(discount).draws}
    out |= {"noisy reward": found.reward(discount, noise=True).draws, "row": found.transition(1, 0)}
    out |= {f"policy/{name}": each for name, each in _policy_numbers(found.policy()).items()}
    return out | {f"prediction/{n}": each for n, each in _prediction_numbers(found.predict(states, actions)).items()}


def ranking_more(r: Any, line_up: Any, stranger: str | None = None) -> Numbers:
    out = {"win": r.win_probabilities(line_up), "order": r.order_probability(line_up), "log_score": r.log_score(r.rankings)}
    out["orderings"] = np.array([p for _, p in r.orderings(line_up)])
    out["better"] = r.probability_better(r.names[0], r.names[1])
    out |= {f"table/{key}": np.array([line[key] for line in r.table()]) for key in r.table()[0]}
    if stranger is not None:
        out["strangers"] = r.win_probabilities([*line_up, stranger], allow_new_players=True)
    return out


# The likelihood itself


def log_likelihood(d: Any, v: Any, noise: Any = None) -> np.ndarray:
    return rv.log_likelihood(d, v, noise)


def choice_probabilities(d: Any, v: Any, noise: Any = None) -> np.ndarray:
    return rv.choice_probabilities(d, v, noise)


def derivatives(d: Any, v: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood of all choices, its gradient and its Hessian."""
    return _likelihood.derivatives(d, v)


def posterior_mode(d: Any, prior: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mode, and minus the Hessian of the log posterior in the free coordinates."""
    return _likelihood.posterior_mode(d, _resolve(prior, d))


# scikit-learn


def classifier(prior_sd: Any = None, prior: Any = None, **settings: Any) -> Any:
    """prior_sd: one number, given as a number. settings: engine, draws, warmup, chains, intercept, random_state, options."""
    if "engine" in settings:
        engine = settings.pop("engine")
        settings["sampler"] = SAMPLERS.get(engine, engine)
    own = prior if prior_sd is None else rv.Normal(float(prior_sd))
    return revealed.sklearn.ChoiceClassifier(rv.ChoiceModel(prior=own), **settings)


def classifier_numbers(c: Any, X: Any, y: Any, decision: Any = None) -> Numbers:
    out = {f"fit/{name}": each for name, each in numbers(c.posterior_).items() if name != "stats"}
    more = {} if decision is None else {"decision": decision}
    return out | {
        "stats": _stats(c.posterior_), "coef": c.coef_, "coef_sd": c.coef_sd_, "intercept": c.intercept_,
        "predict": c.predict(X, **more), "proba": c.predict_proba(X, **more), "score": c.score(X, y, **more),
    }  # fmt: skip


# Worlds


def tetris(rows: int = 30, columns: int = 10, actions: str = "distinct", features: Any = "paper", names: Any = None) -> Any:
    """features: paper, bertsekas, dellacherie, rich; or a function of (board before, board after, lines removed)."""
    own = features if isinstance(features, str) else (lambda move: features(move.before, move.board, move.cleared))
    return _tetris.Tetris(rows, columns, actions, own, names)


def tetris_simulate(world: Any, rng: Any, value: Any, count: int) -> tuple[Any, Numbers]:
    """The path as a handle, and as numbers."""
    path = world.simulate(rng, value, count)
    return path, {name: getattr(path, name) for name in ("boards", "pieces", "rotations", "columns", "games")}


def tetris_decisions(world: Any, path: Any) -> Any:
    return world.decisions(path)


def tetris_play(world: Any, rng: Any, draws: Any, how: str, most: int) -> tuple[Any, Numbers]:
    """One game by draws of the value (S, K), by vote or by one of them."""
    choose = _tetris.voting_policy(draws) if how == "vote" else _tetris.sampling_policy(draws)
    steps = list(world.play(rng, choose, most))
    out = {name: np.array([getattr(s, name) for s in steps]) for name in ("piece", "rotation", "column")}
    out["board"] = np.stack([s.landing.board for s in steps])
    return steps, out | {"cleared": np.array([s.landing.cleared for s in steps])}


def tetris_write(path: Path, games: Any, seconds: Any = None) -> None:
    _tetris.write_games(path, games, seconds)


def tetris_read(path: Path) -> Any:
    return _tetris.read_games(path)


def tetris_games_decisions(games: Any, features: str) -> Any:
    return games.decisions(features=features)


def tetris_gym(seed: int, steps: int) -> Numbers:
    """The Gymnasium environment, with actions drawn among those allowed."""
    from revealed.environments.tetris.gym import TetrisEnv

    env = TetrisEnv()
    rng = np.random.default_rng(seed)
    seen, told = env.reset(seed=seed)
    boards, paid = [np.asarray(seen["board"])], []
    for _ in range(steps):
        mask = np.asarray(told["action_mask"])
        allowed = np.argwhere(mask) if mask.ndim > 1 else np.flatnonzero(mask)
        action = allowed[rng.integers(len(allowed))]
        seen, reward, over, _, told = env.step(tuple(action) if mask.ndim > 1 else int(action))
        boards.append(np.asarray(seen["board"]))
        paid.append(reward)
        if over:
            seen, told = env.reset()
    return {"boards": np.stack(boards), "rewards": np.array(paid)}


def bus_chances(increments: Any, bins: int, discount: float) -> np.ndarray:
    """(bins,) the probability of replacement by Rust's model."""
    return _bus.RustLogit(discount=discount).replacement_probability(increments, bins)


def bus_simulate(rng: Any, replacing: Any, increments: Any, buses: int, months: int) -> tuple[Any, Numbers]:
    seen = _bus.simulate_buses(rng, replacing, increments, buses, months)
    return seen, {"bus": seen.bus, "state": seen.state, "replaced": seen.replaced, "increments": seen.increments}


def bus_decisions(seen: Any, increments: Any, bins: int) -> Any:
    return seen.decisions(_bus.bus_mdp(increments, bins))


def bus_prior(bins: int, sd: float, length: float, action_sd: float) -> Any:
    """The smooth prior over mileage."""
    return _bus.smooth_prior(bins, sd, length, action_sd)


# The paper's experiments, as small as they go: the numbers of each


def _quiet(what: str) -> None:
    pass


@contextlib.contextmanager
def _shorter(*modules: Any) -> Any:
    """Studies whose fits are shorter than they think, for a while: 2 chains, 200 iterations of warm-up, 200 draws unless they say other draws."""
    before = [module.fit_quietly for module in modules]
    fit_quietly = before[0]

    def learn(data: Any, model: Any = None, **more: Any) -> Any:
        return fit_quietly(data, model, **{"draws": 200, **more, "chains": 2, "warmup": 200})

    try:
        for module in modules:
            module.fit_quietly = learn
        yield
    finally:
        for module, own in zip(modules, before, strict=True):
            module.fit_quietly = own


def paper_toy(part: str, seed: int, worlds: int, length: int) -> Numbers:
    """part: moves, proper, flat."""
    from revealed.replication import toy

    parts = {"moves": toy._expansion_study, "proper": toy._working_prior_study, "flat": toy._flat_prior_study}
    found = dict(parts[part](seed, worlds, length, _quiet)[0])
    if part == "flat":  # the old one has kappa, the variance, where the new one has the sd
        found["improper_at"] = {sd**2: count for sd, count in found["improper_at"].items()}
        found["worlds"] = found.pop("mdps")
    return found


def paper_pressure(player: str, seed: int) -> Numbers:
    """player: steady, hasty, careless; hundred blocks under every deadline."""
    from revealed.replication import time_pressure as pressure

    who = pressure.PLAYERS[player]
    conditions = [pressure._simulate_condition(seed, tau, who, pressure.PLAN.blocks) for tau in pressure.PLAN.deadlines]
    with _shorter(pressure):
        return pressure._player_section(who, conditions, seed, 1)[0]


def paper_person(games: Any, seed: int) -> Numbers:
    """A person's quick decisions (experiment 3), of games with seconds."""
    from revealed.replication import time_pressure as pressure

    with _shorter(pressure):
        return pressure._person_section(games, seed, True)[0]


def paper_human(games: Any, seed: int) -> Numbers:
    """Experiment 2, quick, from 50 and from 100 decisions."""
    from revealed.replication import human

    before = human.PLAN
    human.PLAN = dataclasses.replace(before, counts=(50, 100))
    try:
        with _shorter(human):
            return dict(human.run(games, seed, True, _quiet).numbers)
    finally:
        human.PLAN = before


def paper_tetris(seed: int, length: int) -> Numbers:
    """Pieces of experiment 1 with one seed: recovery, literal rotations, mixing, acceptance, survival and lengths."""
    from revealed.api import fit_quietly as learn
    from revealed.replication import tetris, tetris_mixing, tetris_play
    from revealed.replication.tetris_players import PLAN, VALUES, player_generator, thin_draws

    world, out = tetris.Tetris(), {}
    paths = {name: [world.simulate(player_generator(seed, 0), v, 500)] for name, v in VALUES.items()}
    posts: Any = {}
    for name in VALUES:
        d = world.decisions(paths[name][0])
        model = rv.ChoiceModel(prior=rv.Normal(PLAN.prior_sd))
        posts[name] = {n: [learn(d[:n], model, seed=seed, draws=250)] for n in (50, 100)}
        out[f"errors/{name}"] = rv.predict(thin_draws(posts[name][50][0].values), d[100:], "vote", seed=seed).error_rate
        out[f"draws/{name}"] = posts[name][50][0].draws["value"]
    told: Numbers = {}
    with _shorter(tetris, tetris_mixing):
        tetris._recovery_section(posts, seed, told, _quiet)
        tetris._literal_actions_section(seed, 1, told, _quiet)
        tetris_mixing.mixing_sections(world, paths, posts, seed, length, told, _quiet)
        tetris_mixing.acceptance_section(paths, seed, length, told, _quiet)
        tetris_play.survival_section(world, posts, seed, 1, told, _quiet)
    told["terminations"] = {name: [int(path.games.max()) for path in each] for name, each in paths.items()}
    tetris_play.termination_section(seed, told, 1, True, _quiet)
    return out | told


# The command line


def _command(*words: Any) -> str:
    """Run a command in this process; what it printed."""
    from revealed.cli import main

    before, said = sys.argv, io.StringIO()
    sys.argv = ["revealed", *map(str, words)]
    try:
        with contextlib.redirect_stdout(said):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"the command ended with {end.code}: {said.getvalue()}") from None
    finally:
        sys.argv = before
    return said.getvalue()


def cli_simulate(out: Path, truth: Path, states: int, actions: int, decisions: int, sd: float, seed: int) -> None:
    _command(
        "simulate", "--out", out, "--truth", truth, "--states", states, "--actions", actions, "--decisions", decisions,
        "--prior-sd", sd, "--seed", seed, "--no-progress",
    )  # fmt: skip


def cli_fit(table: Path, out: Path, sd: Any = None, sum_to_zero: bool = False, engine: str = "auto", **more: Any) -> None:
    """sd: a number, "flat", "learn" or None. more: utilities, a, b, draws, warmup, chains, thin, seed, features."""
    words: list[Any] = ["fit", table, "--out", out, "--sampler", SAMPLERS.get(engine, engine), "--json", "--no-progress"]
    words += {"flat": ["--flat"], "learn": ["--infer-prior-sd"], None: []}.get(sd) or ([] if sd is None else ["--prior-sd", sd])
    words += ["--sum-to-zero"] if sum_to_zero else []
    _command(*words, *(word for name, value in more.items() for word in (f"--{name}", value)))


def cli_predict(post: Path, table: Path, out: Path, method: str, seed: int) -> Numbers:
    _command("predict", post, table, "--out", out, "--method", method, "--seed", seed, "--json", "--no-progress")
    return _columns(out)


def cli_rank(results: Path, out: Path, saved: Path, sd: Any = None, **more: Any) -> Numbers:
    """sd: a number, "flat" or None. more: draws, warmup, chains, seed, noise, team."""
    words: list[Any] = ["rank", results, "--out", out, "--save", saved, "--json", "--no-progress"]
    words += ["--flat"] if sd == "flat" else [] if sd is None else ["--prior-sd", sd]
    _command(*words, *(word for name, value in more.items() for word in (f"--{name}", value)))
    return _columns(out)


def cli_demo(folder: Path, seed: int) -> None:
    """Leaves decisions.csv, posterior.nc and game.jsonl in the folder."""
    _command("demo", "--quick", "--out", folder, "--seed", seed, "--json", "--no-progress")


def cli_play(post: Path, out: Path, steps: int, seed: int) -> None:
    _command("play", post, "--out", out, "--steps", steps, "--seed", seed, "--json", "--no-progress")


def _columns(path: Path) -> Numbers:
    """The columns of a CSV file, in order, as text."""
    with path.open(newline="") as stream:
        head, *lines = csv.reader(stream)
    return {f"column {k}": np.array([line[k] for line in lines]) for k in range(len(head))}
