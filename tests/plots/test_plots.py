"""Pictures show the numbers they should, say what they leave out, and leave nothing behind."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from revealed import plots
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.mdp.bellman import Reward
from revealed.models.choice import ChoiceModel
from revealed.models.priors import Flat, Normal, Prior
from revealed.models.ranking import RankingModel
from revealed.results.choice import ChoicePosterior
from revealed.results.predictive import predict
from revealed.results.ranking import RankingPosterior

PICTURES = [plots.posterior_densities, plots.traces, plots.autocorrelations, plots.value_intervals]


def posterior(
    draws: Any, prior: Prior | None = None, names: list[str] | None = None
) -> ChoicePosterior:
    x = np.asarray(draws, dtype=np.float64)
    offers = np.random.default_rng(0).standard_normal((6, x.shape[2]))
    d = Decisions(offers, [0, 3, 6], [0, 1], names=names)
    return ChoicePosterior({"value": x}, d, ChoiceModel(prior=prior or Normal(2.0)), "da")


def noise(chains: int, draws: int, width: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).standard_normal((chains, draws, width))


def png(figure: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=40)
    return out.getvalue()


def words(figure: Any) -> str:
    return " | ".join(text.get_text() for text in figure.texts)


def line(at: Any, label: str) -> Any:
    return next(each for each in at.lines if each.get_label() == label)


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("width", [1, 5])
def test_every_coefficient_is_shown_by_name(picture: Any, width: int) -> None:
    names = [f"feature {k}" for k in range(width)]
    figure = picture(posterior(noise(2, 50, width), names=names))
    shown = [at.get_title(loc="left").split("   ")[0] for at in figure.axes]
    if picture is plots.value_intervals:
        shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert shown == names
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("picture", PICTURES[:3])
def test_too_many_coefficients_are_cut_to_those_that_need_most_care(picture: Any) -> None:
    x = noise(2, 200, 30)
    x[:, :, 17] = np.cumsum(x[:, :, 17], axis=1)  # this one hardly mixes
    figure = picture(posterior(x))
    shown = [at.get_title(loc="left").split()[0] for at in figure.axes]
    assert len(shown) == 12
    assert "v17" in shown
    assert shown == sorted(shown, key=lambda name: int(name[1:]))
    assert "12 quantities with the fewest effective draws; 18 are left out" in words(figure)


def test_intervals_are_limited_to_those_farthest_from_zero() -> None:
    x = noise(1, 100, 50)
    x[:, :, 10:] += 30.0
    figure = plots.value_intervals(posterior(x))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        f"v{k}" for k in range(10, 50)
    ]
    assert "10 are left out" in words(figure)


def test_densities_integrate_to_one_and_the_prior_is_the_prior() -> None:
    x = 0.5 * noise(4, 3000, 2)
    blocks = [Block("value", 2, True)]
    d = Decisions([[1.0, 0.0], [0.0, 1.0]], [0, 2], [0], blocks=blocks)
    centred = x - x.mean(axis=2, keepdims=True)
    post = ChoicePosterior({"value": centred}, d, ChoiceModel(prior=Normal(3.0)), "da")
    at = plots.posterior_densities(post).axes[0]
    grid, height = line(at, "each chain").get_data()
    assert np.trapezoid(height, grid) == pytest.approx(1.0, abs=0.01)
    # a difference of two: sd 0.5 / sqrt 2 in the draws; with 3000 draws the density's own error is about 5% of its top
    assert np.abs(height - norm.pdf(grid, scale=0.5 / np.sqrt(2))).max() < 0.15 * norm.pdf(
        0, scale=0.5 / np.sqrt(2)
    )
    grid, height = line(at, "prior").get_data()
    assert height == pytest.approx(norm.pdf(grid, scale=3.0 / np.sqrt(2)))


def test_a_flat_prior_is_not_drawn() -> None:
    at = plots.posterior_densities(posterior(noise(2, 50, 2), Flat())).axes[0]
    assert "prior" not in [each.get_label() for each in at.lines]


def test_truth_is_marked_where_it_is() -> None:
    post = posterior(noise(2, 50, 3))
    truth = [0.25, -1.5, 3.0]
    panels = plots.posterior_densities(post, truth=truth).axes
    assert [line(at, "truth").get_xdata()[0] for at in panels] == truth
    assert line(
        plots.value_intervals(post, truth=truth).axes[0], "truth"
    ).get_xdata() == pytest.approx(truth)


@pytest.mark.parametrize("picture", [plots.posterior_densities, plots.value_intervals])
def test_truth_of_another_length_is_refused(picture: Any) -> None:
    with pytest.raises(ValueError, match="truth has shape \\(2,\\); give 3 numbers"):
        picture(posterior(noise(2, 50, 3)), truth=[1.0, 2.0])


def test_traces_show_the_draws_of_each_chain_and_say_when_they_thin() -> None:
    x = noise(3, 40, 1)
    figure = plots.traces(posterior(x))
    for i in range(3):
        assert line(figure.axes[0], f"chain {i + 1}").get_ydata() == pytest.approx(x[i, :, 0])
    assert "draws a chain are drawn" not in words(figure)
    assert "1000 of 2500 draws a chain are drawn" in words(
        plots.traces(posterior(noise(1, 2500, 1)))
    )


def test_autocorrelation_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(3)
    x = np.cumsum(rng.standard_normal((2, 90)), axis=1)
    at = plots.autocorrelations(posterior(x[:, :, None])).axes[0]
    for i in range(2):
        off = x[i] - x[i].mean()
        shown = line(at, f"chain {i + 1}").get_ydata()
        assert len(shown) == 31  # a third of the draws: beyond that only noise
        direct = [off[: 90 - lag] @ off[lag:] / (off @ off) for lag in range(31)]
        assert shown == pytest.approx(direct)


def test_intervals_are_the_quantiles() -> None:
    post = posterior(noise(2, 500, 3) + np.arange(3.0))
    at: Any = plots.value_intervals(post).axes[0]
    whole, half = (
        next(each for each in at.collections if each.get_label() == name)
        for name in ("middle 90%", "middle half")
    )
    for bars, levels in ((whole, [0.05, 0.95]), (half, [0.25, 0.75])):
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        assert ends == pytest.approx(np.quantile(post.values, levels, axis=0).T)
    assert line(at, "mean").get_xdata() == pytest.approx(post.mean())


def test_the_rewards_truth_is_centred_as_its_draws_are() -> None:
    reward = Reward(noise(2, 100, 3), ("home", "road", "away"), "up to a constant")
    at = plots.reward_intervals(reward, truth=[10.0, 11.0, 15.0]).axes[0]
    assert [label.get_text() for label in at.get_yticklabels()] == ["home", "road", "away"]
    assert line(at, "truth").get_xdata() == pytest.approx([-2.0, -1.0, 3.0])
    assert "up to an additive constant" in at.get_xlabel()


def test_calibration_shows_the_bins() -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((300, 2))
    d = Decisions(rows, np.arange(0, 301, 3), rng.integers(0, 3, 100))
    prediction = predict([1.0, -0.5], d)
    figure: Any = plots.calibration(prediction)
    bins = prediction.calibration()
    shown = line(figure.axes[0], "what happened")
    assert shown.get_xdata() == pytest.approx(bins.predicted)
    assert shown.get_ydata() == pytest.approx(bins.observed)
    assert [bar.get_height() for bar in figure.axes[1].patches] == pytest.approx(bins.count)
    assert f"{prediction.error_rate:.0%} of 100 decisions" in words(figure)
    assert png(figure)


def test_calibration_needs_choices() -> None:
    d = Decisions([[1.0], [2.0]], [0, 2])
    with pytest.raises(ValueError, match="carry no choices"):
        plots.calibration(predict([1.0], d))


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize(
    "draws",
    [
        np.zeros((1, 1, 1)),
        noise(2, 1, 2),
        noise(1, 3, 2),
        np.repeat(noise(2, 1, 2), 50, axis=1),  # every chain stands still, at its own place
        noise(2, 50, 2) * [0.0, 1.0],
        noise(2, 50, 2) * [1e-12, 1e12],
        np.where(
            np.arange(400).reshape(1, 400, 1) == 7, 5.0, 0.0
        ),  # one draw of four hundred moved
        noise(12, 20, 1),
    ],
    ids=[
        "one",
        "one-a-chain",
        "three",
        "stuck",
        "constant",
        "extreme",
        "nearly-stuck",
        "many-chains",
    ],
)
def test_odd_draws_can_be_drawn(picture: Any, draws: Floats) -> None:
    assert png(picture(posterior(draws)))


@pytest.mark.parametrize("picture", PICTURES)
def test_names_are_not_read_as_mathematics(picture: Any) -> None:
    names = [r"$\frac$", "_hidden", "a name that is far too long for the head of a small panel"]
    assert png(picture(posterior(noise(2, 30, 3), names=names)))


def test_nothing_is_left_behind() -> None:
    code = (
        "import sys; import numpy as np; from revealed import plots; assert 'matplotlib' not in sys.modules\n"
        "from revealed.data.decisions import Decisions; from revealed.results.choice import ChoicePosterior\n"
        "from revealed.models.choice import ChoiceModel; import matplotlib\n"
        "look = lambda: {k: matplotlib.rcParams[k] for k in matplotlib.rcParams if 'backend' not in k}\n"
        "before = look()\n"
        "p = ChoicePosterior({'value': np.random.default_rng(0).standard_normal((2, 20, 1))}, Decisions([[0.0], [1.0]], [0, 2], [1]), ChoiceModel(), 'da')\n"
        "plots.traces(p); plots.posterior_densities(p)\n"
        "assert look() == before and 'matplotlib.pyplot' not in sys.modules\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("players", [3, 45])
def test_skills_are_shown_best_first(players: int) -> None:
    rng = np.random.default_rng(1)
    order = rng.permutation(players)
    orders = Rankings.from_lists([[f"p{k}" for k in range(players)]])
    skills = order + 0.1 * rng.standard_normal((2, 50, players))
    draws = {"skill": skills, "spread": np.ones((2, 50))}
    found = RankingPosterior(draws, orders, RankingModel(), "ranking-hmc")
    at = plots.skill_intervals(found).axes[0]
    labels = [text.get_text() for text in at.get_yticklabels()]
    assert labels == [f"p{k}" for k in np.argsort(-order)[:40]]
    assert at.get_yticks()[0] == max(at.get_yticks())
    assert "zero is the average player" in at.get_xlabel()
