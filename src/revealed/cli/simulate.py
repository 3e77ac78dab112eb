"""`revealed simulate`: decisions of a made-up controller in a random finite MDP."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from revealed._validation import check_positive, check_writable
from revealed.cli._shared import Json, NoProgress, Seed, check_seed, print_json, progress
from revealed.cli._tables import TABLE_SUFFIXES, check_table_suffix


def simulate(
    out: Annotated[
        Path, typer.Option(help=f"Where the decisions go, {TABLE_SUFFIXES}.", show_default=False)
    ],
    states: Annotated[int, typer.Option(help="States of the world.")] = 7,
    actions: Annotated[int, typer.Option(help="Actions in each state.")] = 3,
    decisions: Annotated[int, typer.Option(help="Decisions to watch.")] = 50,
    prior_sd: Annotated[
        float, typer.Option(help="Sd of the prior that the controller's values are drawn from.")
    ] = 2.0,
    noise: Annotated[str, typer.Option(help="Of the controller: normal or logit.")] = "normal",
    lapse_rate: Annotated[
        float, typer.Option(help="How often it chooses blindly, each action as likely as another.")
    ] = 0.0,
    truth: Annotated[
        Path | None,
        typer.Option(help="Where the values and the transitions go, JSON.", show_default=False),
    ] = None,
    seed: Seed = 0,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Watch a noisy controller in a random finite world, and write down its decisions.

    Example: `revealed simulate --states 7 --decisions 50 --prior-sd 2 --seed 1 --out decisions.csv`
    """
    import numpy as np

    from revealed.io.atomic import atomic_write
    from revealed.io.files import write_file
    from revealed.mdp.random_process import random_mdp
    from revealed.models.priors import Normal, resolve_prior

    # Everything that can be refused is refused before any work is done.
    check_table_suffix(out)
    for path in filter(None, (out, truth)):
        check_writable(path)
    check_positive("--prior-sd", prior_sd)
    controller = _controller(noise, lapse_rate)
    with progress("watching the controller", no_progress):
        # Transitions, then the value from its prior, then the choices: one generator for all.
        rng = np.random.default_rng(check_seed(seed))
        mdp = random_mdp(rng, states, actions)
        value = resolve_prior(Normal(prior_sd), mdp.decisions([0])).draw(rng, 1)[0]
        observed = mdp.simulate(rng, value, decisions, noise=controller)
        write_file(mdp.decisions(observed.states, observed.actions), out)
        # what nobody would know in practice, to compare with
        if truth is not None:
            true_values = {
                "value": value.tolist(),
                "transitions": mdp.transitions.tolist(),
                "states": observed.states.tolist(),
                "actions": observed.actions.tolist(),
                "prior_sd": prior_sd,
                "noise": noise,
                "lapse_rate": lapse_rate,
                "seed": seed,
            }
            atomic_write(truth, json_format.dumps(true_values).encode())
    # The answer for machines, or a sentence for people with the command that comes next.
    if json:
        print_json(
            {
                "out": out,
                "truth": truth,
                "decisions": decisions,
                "states": states,
                "actions": actions,
                "prior_sd": prior_sd,
                "noise": noise,
                "lapse_rate": lapse_rate,
                "seed": seed,
                "value": value,
            }
        )
        return
    print(f"{decisions} decisions among {actions} actions in {states} states: {out}")
    if truth is not None:
        print(f"The values behind them and the transitions: {truth}")
    assumed = (" --noise logit" if noise == "logit" else "") + (" --lapse" if lapse_rate else "")
    print(
        f"Next: revealed fit {out} --sum-to-zero --prior-sd {prior_sd:g}{assumed} "
        "--out posterior.nc"
    )


def _controller(noise: str, lapse_rate: float) -> Any:
    """The noise that the options ask for, lapses at a known rate included."""
    from revealed.models.lapse import KnownLapse
    from revealed.models.noise import LogitNoise, NormalNoise

    if noise not in ("normal", "logit"):
        raise ValueError(f"--noise must be normal or logit; it is {noise!r}")
    if not 0.0 <= lapse_rate <= 1.0:
        raise ValueError(f"--lapse-rate must be from 0 to 1; it is {lapse_rate:g}")
    return KnownLapse(LogitNoise() if noise == "logit" else NormalNoise(), lapse_rate)
