"""The demonstration: a controller whose values are hidden, watched, learnt, predicted (paper, section 5.1)."""

from __future__ import annotations

import io
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy._files import refuse_unwritable
from understudy.cli.shell import Json, NoProgress, Seed, answer, console, seed_from, working

if TYPE_CHECKING:
    from understudy._arrays import Floats
    from understudy.decisions import Decisions
    from understudy.mdp import MDP
    from understudy.posterior import Posterior
    from understudy.predict import Prediction

STATES, ACTIONS = 7, 3  # the paper's toy
KAPPA, LEARN, TEST = 25.0, 200, 200  # noisy enough to contradict itself now and then, which is what pins values down
PAPER_KAPPA, PAPER_LEARN = 2500.0, 20  # the paper's own setting
DISCOUNT = 0.9


def demo(
    out: Annotated[Path, typer.Option(help="The folder for what is made; it is created.")] = Path("demo-output"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws, and without the paper's harder case.")] = False,
    seed: Seed = 1,
    no_progress: NoProgress = False,
    json: Json = False,
) -> None:
    """Watch a simulated controller, learn what it values, predict it, and compare with the truth.

    Example: `understudy demo --out demo-output --seed 1`
    """
    from understudy import plots
    from understudy._files import write_whole
    from understudy.frames import to_file
    from understudy.predict import policy
    from understudy.report import write_report

    _make_folder(out)
    files = {name: out / name for name in ("decisions.csv", "posterior.nc", "values.png", "reward.png", "report.html")}
    for path in files.values():
        refuse_unwritable(path)
    bar = {"no_progress": no_progress}

    with working("waking up: the first run compiles, later runs do not", **bar):
        case = watch(seed_from(seed), KAPPA, LEARN)
        to_file(case.seen, files["decisions.csv"])
        learn(case, seed, draws=1, no_progress=True)
    began = time.monotonic()
    post = learn(case, seed, draws=1000, **bar)
    seconds = time.monotonic() - began
    post.save(files["posterior.nc"])

    with working("predicting, looking for the reward, drawing the pictures", **bar):
        found, best = judge(post, case), policy(post, case.world.decisions(range(STATES)))
        agrees = int((case.world.policy(case.value) == best.best).sum())
        reward, true_reward = (case.world.reward(v, DISCOUNT) for v in (post.draws, case.value))
        for name, figure in (
            ("values.png", plots.value_intervals(post, truth=case.value)),
            ("reward.png", plots.reward_intervals(reward, truth=true_reward.draws)),
        ):
            image = io.BytesIO()
            figure.savefig(image, format="png")
            write_whole(files[name], image.getvalue())
        write_report(post, files["report.html"], seed=seed)
    summary = post.summary()
    facts: dict[str, Any] = {
        "files": files, "seed": seed, "seconds": seconds, "engine": post.engine, "trusted": summary.trusted,
        "verdict": summary.verdict, "truth": case.value, "mean": summary.mean, "low": summary.low, "high": summary.high,
        "covered": int(((summary.low <= case.value) & (case.value <= summary.high)).sum()),
        "best_actions_right": agrees, "reward": reward.mean, "reward_sd": reward.sd, "reward_truth": true_reward.draws,
        **found,
    }  # fmt: skip
    if not quick:
        hard = watch(seed, PAPER_KAPPA, PAPER_LEARN)
        hard_post = learn(hard, seed, draws=1000, **bar)
        hard_summary = hard_post.summary()
        facts["paper"] = {
            "trusted": hard_summary.trusted, "verdict": hard_summary.verdict, "sd": hard_post.sd, **judge(hard_post, hard)
        }  # fmt: skip
    if json:
        answer(facts)
    else:
        tell(facts)


@dataclass(frozen=True, eq=False)
class Case:
    """A world, what the controller in it values, and its decisions: those to learn from and those to predict."""

    world: MDP
    value: Floats
    kappa: float
    seen: Decisions
    unseen: Decisions


def watch(seed: int, kappa: float, count: int) -> Case:
    """Draw a world, draw values from the prior, and watch `count` decisions to learn from and some more."""
    import numpy as np

    from understudy.mdp import random_mdp
    from understudy.priors import Gaussian, place

    rng = np.random.default_rng(seed)
    world = random_mdp(rng, STATES, ACTIONS)
    value = place(Gaussian(kappa), world.decisions([0])).draw(rng, 1)[0]
    path = world.simulate(rng, value, count + TEST)
    d = world.decisions(path.states, path.actions)
    return Case(world, value, kappa, d[:count], d[count:])


def learn(case: Case, seed: int, *, draws: int, no_progress: bool) -> Posterior:
    """The posterior of what was seen; whether it converged is for the caller to say."""
    from understudy.engines.fit import NotConvergedWarning, fit
    from understudy.priors import Gaussian

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return fit(case.seen, Gaussian(case.kappa), draws=draws, seed=seed, progress=False if no_progress else None)


def judge(post: Posterior, case: Case) -> dict[str, float]:
    """Predictions of decisions never seen, beside a blind guess and beside someone who knows the true values."""
    from understudy.predict import predict

    found: Prediction = predict(post.values[:: max(1, len(post.values) // 1000)], case.unseen)
    return {
        "error": found.error,
        "log_score": found.log_score,
        "error_guessing": 1.0 - 1.0 / ACTIONS,
        "error_knowing_the_values": predict(case.value, case.unseen).error,
    }


def tell(facts: dict[str, Any]) -> None:
    """What happened, in plain words, and where to look next."""
    from rich.table import Table

    files, show = facts["files"], console()
    show.print("[bold]1. Watching[/bold]")
    print(
        f"   A controller moves among {STATES} states with {ACTIONS} actions and values some states more than others."
    )
    print(f"   We see {LEARN} of its noisy choices, and not what it values.\n")
    show.print("[bold]2. Learning[/bold]")
    print(f"   Posterior of its values, in {facts['seconds']:.1f} s, against the truth that the simulation knows:\n")
    grid = Table(show_edge=False, pad_edge=True)
    for head in ("state", "true value", "posterior mean", "90% interval", ""):
        grid.add_column(head, justify="left" if head in ("state", "") else "right")
    for k, true in enumerate(facts["truth"]):
        low, high = facts["low"][k], facts["high"][k]
        inside = "inside" if low <= true <= high else "outside"
        grid.add_row(f"V({k})", f"{true:.2f}", f"{facts['mean'][k]:.2f}", f"{low:.2f} to {high:.2f}", inside)
    show.print(grid)
    print(f"\n   {facts['covered']} of {STATES} true values lie inside; about {0.9 * STATES:.0f} should.")
    print(f"   {facts['verdict']}\n")
    show.print("[bold]3. Predicting[/bold]")
    print(f"   {TEST} decisions it has never seen: {facts['error']:.0%} predicted wrongly. A blind guess is wrong in")
    print(
        f"   {facts['error_guessing']:.0%}; someone who knows the true values is wrong in {facts['error_knowing_the_values']:.0%}."
    )
    print(f"   The best action, the noise set aside, is found in {facts['best_actions_right']} of {STATES} states.\n")
    show.print("[bold]4. Explaining[/bold]")
    print(f"   The reward behind these values (discount {DISCOUNT:g}, up to a constant): state, mean and sd, truth")
    for k in range(STATES):
        numbers = (facts[name][k] for name in ("reward", "reward_sd", "reward_truth"))
        print("   {:>5}  {:6.2f} ± {:.2f}  {:6.2f}".format(k, *numbers))
    if "paper" in facts:
        paper = facts["paper"]
        show.print("\n[bold]5. A harder case: the paper's own[/bold]")
        print(
            f"   {PAPER_LEARN} decisions of a controller whose values are ten times as large, so that it hardly ever wavers:"
        )
        print(
            f"   {paper['error']:.0%} of {TEST} unseen decisions predicted wrongly ({paper['error_knowing_the_values']:.0%} knowing the truth)."
        )
        print(f"   {paper['verdict']}")
    show.print("\n[bold]Where to look next[/bold]")
    print(f"   {files['report.html']}   open it in a browser: everything about this posterior on one page")
    print(f"   {files['values.png']}, {files['reward.png']}   the tables above as pictures")
    print(f"   understudy fit {files['decisions.csv']} --centred --prior-variance {KAPPA:g} --out my-posterior.nc")
    print(f"   understudy predict {files['posterior.nc']} {files['decisions.csv']} --out my-predictions.csv")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise ValueError(f"the folder {folder} cannot be made: {reason.strerror or reason}") from None
