"""One race, one day, one date more: what an update costs beside a new fit, and whether both agree.

Five seasons of Formula 1 with skills that change, to which the last race comes; ten thousand trials
of a rat with values that change, to which its last session of 250 trials comes; both by draws, four
chains on one core. A fit makes 1,000 draws a chain after a warm-up of 1,000, as by default, and
`update` a tenth of them after 50 or 40 from where chains of the earlier fit ended, as by default
too: so it has fewer effective draws, which the table shows. z is the difference of two means in
units of their Monte-Carlo error, the largest of log sizes and of skills or weights at the end; with
as many as there are, 3.5 is seen once in a few hundred runs where nothing is wrong.

Then `SkillFilter`, which makes no draws: tennis matches date by date, the last five dates, against
a new filter of all of them. The difference is the largest of any player's skill at the end, in
units of its sd; sizes are those of the earlier filter in both. Seconds are of the processor, the
median of several. The data are looked for in `shared/data` beside the repository.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, table
from benchmarks._sports import find, formula_one, tennis
from benchmarks.rat import model_of, rat
from benchmarks.walk_forward import SKILLS
from revealed._types import Floats
from revealed.results.diagnostics import ess_bulk, mcse_mean

SESSION = 250  # trials
SHARE = 0.1  # of a fit, that an update may take
LARGEST_Z = 4.5  # of some sixty differences, which nothing wrong exceeds once in 2,000 runs


def seconds_of(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the seconds of the processor that it took."""
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def compare(
    name: str, seen: Any, new: Any, model: Any, draws: int, times: int, watched: Any
) -> dict[str, Any]:
    """Updates with new data, beside a fit of all.

    watched: of a posterior, (chain, draw, n) numbers whose means are compared.
    """
    print(name, file=sys.stderr, flush=True)
    settings: dict[str, Any] = {"draws": draws, "executor": 1, "progress": False}
    earlier = rv.fit(seen, model, seed=1, **settings)
    # one to compile
    earlier.update(new, draws=10, progress=False)
    # a tenth of the draws of a fit, as by default
    some: dict[str, Any] = {"draws": max(draws // 10, 4), "progress": False}
    updates = [
        seconds_of(partial(earlier.update, new, seed=seed, **some)) for seed in range(2, 2 + times)
    ]
    whole, fit_seconds = seconds_of(lambda: rv.fit(seen + new, model, seed=9, **settings))
    one, other = watched(updates[0][0]), watched(whole)
    error = np.sqrt(mcse_mean(one) ** 2 + mcse_mean(other) ** 2)
    gap = one.mean(axis=(0, 1)) - other.mean(axis=(0, 1))
    return {
        "name": name,
        "fit_seconds": fit_seconds,
        "update_seconds": float(np.median([taken for _, taken in updates])),
        "fit_effective": float(ess_bulk(other).min()),
        "update_effective": float(ess_bulk(one).min()),
        "largest_z": float(np.abs(gap / error).max()),
        "compared": len(gap),
    }


def watched_skills(post: Any) -> Floats:
    """Log sizes, and the skills of the ten best in the end."""
    names = sorted(post.data.game(len(post.data) - 1)[0])[:10]
    skills = post.skills_at([post.times[-1]], [team[0] for team in names])
    logs = [np.log(post.draws[name]) for name in ("drift_sd", "spread")]
    return np.concatenate([skills.reshape(*post.shape, -1), *logs], axis=2)


def watched_values(post: Any) -> Floats:
    """Log sizes, and the weights at the end and in the middle."""
    values = post.draws["value"]
    ends = [values[:, :, n] for n in (-1, values.shape[2] // 2)]
    return np.concatenate([*ends, np.log(post.draws["drift_sd"])], axis=2)


def measure_filter(matches: int, dates: int) -> dict[str, Any] | None:
    """The last few dates of tennis, each beside a new filter of all matches so far."""
    games = tennis()
    if games is None:
        return None
    print("tennis", file=sys.stderr, flush=True)
    games = games[:matches] if matches else games
    assert games.times is not None
    begins = np.searchsorted(games.times, np.unique(games.times)[-dates:])
    found = rv.SkillFilter(games[: begins[0]], SKILLS)
    known = SKILLS.replace(
        prior=rv.Normal(found.spread), over_time=rv.RandomWalk(float(found.drift_sd))
    )
    updates = []
    for low, high in zip(begins, [*begins[1:], len(games)], strict=True):
        new = games[int(low) : int(high)]
        updates.append(seconds_of(partial(found.update, new))[1])
    _, whole_seconds = seconds_of(lambda: rv.SkillFilter(games, SKILLS))
    given, given_seconds = seconds_of(lambda: rv.SkillFilter(games, known))
    at = float(games.times[-1])
    (mean, sd), (other, _) = found.at(at), given.at(at)
    return {
        "matches": len(games),
        "update_seconds": float(np.median(updates)),
        "fit_seconds": whole_seconds,
        "given_seconds": given_seconds,
        "largest_gap": float(np.abs((mean - other) / sd).max()),
    }


def measure(draws: int, times: int, matches: int) -> Result:
    """Both kinds of draws, and the filter."""
    found: Result = {"draws": [], "filter": measure_filter(matches, 5)}
    games = formula_one()
    if games is not None:
        last = len(games) - 1
        found["draws"].append(
            compare(
                "Formula 1, one race after 102",
                games[:last],
                games[last:],
                SKILLS,
                draws,
                times,
                watched_skills,
            )
        )
    if find("rat_w053.parquet") is not None:
        d = rat(10_000, 3)
        found["draws"].append(
            compare(
                "a rat, one session after 39",
                d[: len(d) - SESSION],
                d[len(d) - SESSION :],
                model_of(rv.RandomWalk()),
                draws,
                times,
                watched_values,
            )
        )
    if not found["draws"]:
        raise ValueError("neither Formula 1 nor the rat has its file in shared/data")
    return found


def tables(result: Result) -> str:
    """Draws, then the filter."""
    rows = table(
        ("data", "fit, s", "update, s", "share", "effective draws", "of update", "largest z"),
        [
            (
                line["name"],
                f"{line['fit_seconds']:.1f}",
                f"{line['update_seconds']:.1f}",
                f"{line['update_seconds'] / line['fit_seconds']:.1%}",
                f"{line['fit_effective']:,.0f}",
                f"{line['update_effective']:,.0f}",
                f"{line['largest_z']:.1f} of {line['compared']}",
            )
            for line in result["draws"]
        ],
    )
    own = result["filter"]
    if own is None:
        return rows
    return (
        f"{rows}\n\nTennis, {own['matches']:,} matches: a date more takes the filter "
        f"{own['update_seconds']:.2f} s, a new one of all {own['fit_seconds']:.1f} s, with sizes "
        f"given {own['given_seconds']:.2f} s; skills differ by at most "
        f"{own['largest_gap']:.3f} sds."
    )


def finding(result: Result) -> str:
    """The share of a fit that updates take."""
    said = [
        f"{line['name']}: {line['update_seconds'] / line['fit_seconds']:.0%} of a fit"
        for line in result["draws"]
    ]
    own = result["filter"]
    if own is not None:
        said.append(f"a filter of tennis {own['update_seconds'] / own['fit_seconds']:.1%}")
    return "; ".join(said)


def missed(result: Result) -> str:
    """A sentence where an update takes more than a tenth of a fit, or does not agree with it."""
    wrong = [
        line["name"]
        for line in result["draws"]
        if line["update_seconds"] > SHARE * line["fit_seconds"] or line["largest_z"] > LARGEST_Z
    ]
    return f"an update is too slow or too far from a fit: {', '.join(wrong)}" if wrong else ""


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="More data after a fit",
    takes="ten minutes",
    options={
        "draws": Option(1000, "draws a chain of a fit", quick=40),
        "times": Option(5, "updates, of which the median is told", quick=1),
        "matches": Option(0, "the first so many matches of tennis; 0 is all", quick=3000),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
