"""Experiment 1 (section 5.2): how well the paper's samplers mix on Tetris."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.api import fit_quietly
from revealed.environments.tetris import Tetris
from revealed.models.choice import ChoiceModel
from revealed.models.priors import Normal
from revealed.replication.figures import SAMPLER_LABELS, plot_autocorrelations, plot_traces
from revealed.replication.study import ReportProgress, Section
from revealed.replication.tetris_players import PLAN, VALUES, player_generator
from revealed.results.diagnostics import autocorrelation, ess_bulk

LAGS = np.unique(np.geomspace(1, 5000, 40).astype(int))


def mixing_sections(
    tetris: Tetris,
    rollouts: Any,
    posts: Any,
    seed: int,
    length: int,
    numbers: dict[str, Any],
    report_progress: ReportProgress,
) -> list[Section]:
    """How long data augmentation, PX-DA and the default sampler remember.

    Adds `autocorrelation` and `effective` to the numbers.
    """
    # The paper's example: the efficient player, 50 decisions.
    d = tetris.decisions(rollouts["efficient"][0])[:50]
    curves = {}
    chains = {}
    for name, options in (
        ("da", {"utilities": "metropolis"}),
        ("px-scale", PLAN.px_options),
        ("auto", {}),
    ):
        report_progress(f"tetris: autocorrelation of {SAMPLER_LABELS[name]}")
        post = fit_quietly(
            d,
            ChoiceModel(Normal(PLAN.prior_sd)),
            sampler=name,
            draws=length,
            warmup=length // 4,
            chains=2,
            seed=seed,
            options=options,
        )
        curves[name] = autocorrelation(post.draws["value"][:, :, 0]).mean(axis=0)[
            LAGS[length > LAGS]
        ]
        chains[name] = post.draws["value"][0, :, 0]
    numbers["autocorrelation"] = {"lags": LAGS[length > LAGS], **curves}
    shown = {SAMPLER_LABELS[name]: curve[None, None] for name, curve in curves.items()}
    # First the autocorrelation, then what it looks like in a trace.
    forgets = Section(
        "PX-DA forgets faster than data augmentation",
        "the autocorrelation of PX-DA is significantly lower than that of data augmentation "
        "(first component, true values (-3, -15, -1)).",
        f"at lag 1,000 it is {_value_at_lag(curves['px-scale'], 1000):.2f} by PX-DA with the "
        f"paper's a = 3, b = 100,000, {_value_at_lag(curves['da'], 1000):.2f} by data "
        "augmentation, and "
        f"{_value_at_lag(curves['auto'], 1):.2f} at lag 1 by the default sampler.",
        plot_autocorrelations(
            "How long three samplers remember",
            ["height, 50 decisions"],
            LAGS[length > LAGS],
            shown,
            "Values (-3, -15, -1), the first seed.",
        ),
        "Autocorrelation of the first component by data augmentation, PX-DA and the default "
        "sampler.",
    )
    # effective draws say the same in one number
    effective = {name: float(ess_bulk(chain[None])) for name, chain in chains.items()}
    numbers["effective"] = effective
    looks = Section(
        "What that looks like",
        "traces of PX-DA, after a burn-in, from which it draws its histograms.",
        f"of {length:,} iterations data augmentation makes {effective['da']:,.0f} effective "
        f"draws, PX-DA {effective['px-scale']:,.0f}, "
        f"the default sampler {effective['auto']:,.0f}. Ours are drawn by the last.",
        plot_traces(
            "Height by three samplers, 50 decisions",
            chains,
            "Values (-3, -15, -1), the first seed, one chain.",
        ),
        "Traces of the first component by data augmentation, PX-DA and the default sampler.",
    )
    return [forgets, looks]


def _value_at_lag(curve: Floats, lag: int) -> float:
    """The autocorrelation at a lag, interpolated between those that are kept."""
    return float(np.interp(lag, LAGS[: len(curve)], curve))


def acceptance_section(
    rollouts: Any, seed: int, length: int, numbers: dict[str, Any], report_progress: ReportProgress
) -> Section:
    """How often the paper's Metropolis-Hastings step is accepted.

    Its proposal may be refined by Newton steps. Adds `acceptance` to the numbers.
    """
    found: dict[str, list[float]] = {}
    literal = Tetris(actions="literal")
    # With and without Newton steps, and with all four rotations as in the paper's text.
    for label, newton, kind in (
        ("distinct, refined", 3, "distinct"),
        ("distinct, one step", 1, "distinct"),
        ("distinct, none", 0, "distinct"),
        ("literal, none", 0, "literal"),
    ):
        report_progress(f"tetris: acceptance of the paper's step, {label}")
        tetris = literal if kind == "literal" else Tetris()
        found[label] = []
        for i, (name, value) in enumerate(VALUES.items()):
            # literal rotations need decisions of their own
            rollout = (
                tetris.simulate(player_generator(seed, 2000 + i), value, 50)
                if kind == "literal"
                else rollouts[name][0]
            )
            post = fit_quietly(
                tetris.decisions(rollout)[:50],
                ChoiceModel(Normal(PLAN.prior_sd)),
                sampler="px-scale",
                draws=length // 10,
                warmup=length // 20,
                chains=2,
                seed=seed,
                options=PLAN.px_options | {"newton": newton},
            )
            found[label].append(float(post.sample_stats["acceptance_rate"].mean()))
    numbers["acceptance"] = found
    return Section(
        "How often the paper's step is accepted",
        "the Metropolis-Hastings acceptance rate was between 0.5 and 0.9 in all cases.",
        "; ".join(f"{label} {min(rates):.2f} - {max(rates):.2f}" for label, rates in found.items())
        + ". Refined means by Newton steps; the paper's text has all four rotations.",
    )
