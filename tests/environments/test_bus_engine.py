"""Harold Zurcher's buses: what is read, Rust's model, the smooth prior, and the engine under such a prior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.data.decisions import Decisions
from revealed.environments.bus_engine import (
    BINS,
    GUMBEL_SD,
    BusMonths,
    RustLogit,
    bus_mdp,
    read_buses,
    simulate_buses,
    smooth_prior,
)
from revealed.models.priors import resolve_prior
from revealed.results.diagnostics import mcse_mean, mcse_sd
from tests.support.statistical_asserts import assert_scores

RUST = Path(__file__).resolve().parents[3] / "shared" / "data" / "rust1987.csv"
real = pytest.mark.skipif(not RUST.exists(), reason="the bus data are not here")
STEPS = np.array([0.39, 0.6, 0.01])


@real
def test_the_published_fit_has_the_published_likelihood() -> None:
    """Group 4, 90 bins, discount 0.9999: choice log-likelihood -163.58; with our increments and with the published ones."""
    buses = read_buses(RUST, groups=[4])
    assert repr(buses) == "<BusMonths: 4,329 bus-months of 37 buses, 33 replacements>"
    np.testing.assert_allclose(buses.increments, [0.3996, 0.5876, 0.0128], atol=5e-5)
    assert RustLogit().log_likelihood(buses) == pytest.approx(-163.58, abs=0.01)
    assert RustLogit().log_likelihood(buses, [0.3919, 0.5953, 0.0128]) == pytest.approx(
        -163.58, abs=0.01
    )
    for wrong in (RustLogit(replacement=9.0), RustLogit(cost=2.0), RustLogit(discount=0.99)):
        assert RustLogit().log_likelihood(buses) > wrong.log_likelihood(buses) + 0.5


def test_rusts_programme_solved_as_any_decision_process() -> None:
    """A month in two halves, each with the root of the discount: first the engine, then the road.

    The second half pays for the mileage that the first has left, so that rewards belong to states;
    its only action carries noise of mean zero, which adds nothing.
    """
    rust, half = RustLogit(), np.sqrt(RustLogit().discount)
    engine, road = np.eye(BINS, 2 * BINS, BINS), np.zeros((BINS, 2 * BINS))
    road[:, :BINS] = bus_mdp(STEPS).transitions[0]
    nowhere = np.zeros((BINS, 2 * BINS))
    mdp = rv.MDP(
        [
            np.vstack([engine, nowhere]),
            np.vstack([np.tile(engine[0], (BINS, 1)), nowhere]),
            np.vstack([nowhere, road]),
        ],
        available=np.repeat([[True, True, False], [False, False, True]], BINS, axis=0),
        actions=["keep", "replace", "drive"],
    )
    paid = np.concatenate([np.zeros(BINS), -0.001 * rust.cost * np.arange(BINS) / half])
    fee = [0.0, -rust.replacement, 0.0]
    value = mdp.solve(paid, half, action_reward=fee, noise=rv.LogitNoise())
    d = mdp.decisions(range(BINS), action_rewards=True)
    chosen = rv.choice_probabilities(d, np.concatenate([half * value, fee]), rv.LogitNoise())
    # values are some 1e3 a thousandth of which matters: nine digits are left
    np.testing.assert_allclose(chosen[1::2], rust.replacement_probability(STEPS), atol=1e-7)
    normal = mdp.solve(paid, half, action_reward=fee, noise=True)
    other = rv.choice_probabilities(d, np.concatenate([half * normal, fee]))
    assert np.abs(other[1::2] - rust.replacement_probability(STEPS)).max() > 1e-3


@real
def test_rusts_curve_lies_within_the_bands_of_values_learnt_under_logit_noise() -> None:
    """At every mileage for group 4, whose fit it is; groups 1 to 3 replaced earlier."""
    inside = {}
    for groups in ((4,), (1, 2, 3, 4)):
        buses = read_buses(RUST, groups=groups)
        mdp = bus_mdp(buses.increments)
        prior = smooth_prior(sd=5.0 * GUMBEL_SD, action_sd=10.0 * GUMBEL_SD)
        model = rv.ChoiceModel(prior=prior, noise=rv.LogitNoise())
        post = rv.fit(buses.decisions(mdp), model, seed=1, progress=False)
        found = post.policy(mdp.decisions(range(BINS), action_rewards=True))
        rust = RustLogit().replacement_probability(buses.increments)
        inside[groups] = (found.low[1::2] <= rust) & (rust <= found.high[1::2])
    assert inside[4,].all()
    # from 145,000 to 245,000 miles groups 1 to 3 have many months, and his curve is too low there
    assert not inside[1, 2, 3, 4][32:44].any()


@real
def test_in_a_new_bus_nobody_ever_replaced_though_both_actions_lead_to_the_same_place() -> None:
    buses = read_buses(RUST, groups=range(1, 9))
    assert ((buses.state == 0).sum(), buses.replaced[buses.state == 0].sum()) == (484, 0)
    d = bus_mdp(STEPS).decisions([0])
    v = np.random.default_rng(1).standard_normal((5, BINS))
    np.testing.assert_allclose(rv.choice_probabilities(d, v), 0.5)


def test_rusts_equation_is_solved() -> None:
    """Against plain iteration of the same equation, at a discount for which that ends."""
    drive = bus_mdp(STEPS, 30).transitions[0]
    value = np.zeros(30)
    for _ in range(2000):
        keep = -0.05 * np.arange(30) + 0.95 * drive @ value
        replace = -3.0 + 0.95 * drive[0] @ value
        value = np.logaddexp(keep, replace)
    share = RustLogit(replacement=3.0, cost=50.0, discount=0.95).replacement_probability(STEPS, 30)
    np.testing.assert_allclose(share, np.exp(replace - value), atol=1e-10)


def test_a_fleet_drives_and_replaces_as_told() -> None:
    chance = np.where(np.arange(20) < 10, 0.0, 0.5)
    fleet = simulate_buses(np.random.default_rng(1), chance, STEPS, buses=400, months=60)
    assert "24,000 simulated bus-months of 400 buses" in repr(fleet)
    assert not fleet.replaced[fleet.state < 10].any()
    old = fleet.replaced[fleet.state >= 10]
    assert abs(old.mean() - 0.5) < 5.0 * 0.5 / np.sqrt(old.size)
    assert np.abs(fleet.increments - STEPS).max() < 5.0 * 0.5 / np.sqrt(len(fleet))
    mdp = bus_mdp(STEPS, 20)
    d = fleet.decisions(mdp)
    assert d.names[-2:] == ("r(keep)", "r(replace)")
    np.testing.assert_array_equal(d.chosen, fleet.replaced)
    np.testing.assert_allclose(mdp.transitions[1], np.tile(mdp.transitions[0][0], (20, 1)))


def tied_covariance(bins: int) -> Any:
    """The covariance of the value and action rewards given that each sums to zero: S - S C (C' S C)^-1 C' S."""
    whole = np.asarray(smooth_prior(bins).covariance)
    sums = np.zeros((bins + 2, 2))
    sums[:bins, 0] = sums[bins:, 1] = 1.0
    seen = whole @ sums
    return whole - seen @ np.linalg.solve(sums.T @ seen, seen.T)


def test_a_covariance_matrix_on_centred_blocks_is_the_law_given_their_sums() -> None:
    d = bus_mdp(STEPS, 12).decisions([0, 3], action_rewards=True)
    resolved_prior = resolve_prior(smooth_prior(12), d)
    found = resolved_prior.basis @ np.linalg.inv(resolved_prior.precision) @ resolved_prior.basis.T
    np.testing.assert_allclose(found, tied_covariance(12), atol=1e-6)
    draws = resolved_prior.draw(np.random.default_rng(2), 4000)
    np.testing.assert_allclose(draws[:, :12].sum(axis=1), 0.0, atol=1e-9)
    assert resolved_prior.strongly_correlated
    assert not resolve_prior(rv.Normal(2.0), d).strongly_correlated
    assert not resolve_prior(rv.Flat(), d).strongly_correlated


@pytest.mark.proves(
    model="choices, normal prior", sampler="composite", problem="a smooth prior on 30 bins"
)
@pytest.mark.filterwarnings("ignore::revealed.UninformedWarning")
def test_the_engine_gives_the_same_answer_in_the_priors_own_coordinates() -> None:
    """A smooth prior on 30 bins, and the same as independent coefficients: v = L z, rows L, z ~ N(0, I)."""
    chance = RustLogit(replacement=6.0, cost=40.0, discount=0.99).replacement_probability(STEPS, 30)
    fleet = simulate_buses(np.random.default_rng(3), chance, STEPS, buses=20, months=60)
    d = fleet.decisions(bus_mdp(fleet.increments, 30))
    post = rv.fit(d, rv.ChoiceModel(prior=smooth_prior(30)), seed=1)
    size, axes = np.linalg.eigh(tied_covariance(30))
    L = axes[:, size > 1e-9] * np.sqrt(size[size > 1e-9])
    plain = rv.ChoiceModel(prior=rv.Normal(1.0))
    other = rv.fit(Decisions(d.rows @ L, d.start, d.chosen), plain, seed=2)
    values = other.draws["value"] @ L.T
    for error, mine, theirs in (
        (mcse_mean, post.mean(), values.mean(axis=(0, 1))),
        (mcse_sd, post.sd(), values.std(axis=(0, 1))),
    ):
        scores = (mine - theirs) / np.hypot(error(post.draws["value"]), error(values))
        assert_scores(scores, false_alarm=1e-6, degrees=np.inf, how="agreement")
    # and the truth is inside: replacement probabilities where the fleet was seen often
    chances = rv.policy(
        post, bus_mdp(fleet.increments, 30).decisions(range(30), action_rewards=True)
    )
    often = np.flatnonzero(np.bincount(fleet.state, minlength=30) >= 20)
    inside = (chances.low[1::2] <= chance) & (chance <= chances.high[1::2])
    assert inside[often].mean() > 0.7


def test_figures_along_a_line(tmp_path: Path) -> None:
    fleet = simulate_buses(
        np.random.default_rng(3), np.linspace(0.0, 0.2, 15), STEPS, buses=10, months=40
    )
    mdp = bus_mdp(STEPS, 15)
    v = np.random.default_rng(1).standard_normal((50, 17))
    policy = rv.policy(v, mdp.decisions(range(15), action_rewards=True))
    where = 5.0 * np.arange(15)
    figure = rv.plots.hazard(
        policy,
        "replace",
        where,
        "miles",
        seen=(fleet.state, fleet.replaced),
        curves={"other": np.full(15, 0.1)},
    )
    assert figure.axes[0].get_ylabel() == "probability of replace"
    assert figure.axes[0].get_xlim()[1] == where[fleet.state.max()]
    rv.plots.hazard(policy, "keep", where, "miles").savefig(tmp_path / "keep.png")
    reward = mdp.reward(v, 0.9, noise=True)
    figure = rv.plots.reward_curve(
        reward, where, "miles", seen=fleet.state, curves={"other": where}
    )
    assert len(figure.axes[0].lines) == 2
    with pytest.raises(ValueError, match="each offering 'dance'"):
        rv.plots.hazard(policy, "dance", where, "miles")
    with pytest.raises(ValueError, match="one place for each of 15 states"):
        rv.plots.reward_curve(reward, where[:3], "miles")


def write(path: Path, *lines: str) -> Path:
    path.write_text(
        "\n".join(("group,bus_id,period,state,replace", *lines)) + "\n", encoding="utf-8"
    )
    return path


def test_a_small_file_is_read(tmp_path: Path) -> None:
    buses = read_buses(
        write(tmp_path / "b.csv", "4,7,0,3,0", "4,7,1,4,1", "4,7,2,1,0", "5,8,0,0,0")
    )
    assert (buses.state.tolist(), buses.replaced.tolist()) == ([3, 4, 1], [False, True, False])
    assert buses.increments.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["4,7,0,3,2"], "line 2: replace is 2; it must be 0 or 1"),
        (
            ["4,7,0,3,0", "4,7,1,much,0"],
            "line 3: group, bus_id, period, state, replace must be whole numbers",
        ),
        (["4,7,0,3"], "line 2: .* must be whole numbers"),
        (["4,7,0,3,0", "4,7,2,3,0"], "bus 7: month 2 follows month 0"),
        (["4,7,0,90,0"], r"mileage bin 90, but there are 90 bins \(0 to 89\)"),
        (["5,7,0,3,0"], r"no bus of group 4; its groups are \[5\]"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(
    lines: list[str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_buses(write(tmp_path / "b.csv", *lines))


def test_other_bad_input_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("group,bus\n4,1\n")
    for call, sentence in (
        (lambda: read_buses(tmp_path / "none.csv"), "there is no file"),
        (lambda: read_buses(tmp_path / "c.csv"), "has no column 'bus_id'"),
        (lambda: read_buses(tmp_path), "cannot be read"),
        (lambda: bus_mdp([0.5, 0.6]), "adding to 1"),
        (lambda: bus_mdp([]), "adding to 1"),
        (lambda: smooth_prior(length=0.0), "must be positive"),
        (
            lambda: RustLogit(discount=1.0).replacement_probability(STEPS),
            "needs a discount below 1",
        ),
        (
            lambda: simulate_buses(np.random.default_rng(0), [0.1, 1.2], STEPS),
            "one probability for each mileage bin",
        ),
        (
            lambda: BusMonths(np.array([1]), np.array([0]), np.array([False])).increments,
            "seen in two months",
        ),
        (
            lambda: (
                BusMonths(np.array([1, 1]), np.array([3, 1]), np.array([False, False])).increments
            ),
            "mileage falls from bin 3 to 1 without a replacement",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
