"""The door for unknown transitions: what it reads, refuses, returns, writes down, and how it compares with known ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.api import NotConvergedWarning
from revealed.data.trajectories import Trajectory
from revealed.results.diagnostics import mcse_mean, mcse_sd
from revealed.samplers.memory import MEMORY
from tests.support.interrupts import interrupt
from tests.support.statistical_asserts import assert_scores, must_fail

RNG = np.random.default_rng(1)
WORLD = rv.random_mdp(RNG, states=3, actions=2)
VALUE = np.array([1.0, 0.0, -1.0])
PATH = WORLD.simulate(RNG, VALUE, 60, start=0)
PRIOR = rv.Normal(2.0)
JOINT = pytest.mark.proves(model="unknown transitions", sampler="transitions-hmc")


PARTS = ("concentration", "available", "action_rewards", "support")


def fit(
    trajectories: Any = PATH,
    states: Any = 3,
    actions: Any = 2,
    episodes: Any = None,
    prior: Any = PRIOR,
    **given: Any,
) -> rv.MDPPosterior:
    """A fit of trajectories, with everything that is said of it in one place."""
    dirichlet = rv.Dirichlet(**{part: given.pop(part) for part in PARTS if part in given})
    post = rv.fit(
        rv.Trajectories(trajectories, states, actions, episodes),
        rv.ChoiceModel(prior=prior, transitions=dirichlet),
        **{"progress": False, **given},
    )
    assert isinstance(post, rv.MDPPosterior)
    return post


def quick(*data: Any, **given: Any) -> rv.MDPPosterior:
    """A short run whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return fit(*data, **{"draws": 60, "warmup": 20, "chains": 2, **given})


@pytest.fixture(scope="module")
def learnt() -> rv.MDPPosterior:
    return fit(seed=1)


def test_a_converged_answer_is_silent_and_holds_both(learnt: rv.MDPPosterior) -> None:
    assert learnt.summary().converged
    assert learnt.draws["value"].shape == (4, 1000, 3)
    assert learnt.transitions.shape == (4, 1000, 2, 3, 3)
    np.testing.assert_allclose(learnt.transitions.sum(axis=-1), 1.0)
    np.testing.assert_allclose(learnt.draws["value"].sum(axis=-1), 0.0, atol=1e-12)
    np.testing.assert_allclose(learnt.transition(1, 0), learnt.transitions[:, :, 0, 1])
    np.testing.assert_allclose(learnt.mean_transitions, learnt.mdp.transitions)
    assert learnt.sd_transitions.shape == (2, 3, 3)
    assert learnt.names == ("V(0)", "V(1)", "V(2)")
    assert learnt.columns().names[:4] == ("V(0)", "V(1)", "V(2)", "p(0 | 0, 0)")
    assert "p(0 | 0, 0)" in str(learnt.summary())
    assert repr(learnt).startswith(
        "<MDPPosterior: 4 chains of 1000 draws, 3 states, 2 actions, 3 values and 18"
    )


@JOINT
def test_transitions_alone_give_the_dirichlet_posterior_where_no_choice_can_speak() -> None:
    """With one action in every state there is nothing to choose: the rows are Dirichlet(concentration + counts) exactly."""
    found = fit(([0, 1, 2, 0, 1, 1], [0] * 5), 3, 1, concentration=[1.0, 2.0, 3.0])
    shape = found.trajectories.counts + np.array([1.0, 2.0, 3.0])
    total = shape.sum(axis=-1, keepdims=True)
    mean, sd = shape / total, np.sqrt(shape * (total - shape) / (total**2 * (total + 1.0)))
    cells = found.transitions.reshape(4, 1000, -1)
    assert_scores(
        (cells.mean(axis=(0, 1)) - mean.ravel()) / mcse_mean(cells), 0.5e-6, degrees=np.inf
    )
    assert_scores((cells.std(axis=(0, 1)) - sd.ravel()) / mcse_sd(cells), 0.5e-6, degrees=np.inf)
    np.testing.assert_allclose(found.policy().probability, 1.0)


def check(known: rv.Posterior, found: rv.Posterior) -> None:
    """Means and sds agree."""
    pairs = (mcse_mean, known.mean(), found.mean()), (mcse_sd, known.sd(), found.sd())
    v, w = known.draws["value"], found.draws["value"]
    scores = [(a - b) / np.hypot(error(v), error(w)) for error, a, b in pairs]
    assert_scores(scores, false_alarm=1e-6, degrees=np.inf, how="agreement")


@JOINT
@pytest.mark.parametrize("rewarded", [False, True])
def test_with_plenty_of_transition_data_it_agrees_with_the_fit_that_knows_them(
    rewarded: bool,
) -> None:
    """A million transitions of each row, seen elsewhere, are known transitions."""
    known = rv.fit(
        WORLD.decisions(PATH.states, PATH.actions, action_rewards=rewarded),
        rv.ChoiceModel(prior=PRIOR),
        draws=2000,
        seed=1,
    )

    def found(concentration: Any) -> rv.Posterior:
        return fit(concentration=concentration, action_rewards=rewarded, draws=2000, seed=2)

    check(known, found(1e6 * WORLD.transitions))
    with must_fail("unknown transitions taken for known ones"):
        check(known, found(1.0))


def test_with_little_transition_data_the_value_is_honestly_wider() -> None:
    """Knowing more narrows a posterior on average, not each time: twenty worlds and values drawn from the priors.

    Posterior variances with unknown rows minus those with known ones, and the same after ten thousand moves of each row.
    """
    rng = np.random.default_rng(5)
    vague: list[float] = []
    sharp: list[float] = []
    for seed in range(20):
        world = rv.random_mdp(rng, states=3, actions=2)
        v = 2.0 * rng.standard_normal(3)
        path = world.simulate(rng, v - v.mean(), 60, start=0)
        seen = world.decisions(path.states, path.actions)
        # a seed of its own for each: the same errors of all would not average out
        known = rv.fit(seen, rv.ChoiceModel(prior=PRIOR), seed=seed, progress=False)
        for more, kept in ((0.0, vague), (1e4, sharp)):
            found = quick(
                path, concentration=1.0 + more * world.transitions, draws=600, warmup=300, seed=seed
            )
            kept.append((found.sd() ** 2).mean() - (known.sd() ** 2).mean())
    # standard errors over the worlds; four of the second, as variances of short runs are noisy
    vague_error, sharp_error = (np.std(each, ddof=1) / np.sqrt(20) for each in (vague, sharp))
    assert np.mean(vague) > 3.0 * vague_error
    assert abs(np.mean(sharp)) < min(4.0 * sharp_error, 0.2 * np.mean(vague))


def test_predictions_average_over_both(learnt: rv.MDPPosterior) -> None:
    """The same by hand: for each draw, the exact probabilities in an MDP with that draw's rows."""
    some = learnt.transitions[0, ::100]
    by_hand = [
        rv.choice_probabilities(rv.MDP(rows).decisions([0, 1, 2]), v)
        for rows, v in zip(some, learnt.draws["value"][0, ::100], strict=True)
    ]
    np.testing.assert_allclose(learnt._choice_probabilities[:1000:100], by_hand, atol=1e-9)
    policy = learnt.policy()
    np.testing.assert_allclose(policy.probability, learnt._choice_probabilities.mean(axis=0))
    assert ((policy.low < policy.probability) & (policy.probability < policy.high)).all()
    np.testing.assert_allclose(policy.optimal.reshape(3, 2).sum(axis=1), 1.0)
    guess = learnt.predict(PATH.states, PATH.actions, draws="all")
    expected = policy.probability.reshape(3, 2)[PATH.states]
    np.testing.assert_allclose(guess.probabilities.reshape(-1, 2), expected, atol=2e-8)
    assert guess.log_probability_chosen is not None
    np.testing.assert_allclose(
        np.exp(guess.log_probability_chosen),
        guess.probabilities[guess.decisions.chosen_row],
        rtol=1e-6,
    )
    assert guess.error_rate < 0.5
    assert learnt.predict([2]).log_probability_chosen is None


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("rewarded", [False, True])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_rewards_use_the_rows_of_their_own_draw(
    noise: bool, rewarded: bool, discount: float
) -> None:
    found = quick(action_rewards=rewarded)
    reward = found.reward(discount, noise=noise)
    assert reward.draws.shape == (2, 60, 3)
    for draw in (0, 59):
        world = rv.MDP(found.transitions[1, draw])
        np.testing.assert_allclose(
            reward.draws[1, draw],
            world.reward(found.draws["value"][1, draw], discount, noise=noise).draws,
            atol=1e-9,
        )


def test_action_rewards_and_labels_and_actions_that_do_not_exist() -> None:
    found = quick(
        [(["home", "away", "home"], ["go", "go"]), (["away", "away"], ["stay", "go"])],
        ["home", "away"],
        ["stay", "go"],
        action_rewards=True,
        available=[[False, True], [True, True]],
        concentration=[[[0, 0], [0, 1]], [[0, 2], [1, 1]]],
    )
    assert found.names == ("V(home)", "V(away)", "r(stay)", "r(go)")
    assert found.columns().names[4:] == (
        "p(away | home, go)",
        "p(away | away, stay)",
        "p(home | away, go)",
        "p(away | away, go)",
    )
    assert found.trajectories.counts[1].tolist() == [[0, 1], [1, 0]]
    assert found.trajectories.counts[0].tolist() == [[0, 0], [0, 1]]
    assert (found.transition("home", "go") == [0.0, 1.0]).all()
    assert found.summary().fixed.tolist() == [False] * 4 + [True, True, False, False]
    assert len(found.policy().probability) == 3
    with pytest.raises(ValueError, match="action stay is not available in state home"):
        found.transition("home", "stay")


def test_flat_columns_are_cut_into_episodes() -> None:
    x, a = [0, 1, 2, 2, 0], [0, 1, 0, 1, 1]
    flat = rv.Trajectories((x, a), 3, 2, episodes=["p", "p", "q", "q", "q"])
    cut = rv.Trajectories([(x[:2], a[:2]), (x[2:], a[2:])], 3, 2)
    np.testing.assert_array_equal(flat.counts, cut.counts)
    np.testing.assert_array_equal(flat.state_position, cut.state_position)
    assert flat.counts.sum() == 3
    assert rv.Trajectories(Trajectory(np.array(x), np.array(a)), 3, 2).counts.sum() == 4
    assert rv.Trajectories(([*x, 1], a), 3, 2).counts.sum() == 5


def test_the_last_action_counts_as_a_choice_though_nobody_saw_where_it_led() -> None:
    open_end, seen_end = (
        rv.Trajectories(([0, 1], [0, 1]), 2, 2),
        rv.Trajectories(([0, 1, 0], [0, 1]), 2, 2),
    )
    np.testing.assert_array_equal(open_end.action_position, seen_end.action_position)
    assert (open_end.counts.sum(), seen_end.counts.sum()) == (1, 2)


def test_the_file_holds_everything(learnt: rv.MDPPosterior, tmp_path: Path) -> None:
    path = tmp_path / "world.nc"
    learnt.save(path)
    again = rv.load(path)
    assert isinstance(again, rv.MDPPosterior)
    for name in ("value", "transition"):
        np.testing.assert_array_equal(again.draws[name], learnt.draws[name])
    np.testing.assert_array_equal(again.trajectories.counts, learnt.trajectories.counts)
    np.testing.assert_array_equal(again.available, learnt.available)
    assert (again.states, again.actions, again.names) == (
        learnt.states,
        learnt.actions,
        learnt.names,
    )
    np.testing.assert_array_equal(again.policy().low, learnt.policy().low)
    np.testing.assert_array_equal(again.concentration, learnt.concentration)
    learnt.value_at_mean_transitions.save(tmp_path / "value.nc")
    assert isinstance(rv.load(tmp_path / "value.nc"), rv.ChoicePosterior)
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(ValueError, match="damaged"):
        rv.load(path)


def test_arviz_gets_both_and_the_log_likelihood(learnt: rv.MDPPosterior) -> None:
    data = learnt.to_arviz()
    assert data["posterior"]["transition"].shape == (4, 1000, 18)
    one = data["posterior"]["transition"].sel(cell="p(2 | 1, 0)")
    np.testing.assert_array_equal(one, learnt.transition(1, 0)[:, :, 2])
    logs = np.asarray(data["log_likelihood"]["choice"])
    assert logs.shape == (4, 1000, 60)
    world = rv.MDP(learnt.transitions[2, 7])
    by_hand = rv.log_likelihood(
        world.decisions(PATH.states, PATH.actions), learnt.draws["value"][2, 7]
    )
    np.testing.assert_allclose(logs[2, 7], by_hand, atol=1e-9)


def assert_same_draws(one: rv.Posterior, other: rv.Posterior, count: int | None = None) -> None:
    """The first so many draws of both are the same, of values and of transitions."""
    assert list(one.draws) == list(other.draws) == ["value", "transition"]
    for name in one.draws:
        np.testing.assert_array_equal(one.draws[name], other.draws[name][:, :count])


def test_ctrl_c_and_checkpoints_work_as_in_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common: dict[str, Any] = {"draws": 300, "warmup": 150}
    settings = {**common, "checkpoint": tmp_path / "run.checkpoint"}
    whole = quick(**common)
    assert_same_draws(whole, quick(executor=2, **common))
    with monkeypatch.context() as patch:
        interrupt(patch, 1e-3, share=0.6)
        partial = quick(**settings)
    count = partial.shape[1]
    assert 0 < count < 300
    assert "interrupted" in partial.summary().message
    assert_same_draws(partial, whole, count)
    assert_same_draws(quick(resume=True, **settings), whole)
    with pytest.raises(ValueError, match="belongs to other decisions"):
        quick(resume=True, concentration=2.0, **settings)
    with pytest.raises(ValueError, match="needs the checkpoint file"):
        quick(resume=True)


@pytest.mark.parametrize("concentration", [1e-3, 1e9])
def test_extreme_concentrations_give_numbers(concentration: float) -> None:
    found = quick(concentration=concentration, draws=50, warmup=120)
    np.testing.assert_allclose(found.transitions.sum(axis=-1), 1.0)
    assert np.isfinite(found.draws["value"]).all()


def test_the_figure_shows_means_and_spreads(learnt: rv.MDPPosterior, tmp_path: Path) -> None:
    figure = rv.plots.transitions(learnt)
    assert [at.get_title("left") for at in figure.axes[:2]] == ["action 0: mean", "action 1: mean"]
    figure.savefig(tmp_path / "rows.png")


def test_an_answer_that_cannot_be_trusted_says_so() -> None:
    with pytest.warns(NotConvergedWarning, match="Do not trust this yet"):
        fit(draws=20, warmup=20, chains=2)


CORRIDOR = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
WALK = ([0, 1, 2, 3, 2, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0])


def test_support_keeps_possible_transitions_only(tmp_path: Path) -> None:
    """As a graph, as one for each action, or sparse: the same as concentrations of zero."""
    found = quick(WALK, 4, 2, concentration=0.5, support=CORRIDOR)
    assert_same_draws(found, quick(WALK, 4, 2, concentration=0.5 * np.array([CORRIDOR] * 2)))
    for same in (
        CORRIDOR > 0,
        [CORRIDOR] * 2,
        sp.csr_array(CORRIDOR),
        [sp.csr_array(CORRIDOR)] * 2,
    ):
        model = rv.ChoiceModel(transitions=rv.Dirichlet(0.5, support=same))
        resolved = model.resolve(found.trajectories)
        np.testing.assert_array_equal(resolved.concentration, found.concentration)
    # seven cells for each action; the dense view is made on demand
    assert found.draws["transition"].shape == (2, 60, 14)
    assert (found.transitions[..., CORRIDOR == 0] == 0.0).all()
    np.testing.assert_allclose(found.transitions.sum(axis=-1), 1.0)
    assert found.summary().fixed[-1]
    found.save(tmp_path / "corridor.nc")
    again = rv.load(tmp_path / "corridor.nc")
    assert isinstance(again, rv.MDPPosterior)
    assert_same_draws(again, found)
    np.testing.assert_array_equal(again.concentration, found.concentration)
    assert again.to_arviz()["posterior"]["transition"].shape == (2, 60, 14)


def test_memory_grows_with_possible_transitions() -> None:
    """84 states and 4 actions, neighbours only: a fortieth of what all transitions take."""
    seen = rv.Trajectories((np.arange(84), np.arange(83) % 4), 84, 4)
    near = np.eye(84, k=1) + np.eye(84, k=-1)
    needed, all_possible = (
        rv.estimate_memory(seen, rv.ChoiceModel(transitions=rv.Dirichlet(support=support)))
        for support in (near, None)
    )
    # 84 values, 4 rows of two cells but of one cell at both ends, three statistics
    cells = 4 * (2 * 84 - 2)
    ratio = (needed - MEMORY.always) / (all_possible - MEMORY.always)
    assert ratio == pytest.approx((84 + cells + 3) / (84 + 4 * 84**2 + 3))


def labyrinth_problem(bouts: int) -> tuple[rv.Trajectories, rv.Dirichlet]:
    """The first bouts of the mice; the actions that occur, and the places next to each."""
    path = Path(__file__).parents[3] / "shared" / "data" / "labyrinth.npz"
    if not path.exists():
        pytest.skip("shared/data/labyrinth.npz is not here; it is looked for beside the repository")
    with np.load(path) as file:
        states, actions, lands = (
            file[name].astype(np.int64) for name in ("states", "actions", "next_state")
        )
    offered = np.zeros(lands.shape, np.bool_)
    offered[states, actions] = True
    x, a = np.nonzero(offered)
    near = np.zeros((len(lands), len(lands)))
    near[x, lands[x, a]] = 1.0
    seen = rv.Trajectories(list(zip(states[:bouts], actions[:bouts], strict=True)), *lands.shape)
    return seen, rv.Dirichlet(1.0, offered, support=near)


def test_labyrinth_with_neighbours_has_few_cells() -> None:
    """63 junctions with three actions and three neighbours each, 64 ends with one neighbour."""
    seen, dirichlet = labyrinth_problem(2)
    resolved = rv.ChoiceModel(transitions=dirichlet).resolve(seen)
    assert [p.shape for p in resolved.parameters] == [(127,), (63 * 9 + 64,)]


@pytest.mark.slow
def test_labyrinth_converges_at_default_settings() -> None:
    seen, dirichlet = labyrinth_problem(238)
    post = rv.fit(seen, rv.ChoiceModel(transitions=dirichlet), seed=1)
    assert post.summary().converged
    # where an action was seen to lead again and again, it leads there
    counts = seen.counts
    a, x, y = np.nonzero(counts > 100)
    assert (post.mean_transitions[a, x, y] > 0.95).all()


OK = ([0, 1, 0], [0, 1])
NOWHERE = np.ones((2, 3, 3))
NOWHERE[1, 2] = 0.0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"trajectories": ([0, 3], [0])}, "time 1: state 3 is unknown; the states are 0 to 2"),
        ({"trajectories": [OK, ([0, 1], [2])]}, "trajectory 1, time 0: action 2 is unknown"),
        (
            {"trajectories": ([0], [])},
            "there are no decisions; a trajectory needs at least one state with an action",
        ),
        ({"trajectories": [OK, ([1], [])]}, "trajectory 1, there are no decisions"),
        ({"trajectories": []}, "there are no trajectories"),
        (
            {"trajectories": ([0, 1, 0], [0])},
            "3 states and 1 actions: give one action for each state, or one fewer",
        ),
        ({"trajectories": [[0, 1], [0, 1]]}, "trajectory 0 is a list; a trajectory is a pair"),
        ({"trajectories": "walk"}, "trajectory 0 is a str"),
        ({"states": 0}, "states must be how many there are, at least 1"),
        ({"states": "abc"}, "states must be how many there are, or their labels"),
        ({"actions": 2.5}, "actions must be how many there are, or their labels"),
        ({"concentration": -1.0}, "concentration must not be negative; it is -1"),
        ({"concentration": np.nan}, "concentration holds a NaN"),
        ({"concentration": "flat"}, "concentration must be a table of numbers"),
        (
            {"concentration": [1.0, 2.0]},
            r"concentration has shape \(2,\); give a number, one for each of the 3",
        ),
        ({"concentration": np.ones((3, 2, 3))}, r"transpose\(1, 0, 2\) puts the actions first"),
        (
            {"concentration": 0.0},
            "a move to state 1 was seen 1 times, but its concentration is zero",
        ),
        ({"concentration": [1.0, 0.0, 1.0]}, "state 0, action 0: a move to state 1 was seen"),
        (
            {"concentration": NOWHERE},
            "state 2, action 1: the concentration is zero for every next state, so it leads",
        ),
        ({"available": [[True, False]] * 3}, "decision 1: action 1 is not available in state 1"),
        (
            {"available": [[True, True], [False, False], [True, True]]},
            "state 1: no action is available",
        ),
        (
            {"episodes": [0, 0]},
            "flat trajectories have one state, one action and one episode for each decision",
        ),
        (
            {"trajectories": ([0, 1, 0], [0, 1, 0]), "episodes": [0, 1, 0]},
            "an episode comes back after another one",
        ),
        (
            {"trajectories": [OK, OK], "episodes": [0, 0]},
            "episodes cut one flat trajectory .*; a list of trajectories is cut already",
        ),
        (
            {"prior": rv.Flat()},
            r"no sampler takes unknown transitions and a flat prior together; "
            r"give prior=rv.Normal\(sd\) or transitions=rv.Known\(\)",
        ),
        (
            {"support": np.eye(3)},
            "state 0, action 0: a move to state 1 was seen 1 times, but the support says that it",
        ),
        (
            {"support": [[1, 1, 0], [1, 0, 0], [0, 0, 0]]},
            "state 2, action 0: the support has no next state, so it leads nowhere",
        ),
        ({"support": np.ones((2, 3))}, r"support has shape \(2, 3\); give \(N, N\) = \(3, 3\)"),
        ({"support": np.ones((3, 2, 3))}, r"support has .* transpose\(1, 0, 2\) puts the actions"),
        ({"support": "observed"}, "support must be a table of numbers"),
        ({"draws": 0}, "draws must be a whole number, at least 1"),
        (
            {"draws": 10_000_000_000},
            "this would need about .* GB of memory, and .* are free; keep fewer draws or chains "
            r".*, or say with rv.Dirichlet\(support=...\) which transitions are possible",
        ),
        ({"checkpoint": "nowhere/run"}, "there is no folder nowhere"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        quick(**{"trajectories": OK, **given})
    assert "\n" not in str(caught.value)
