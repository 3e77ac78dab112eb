"""Mice in a labyrinth: do strategies that take turns, or values that drift, predict their moves?

Rosenberg's labyrinth (Rosenberg, Zhang, Perona and Meister 2021) is a binary tree of 127 cells; 238
bouts of 500 moves each were recorded. Every fifth bout (0, 5, 10, ...) is held out; what is
compared is the mean log probability of its moves, each predicted from the earlier ones of its bout.
Moves are valued by features: of the cell and where the move leads (`cell`); of the cell before as
well (`previous`); of the last four cells as kinds of moves, which are the same at all places (back,
inwards, outwards, to the sibling, which way it turns, whether it returns to a cell), with the cell
(`kinds`) or with the cell and the one before (`history`).

Frequency tables of the last cells, each shrunk towards the shorter one by so many moves, are what
to beat. Features and the number of strategies were chosen on half of the training bouts, every
fifth of them set aside. Drift is a random walk of all values, in so many parts, over the steps of a
bout, which all bouts share, or over the record, where bouts that are held out lie between others;
its features are fewer, since a step of its sampler takes the cube of their number.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._maze import DATA, KINDS, Labyrinth, decisions, table_scores
from benchmarks._record import Benchmark, Option, Result, cell, table
from revealed.results.diagnostics import r_hat

# of the tables that are to be beaten; longer ones are shown beside them
CLAIMED_ORDERS = 3


@dataclass(frozen=True)
class Fits:
    """Fits of one run.

    of_moves: the moves of all bouts, by features; how: settings of every fit.
    """

    of_moves: dict[str, Any]
    bouts: int
    steps: int
    prior_sd: float
    how: dict[str, Any]

    def moves(self, kinds: str, bouts: Any, times: Any) -> Any:
        """The moves of some bouts, with a time (bouts, steps) each, or none."""
        import revealed as rv

        which = (bouts[:, None] * self.steps + np.arange(self.steps)).ravel()
        d = self.of_moves[kinds][which]
        if times is None:
            return d
        return rv.Decisions(
            d.rows,
            d.start,
            d.chosen,
            names=d.names,
            sessions=d.sessions,
            times=times.ravel()[which],
        )

    def score(
        self, kinds: str, over_time: Any, train: Any, test: Any, times: Any = None, **how: Any
    ) -> Result:
        """A fit to the training bouts, and how it predicts the others."""
        import revealed as rv

        model = rv.ChoiceModel(
            prior=rv.Normal(self.prior_sd), noise=rv.LogitNoise(), over_time=over_time
        )
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rv.NotConvergedWarning)
            # rows of one feature each add up to the same: the prior bounds what choices do not
            warnings.simplefilter("ignore", rv.UninformedWarning)
            post = rv.fit(self.moves(kinds, train, times), model, **self.how, **how)
        seconds = time.process_time() - began
        seen = self.moves(kinds, test, times)
        found = post.predict(seen, filtered=True) if times is None else post.predict(seen)
        logs = found.log_probability_chosen
        assert logs is not None
        # a single chain has nothing to agree with
        lp = post.sample_stats.get("lp") if how["chains"] > 1 else None
        return {
            "features": kinds,
            "coefficients": len(seen.names),
            "by_bout": logs.reshape(len(test), -1).mean(axis=1).tolist(),
            "r_hat": None if lp is None else float(r_hat(np.asarray(lp)[:, :, None])[0]),
            "draws": how["draws"] * how["chains"],
            "seconds": seconds,
        }


def measure(
    strategies: str,
    features: str,
    drifts: str,
    parts: int,
    prior_sd: float,
    orders: int,
    weights: str,
    bouts: int,
    choice_draws: int,
    choice_warmup: int,
    draws: int,
    warmup: int,
    drift_draws: int,
    chains: int,
    seed: int,
) -> Result:
    """Held-out scores of tables and of each model."""
    import revealed as rv

    if not DATA.exists():
        raise ValueError(f"{DATA.name} is not in shared/data beside the project")
    stored = np.load(DATA)
    states, actions = stored["states"][:bouts], stored["actions"][:bouts]
    count, steps = states.shape
    maze = Labyrinth(stored["next_state"], stored["states"], stored["actions"])
    held_out = np.arange(count) % 5 == 0
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    found: Result = {"tables": [], "choice": [], "models": []}
    for weight in map(float, weights.split(",")):
        for order in range(orders + 1):
            scores = table_scores(maze, states, actions, held_out, order, weight)
            found["tables"].append({"order": order, "weight": weight, "by_bout": scores.tolist()})
    wanted = {*features.split(","), *(each.split(":")[0] for each in drifts.split(","))}
    of_moves = {kinds: decisions(maze, states, actions, KINDS[kinds]) for kinds in sorted(wanted)}
    fits = Fits(of_moves, count, steps, prior_sd, {"seed": seed, "executor": 1, "progress": False})
    # on training bouts alone: every other one of them, a fifth of these set aside
    some = train[::2]
    aside = np.arange(len(some)) % 5 == 0
    for kinds in features.split(","):
        own = []
        for number in map(int, strategies.split(",")):
            over_time = rv.Switching(number)
            short = {"draws": choice_draws, "warmup": choice_warmup, "chains": 1}
            tried = fits.score(kinds, over_time, some[~aside], some[aside], **short)
            own.append({"strategies": number, **tried})
        found["choice"] += own
        best = max(own, key=mean_score)["strategies"]
        for number in sorted({1, best}):
            whole = {"draws": draws, "warmup": warmup, "chains": chains}
            made = fits.score(kinds, rv.Switching(number), train, test, **whole)
            found["models"].append({"strategies": number, "over": None, **made})
    clock = {
        "steps": np.tile(np.arange(steps) * parts // steps, (count, 1)),
        "record": np.tile((np.arange(count) * parts // count)[:, None], (1, steps)),
    }
    for kinds, over in (each.split(":") for each in drifts.split(",")):
        short = {"draws": drift_draws, "warmup": drift_draws, "chains": 1}
        walk = rv.RandomWalk(shared=True)
        made = fits.score(kinds, walk, train, test, clock[over], **short)
        found["models"].append({"strategies": None, "over": over, **made})
    return found


def mean_score(scored: Result) -> float:
    """Nats a move; bouts are equally long."""
    return float(np.mean(scored["by_bout"]))


def best_table(result: Result, orders: int = CLAIMED_ORDERS) -> Result:
    """The table of at most these orders that is best on held-out bouts; nobody could know it."""
    short = [each for each in result["tables"] if each["order"] <= orders]
    best: Result = max(short, key=mean_score)
    return best


def chosen(result: Result) -> Result:
    """The strategies that predicted best on training bouts, fitted to all of them."""
    best = max(result["choice"], key=mean_score)
    found: Result = next(
        each
        for each in result["models"]
        if (each["features"], each["strategies"]) == (best["features"], best["strategies"])
    )
    return found


def difference(scored: Result, table_of: Result) -> tuple[float, float]:
    """By how much one is better than a table, bout by bout, and the standard error."""
    gaps = np.subtract(scored["by_bout"], table_of["by_bout"])
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def named(model: Result) -> str:
    """A model in words."""
    words = f"features `{model['features']}` ({model['coefficients']})"
    if model["strategies"] is None:
        return (
            f"{words}, drift over the {'steps of a bout' if model['over'] == 'steps' else 'record'}"
        )
    several = model["strategies"] > 1
    return f"{words}, {model['strategies']} strategies" if several else f"{words}, values that stay"


def tables(result: Result) -> str:
    """Markdown: frequency tables and models on held-out bouts; what was chosen from."""
    best = best_table(result)

    def against(scored: Result) -> str:
        mean, error = difference(scored, best)
        return f"{mean:+.4f} ({error:.4f})"

    lines = [
        [
            f"frequencies given {each['order']} cells before, shrunk by {each['weight']:g}",
            f"{mean_score(each):.4f}",
            "" if each is best else against(each),
            "",
            "",
            "",
        ]
        for each in result["tables"]
    ]
    lines += [
        [
            named(m),
            f"{mean_score(m):.4f}",
            against(m),
            f"{m['draws']}",
            cell(m["r_hat"], ".2f"),
            f"{m['seconds']:.0f} s",
        ]
        for m in result["models"]
    ]
    heads = [
        "model",
        "nats a move",
        f"against the best table of order up to {CLAIMED_ORDERS} (se over bouts)",
        "draws",
        "R-hat of log posterior",
        "CPU time",
    ]
    numbers = sorted({each["strategies"] for each in result["choice"]})
    names = list(dict.fromkeys(each["features"] for each in result["choice"]))
    scores = {(each["features"], each["strategies"]): each for each in result["choice"]}
    rows = [
        [f"`{name}`", *(f"{mean_score(scores[name, n]):.4f}" for n in numbers)] for name in names
    ]
    choice = table(["features", *(f"{n} strategies" if n > 1 else "one" for n in numbers)], rows)
    return (
        f"{table(heads, lines)}\n\nThe choice, on bouts that were set aside from a half of the "
        f"training bouts:\n\n{choice}"
    )


def finding(result: Result) -> str:
    """The model that was chosen, and the best table."""
    ours, best = chosen(result), best_table(result)
    longest = max(each["order"] for each in result["tables"])
    longer = best_table(result, longest)
    mean, error = difference(ours, best)
    more, error_of_more = difference(ours, longer)
    return (
        f"chosen on training bouts: {named(ours)}: {mean_score(ours):.4f} nats a move on held-out "
        f"bouts; the best table, of order {best['order']}, {mean_score(best):.4f}: {mean:+.4f} "
        f"(se {error:.4f} over bouts); the best of order up to {longest}, of {longer['order']}, "
        f"{mean_score(longer):.4f}: {more:+.4f} ({error_of_more:.4f})"
    )


def missed(result: Result) -> str:
    """A sentence where what was chosen does not predict better than every table."""
    mean, error = difference(chosen(result), best_table(result))
    return (
        ""
        if mean > 2.0 * error
        else "What was chosen does not predict better than every frequency table of order up to "
        f"{CLAIMED_ORDERS} by two standard errors."
    )


BENCHMARK = Benchmark(
    module=__name__,
    about=__doc__,
    title="Strategies of mice in a labyrinth",
    takes="8 minutes",
    options={
        "strategies": Option("1,2,3", "numbers of strategies to choose from", "1,2"),
        "features": Option("cell,previous,history", "sets of features", "cell"),
        "drifts": Option(
            "cell:steps,cell:record,kinds:steps,kinds:record",
            "features of values that drift, and over what",
            "cell:steps",
        ),
        "parts": Option(4, "in which values differ by drift", 2),
        "prior_sd": Option(1.0, "of each coefficient, chosen on the training bouts"),
        "orders": Option(5, "of tables, at most", 2),
        "weights": Option("10,30", "of the shorter table in each longer one", "10"),
        "bouts": Option(238, "of the record", 20),
        "choice_draws": Option(10, "of one chain, to choose", 10),
        "choice_warmup": Option(25, "iterations before", 20),
        "draws": Option(40, "kept from each chain", 10),
        "warmup": Option(80, "iterations before", 20),
        "drift_draws": Option(15, "of one chain of values that drift, and iterations before", 5),
        "chains": Option(2, "independent chains", 1),
        "seed": Option(1, "of the chains"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
