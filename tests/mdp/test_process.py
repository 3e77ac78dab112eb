import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.stats import binomtest, norm

from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.mdp.bellman import expected_maximum
from revealed.mdp.process import MDP
from revealed.mdp.random_process import random_mdp

FALSE_ALARM = 1e-6


def constrained(
    rng: np.random.Generator, states: int = 5, actions: int = 3, sparse: bool = False
) -> MDP:
    """A random MDP in which about a third of the pairs do not exist, and rows have exact zeros."""
    p = rng.dirichlet(np.full(states, 0.5), size=(actions, states)) * (
        rng.random((actions, states, states)) < 0.7
    )
    p[..., 0] += 1e-3
    p /= p.sum(axis=-1, keepdims=True)
    available = rng.random((states, actions)) < 0.67
    available[np.arange(states), rng.integers(actions, size=states)] = True
    return MDP([sp.csr_array(each) for each in p] if sparse else p, available)


def as_sparse(mdp: MDP) -> MDP:
    return MDP(
        [sp.csr_array(each) for each in mdp.transitions],
        mdp.available,
        states=mdp.states,
        actions=mdp.actions,
    )


def bellman_iterated(
    mdp: MDP, reward: Floats, discount: float, extra: Floats, sweeps: int = 2000
) -> Floats:
    """The textbook: apply the Bellman operator until nothing moves."""
    p, value = mdp.transitions, np.zeros(len(reward))
    for _ in range(sweeps):
        value = np.array(
            [
                reward[x]
                + max(
                    extra[a] + discount * p[a, x] @ value for a in np.flatnonzero(mdp.available[x])
                )
                for x in range(len(reward))
            ]
        )
    return value


def chances(utilities: Floats) -> Floats:
    """How probably each of a few noisy utilities is the largest, by adaptive quadrature."""

    def integrand(z: float, a: int) -> float:
        return float(norm.pdf(z - utilities[a]) * np.prod(norm.cdf(z - np.delete(utilities, a))))

    low, high = utilities.min() - 9, utilities.max() + 9
    return np.array(
        [quad(integrand, low, high, args=(a,), epsabs=1e-12)[0] for a in range(len(utilities))]
    )


# --- the value ------------------------------------------------------------------------------------------------


def test_value_is_where_value_iteration_ends() -> None:
    rng = np.random.default_rng(1)
    for mdp in (random_mdp(rng, 6, 3), constrained(rng), constrained(rng)):
        reward, extra = (
            3 * rng.standard_normal(len(mdp.states)),
            rng.standard_normal(len(mdp.actions)),
        )
        wanted = bellman_iterated(mdp, reward, 0.9, 0 * extra, 400)
        np.testing.assert_allclose(mdp.solve(reward, 0.9), wanted, rtol=0, atol=1e-10)
        wanted = bellman_iterated(mdp, reward, 0.9, extra, 400)
        np.testing.assert_allclose(
            mdp.solve(reward, 0.9, action_reward=extra), wanted, rtol=0, atol=1e-10
        )


def test_no_policy_is_better_than_the_value_and_the_policy_attains_it() -> None:
    rng = np.random.default_rng(2)
    mdp = constrained(rng, 4, 3)
    reward, extra, discount, p = (
        rng.standard_normal(4),
        rng.standard_normal(3),
        0.95,
        mdp.transitions,
    )
    values: dict[tuple[int, ...], Floats] = {}
    for policy in itertools.product(*[np.flatnonzero(row).tolist() for row in mdp.available]):
        chain = np.array([p[a, x] for x, a in enumerate(policy)])
        values[policy] = np.asarray(
            np.linalg.solve(np.eye(4) - discount * chain, reward + extra[list(policy)]), float
        )
    assert len(values) > 4
    best = mdp.solve(reward, discount, action_reward=extra)
    np.testing.assert_allclose(best, np.max(list(values.values()), axis=0), rtol=0, atol=1e-11)
    chosen = tuple(int(a) for a in mdp.policy(discount * best, action_reward=extra))
    np.testing.assert_allclose(values[chosen], best, rtol=0, atol=1e-11)


@pytest.mark.parametrize("discount", [0.5, 0.9999])
def test_noisy_value_solves_its_equation_by_quadrature(discount: float) -> None:
    rng = np.random.default_rng(3)
    mdp = constrained(rng, 4, 3)
    reward, extra, p = rng.standard_normal(4), rng.standard_normal(3), mdp.transitions
    value = mdp.solve(reward, discount, action_reward=extra, noise=True)
    for x in range(4):
        u = np.array(
            [extra[a] + discount * p[a, x] @ value for a in np.flatnonzero(mdp.available[x])]
        )
        top = u.max()

        def tail(z: float, u: Floats = u - top) -> float:
            return float((z > 0) - np.prod(norm.cdf(z - u)))

        expected = top + quad(tail, -9, 0, epsabs=1e-13)[0] + quad(tail, 0, 9, epsabs=1e-13)[0]
        assert value[x] == pytest.approx(reward[x] + expected, rel=1e-12, abs=1e-10)


def test_noise_in_the_reward_is_worth_having() -> None:
    mdp = random_mdp(np.random.default_rng(4))
    reward = np.arange(7.0)
    assert (mdp.solve(reward, 0.9, noise=True) > mdp.solve(reward, 0.9) + 1.0).all()


@pytest.mark.parametrize("noise", [False, True])
def test_a_single_state_and_action_is_a_geometric_series(noise: bool) -> None:
    value = MDP([[[1.0]]]).solve([2.0], 0.9999, noise=noise)
    assert value == pytest.approx([20000.0], rel=1e-10)


@pytest.mark.parametrize("noise", [False, True])
def test_sparse_equals_dense(noise: bool) -> None:
    rng = np.random.default_rng(5)
    dense = constrained(rng)
    sparse = as_sparse(dense)
    assert sp.issparse(sparse.rows)
    assert not sp.issparse(dense.rows)
    reward, extra, draws = (
        rng.standard_normal(5),
        rng.standard_normal(3),
        rng.standard_normal((2, 10, 8)),
    )
    one, two = (m.solve(reward, 0.95, action_reward=extra, noise=noise) for m in (dense, sparse))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(dense.policy(draws), sparse.policy(draws))
    one, two = (m.reward(draws, 0.95, noise=noise).draws for m in (dense, sparse))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)
    walks = [m.simulate(np.random.default_rng(0), reward, 500) for m in (dense, sparse)]
    np.testing.assert_array_equal(walks[0].states, walks[1].states)
    np.testing.assert_array_equal(walks[0].actions, walks[1].actions)
    for action_rewards in (False, True):
        one_d, two_d = (
            m.decisions(w.states, w.actions, action_rewards=action_rewards)
            for m, w in zip((dense, sparse), walks, strict=True)
        )
        assert sp.issparse(two_d.rows)
        np.testing.assert_array_equal(one_d.rows, two_d.rows.toarray())
        np.testing.assert_array_equal(one_d.chosen_row, two_d.chosen_row)


def test_a_large_grid_is_solved_sparsely() -> None:
    side = 40
    cells = np.arange(side * side)
    r, c = cells // side, cells % side
    moves = [(0, 1), (0, -1), (1, 0), (-1, 0), (0, 0)]
    to = [np.clip(r + i, 0, side - 1) * side + np.clip(c + j, 0, side - 1) for i, j in moves]
    mdp = MDP(
        [
            sp.csr_array((np.ones(cells.size), (cells, t)), shape=(cells.size, cells.size))
            for t in to
        ]
    )
    assert mdp.rows.nnz == 5 * cells.size
    reward = np.where(cells == cells[-1], 1.0, 0.0)
    distance = (side - 1 - r) + (side - 1 - c)
    value = mdp.solve(reward, 0.9999)
    np.testing.assert_allclose(value, 0.9999**distance / (1 - 0.9999), rtol=1e-10)


# --- discount 1 -----------------------------------------------------------------------------------------------


def corridor(available: Any = None) -> MDP:
    """Three steps to the end: "walk" goes on for sure, "dawdle" half of the time; the end is absorbing."""
    walk, dawdle = np.zeros((4, 4)), np.zeros((4, 4))
    for x in range(3):
        walk[x, x + 1] = 1.0
        dawdle[x, [x, x + 1]] = 0.5
    walk[3, 3] = dawdle[3, 3] = 1.0
    return MDP([walk, dawdle], available, actions=["walk", "dawdle"])


def test_without_discount_the_absorbing_state_is_worth_nothing() -> None:
    mdp = corridor()
    np.testing.assert_allclose(mdp.solve([-1, -1, -1, 0], 1.0), [-3, -2, -1, 0], atol=1e-12)
    np.testing.assert_allclose(mdp.solve([1, 1, 1, 0], 1.0), [6, 4, 2, 0], atol=1e-12)
    assert list(mdp.policy(mdp.solve([1, 1, 1, 0], 1.0))[:3]) == [1, 1, 1]
    np.testing.assert_allclose(
        as_sparse(mdp).solve([-1, -1, -1, 0], 1.0), [-3, -2, -1, 0], atol=1e-12
    )


def test_without_discount_and_with_noise_two_equal_actions_pay_the_larger_noise() -> None:
    step = np.eye(3, k=1)
    step[2, 2] = 1.0
    mdp = MDP([step, step], [[True, True], [True, True], [True, False]])
    bonus = 1 / np.sqrt(np.pi)  # the mean of the larger of two standard normals
    value = mdp.solve([-1.0, -1.0, 0.0], 1.0, noise=True)
    np.testing.assert_allclose(value, [2 * bonus - 2, bonus - 1, 0], atol=1e-12)


def test_a_cycle_that_leaks_ends() -> None:
    p = np.array([[[0.0, 0.9, 0.1], [0.9, 0.0, 0.1], [0.0, 0.0, 1.0]]])
    np.testing.assert_allclose(MDP(p).solve([1.0, 1.0, 0.0], 1.0), [10.0, 10.0, 0.0], rtol=1e-12)


def test_two_absorbing_states_may_end_it() -> None:
    p = np.array([[[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]])
    np.testing.assert_allclose(MDP(p).solve([0.0, 7.0, 0.0], 1.0), [0.0, 7.0, 0.0], rtol=1e-12)


NO_END = r"discount 1 needs a policy that ends, but from state {} none does"
NEVER_ENDS = r"discount 1 needs every policy that never ends to earn minus infinity.* state {} one"


def test_discount_one_is_refused_where_no_policy_ends() -> None:
    with pytest.raises(ValueError, match=NO_END.format(0)):
        random_mdp(np.random.default_rng(0)).solve(np.zeros(7), 1.0)
    with pytest.raises(ValueError, match=NO_END.format(0)):  # absorbing, and paid for ever
        corridor().solve([0, 0, 0, 1], 1.0)
    with pytest.raises(ValueError, match=NO_END.format(0)):  # paid through its actions
        corridor().solve([0, 0, 0, 0], 1.0, action_reward=[0.0, -0.5])
    only_walk = [[True, True]] * 3 + [[True, False]]
    np.testing.assert_allclose(
        corridor(only_walk).solve([0, 0, 0, 0], 1.0, action_reward=[0.0, -0.5]),
        np.zeros(4),
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="and has one action"):  # the best of two noises pays
        corridor().solve([0, 0, 0, 0], 1.0, noise=True)
    corridor(only_walk).solve([0, 0, 0, 0], 1.0, noise=True)
    # a trap: from state 1 nothing leads out, and it costs
    p = np.array([[[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    with pytest.raises(ValueError, match=NO_END.format(1)):
        MDP(p).solve([-1.0, -1.0, 0.0], 1.0)


def roundabout() -> MDP:
    """Each state has a way to the end 3; states 1 and 2 may also lead to each other for ever."""
    leave, around = np.zeros((4, 4)), np.zeros((4, 4))
    leave[:, 3] = 1.0
    around[[0, 1, 2, 3], [3, 2, 1, 3]] = 1.0
    return MDP([leave, around])


def test_discount_one_is_refused_where_never_ending_pays_as_well() -> None:
    # State 0 pays nothing and may be stayed in, but need not: it is not absorbing.
    stay, go = np.eye(3), np.eye(3)[[1, 2, 2]]
    mdp = MDP([stay, go], [[True, True], [False, True], [True, True]])
    with pytest.raises(ValueError, match=NEVER_ENDS.format(0)):
        mdp.solve([0, 5, 0], 1.0)
    # Going round 1 -> 2 -> 1 earns nothing, or something, on average; then it costs.
    for reward in ([0, 0, 0, 0], [0, 2, -2, 0], [0, 2, -1, 0]):
        with pytest.raises(ValueError, match=NEVER_ENDS.format(1)):
            roundabout().solve(reward, 1.0)
    np.testing.assert_allclose(roundabout().solve([0, 1, -2, 0], 1.0), [0, 1, -1, 0], atol=1e-12)


def test_an_action_that_costs_less_and_never_ends_is_not_where_it_begins() -> None:
    """At a value of zero going round looks best; from there no value could be worked out."""
    ending = MDP(roundabout().transitions, [[True, True]] * 3 + [[False, False]])
    value = ending.solve(np.zeros(4), 1.0, action_reward=[-1.0, -0.1])
    np.testing.assert_allclose(value, [-0.1, -1.0, -1.0, 0.0], atol=1e-12)


def test_a_reward_without_discount_solves_nothing_and_is_not_refused() -> None:
    value = np.array([0.0, 1.0, -1.0, 0.0])
    found = roundabout().reward(value, 1.0).draws
    np.testing.assert_allclose(found - found[3], [0.0, 1.0, -2.0, 0.0], atol=1e-12)
    random_mdp(np.random.default_rng(0)).reward(np.zeros(7), 1.0)


def best_proper_values(mdp: MDP, reward: Any) -> Any:
    """Every stationary policy by itself: the largest values of those that end, by a linear solve."""
    N, values = len(mdp.states), []
    for rows in itertools.product(
        *(range(low, max(high, low + 1)) for low, high in itertools.pairwise(mdp.start))
    ):
        acts = np.diff(mdp.start) > 0
        p = np.where(acts[:, None], mdp.rows[np.minimum(rows, len(mdp.rows) - 1)], 0.0)
        # proper when every power series of p ends
        if np.abs(np.linalg.eigvals(p)).max() < 1.0 - 1e-9:
            values.append(np.linalg.solve(np.eye(N) - p, reward))
    return np.max(values, axis=0)


@pytest.mark.parametrize("seed", range(8))
def test_without_discount_the_best_of_all_policies_is_found(seed: int) -> None:
    """Sparse random worlds in which some policies never end; the terminal state pays something."""
    rng = np.random.default_rng(seed)
    N, M = 5, 3
    targets = rng.integers(N, size=(M, N, 2))
    targets[0, :, 0] = np.arange(1, N + 1) % N  # the first action gets on at times
    p = np.zeros((M, N, N))
    for a, x, k in np.ndindex(M, N, 2):
        p[a, x, targets[a, x, k]] += 0.5
    available = np.ones((N, M), bool)
    available[-1] = False
    reward = np.append(-rng.exponential(size=N - 1), 3.0)
    for mdp in (MDP(p, available), as_sparse(MDP(p, available))):
        np.testing.assert_allclose(
            mdp.solve(reward, 1.0), best_proper_values(MDP(p, available), reward), rtol=1e-9
        )


def test_without_discount_and_with_noise_the_equation_holds_where_steps_cost_enough() -> None:
    """By its fixed point, iterated; where the best of two noises is more than a step costs, never."""
    mdp, bonus = roundabout(), 1 / np.sqrt(np.pi)
    ending = MDP(mdp.transitions, [[True, True]] * 3 + [[False, False]])
    reward, value = np.array([0.0, -1.0, -1.5, 2.0]), np.zeros(4)
    for _ in range(2000):
        value = reward + expected_maximum(ending.rows @ value, ending.start)
    np.testing.assert_allclose(ending.solve(reward, 1.0, noise=True), value, rtol=1e-10)
    costly = np.array([0.0, -bonus - 0.01, -bonus - 0.01, 0.0])
    assert np.isfinite(ending.solve(costly, 1.0, noise=True)).all()
    with pytest.raises(ValueError, match="never ends earns, the noise of the best action counted"):
        # going round alone has one noise a step, which is zero on average
        ending.solve([0.0, 0.01, 0.01, 0.0], 1.0, noise=True)


# --- states without actions ------------------------------------------------------------------------------------


def ending_corridor() -> MDP:
    """The corridor, whose end offers nothing; one more such state lies in the middle of the list."""
    p = np.zeros((2, 5, 5))
    p[0, [0, 1, 3], [1, 3, 4]] = 1.0
    p[1, [0, 1, 3], [0, 1, 3]] = p[1, [0, 1, 3], [1, 2, 4]] = 0.5
    available = [[True, True], [True, True], [False, False], [True, True], [False, False]]
    return MDP(p, available, states=list("abcde"), actions=["walk", "dawdle"])


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_state_without_actions_is_worth_its_reward(
    discount: float, noise: bool, sparse: bool
) -> None:
    mdp = as_sparse(ending_corridor()) if sparse else ending_corridor()
    reward = np.array([-1.0, -2.0, 7.0, -1.5, 3.0])
    value = mdp.solve(reward, discount, noise=noise)
    np.testing.assert_allclose(value[[2, 4]], [7.0, 3.0])
    # Bellman's equation state by state, by hand
    for x in (0, 1, 3):
        worth = discount * (mdp.rows @ value)[mdp.start[x] : mdp.start[x + 1]]
        best = worth.max()
        if noise:
            gap = (worth[0] - worth[1]) / np.sqrt(2.0)
            best = worth[0] * norm.cdf(gap) + worth[1] * norm.cdf(-gap) + np.sqrt(2) * norm.pdf(gap)
        assert value[x] == pytest.approx(reward[x] + best, abs=1e-10)
    assert mdp.policy(value)[[2, 4]].tolist() == [-1, -1]
    # backwards, with a constant that nobody knows: the ends are said to pay zero on average
    v = discount * value if noise else value
    found = mdp.reward(np.stack([v, v + 11.0]), discount, noise=noise)
    level = np.where(mdp.available.any(axis=1), 5.0 * (1.0 - discount), 5.0)
    np.testing.assert_allclose(found.draws, np.stack([reward - level] * 2), atol=1e-9)
    assert "the states without actions pay zero on average" in found.note


def test_a_path_ends_where_nothing_is_offered() -> None:
    mdp, ends = ending_corridor(), []
    rng = np.random.default_rng(1)
    for _ in range(60):
        path = mdp.simulate(rng, np.zeros(5), 50)
        assert len(path.states) == len(path.actions) + 1
        assert mdp.available[path.states[:-1], path.actions].all()
        assert (
            np.array(mdp.transitions)[path.actions, path.states[:-1], path.states[1:]] > 0
        ).all()
        ends.append(mdp.states[path.states[-1]])
        d = mdp.decisions(path.states, path.actions)
        assert len(d) == len(path.actions)
    assert set(ends) == {"c", "e"}
    short = mdp.simulate(rng, np.zeros(5), 1, start="a")
    assert len(short.states) == len(short.actions) == 1
    with pytest.raises(ValueError, match="state c offers no action: a path cannot start there"):
        mdp.simulate(rng, np.zeros(5), 3, start="c")
    with pytest.raises(ValueError, match="time 1: state c offers no action, so nothing is decided"):
        mdp.decisions(["a", "c", "b"])
    with pytest.raises(ValueError, match="time 2: state c offers no action"):
        mdp.decisions(["a", "b", "c"], ["walk", "walk", "walk"])
    with pytest.raises(ValueError, match="3 states and 2 actions"):
        mdp.decisions(["a", "b", "d"], ["walk", "walk"])


# --- the policy -----------------------------------------------------------------------------------------------


def test_policy_is_the_best_available_action_and_the_first_of_equals() -> None:
    rng = np.random.default_rng(6)
    mdp = constrained(rng)
    v, extra = rng.standard_normal((20, 5)), rng.standard_normal((20, 3))
    utilities = np.einsum("axy,dy->dxa", mdp.transitions, v) + extra[:, None, :]
    wanted = np.where(mdp.available, utilities, -np.inf).argmax(axis=-1)
    np.testing.assert_array_equal(mdp.policy(v, action_reward=extra), wanted)
    np.testing.assert_array_equal(mdp.policy(np.hstack([v, extra])), wanted)
    np.testing.assert_array_equal(mdp.policy(v[3], action_reward=extra[3]), wanted[3])
    np.testing.assert_array_equal(mdp.policy(np.zeros(5)), mdp.available.argmax(axis=1))


# --- the noisy controller -------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_action_reward", [False, True])
def test_simulated_choices_and_moves_have_the_right_frequencies(with_action_reward: bool) -> None:
    rng = np.random.default_rng(7)
    mdp = constrained(rng, 4, 3)
    v, extra = (
        2 * rng.standard_normal(4),
        rng.standard_normal(3) if with_action_reward else np.zeros(3),
    )
    seen = mdp.simulate(rng, v, 60_000, action_reward=extra if with_action_reward else None)
    pairs = np.zeros((4, 3), int)
    np.add.at(pairs, (seen.states, seen.actions), 1)
    assert (pairs[~mdp.available] == 0).all()
    trials = []
    for x in range(4):
        offer = np.flatnonzero(mdp.available[x])
        exact = chances(np.array([extra[a] + mdp.transitions[a, x] @ v for a in offer]))
        trials += [(pairs[x, a], pairs[x].sum(), p) for a, p in zip(offer, exact, strict=True)]
    moves = np.zeros((3, 4, 4), int)
    np.add.at(moves, (seen.actions[:-1], seen.states[:-1], seen.states[1:]), 1)
    for a, x, y in zip(*np.nonzero(mdp.available.T[:, :, None] & np.ones(4, bool)), strict=True):
        if moves[a, x].sum():
            trials.append((moves[a, x, y], moves[a, x].sum(), mdp.transitions[a, x, y]))
    assert len(trials) > 30
    for hits, total, p in trials:
        assert binomtest(int(hits), int(total), min(float(p), 1.0)).pvalue > FALSE_ALARM / len(
            trials
        )


def test_simulation_starts_where_told_and_repeats_itself() -> None:
    mdp = MDP(random_mdp(np.random.default_rng(8)).transitions, states=list("abcdefg"))
    one, two = (mdp.simulate(np.random.default_rng(5), np.zeros(7), 50, "c") for _ in range(2))
    assert one.states[0] == 2
    assert len(one) == 50
    np.testing.assert_array_equal(one.states, two.states)
    np.testing.assert_array_equal(one.actions, two.actions)
    firsts = [
        int(mdp.simulate(np.random.default_rng(s), np.zeros(7), 1).states[0]) for s in range(200)
    ]
    assert set(firsts) == set(range(7))  # one of seven missed in 200: chance 7 (6/7)^200 < 1e-12


def test_action_rewards_may_stand_behind_the_value() -> None:
    mdp = random_mdp(np.random.default_rng(9))
    v, extra = np.arange(7.0), np.array([0.0, 2.0, -1.0])
    apart = mdp.simulate(np.random.default_rng(0), v, 300, 0, action_reward=extra)
    joined = mdp.simulate(np.random.default_rng(0), np.concatenate([v, extra]), 300, 0)
    without = mdp.simulate(np.random.default_rng(0), v, 300, 0)
    np.testing.assert_array_equal(apart.actions, joined.actions)
    assert (apart.actions != without.actions).any()


# --- decisions ------------------------------------------------------------------------------------------------


P = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.4, 0.6]], [[0.0, 1.0], [1.0, 0.0]]])
AVAILABLE = np.array([[True, False, True], [False, True, True]])


def test_decisions_leave_out_what_is_not_available() -> None:
    mdp = MDP(P, AVAILABLE, states=["home", "away"], actions=["stay", "look", "go"])
    d = mdp.decisions(["home", "away", "home"], ["go", "look", "stay"])
    np.testing.assert_array_equal(d.start, [0, 2, 4, 6])
    np.testing.assert_array_equal(d.rows, [P[0, 0], P[2, 0], P[1, 1], P[2, 1], P[0, 0], P[2, 0]])
    assert d.chosen is not None
    assert list(d.chosen) == [1, 0, 0]
    assert d.actions is not None
    assert list(d.actions) == ["stay", "go", "look", "go", "stay", "go"]
    assert d.names == ("V(home)", "V(away)")
    assert d.blocks == (Block("value", 2, sum_to_zero=True),)
    by_position = mdp.decisions(np.array([0, 1, 0], dtype=np.uint8), (2, np.int64(1), 0.0))
    np.testing.assert_array_equal(by_position.rows, d.rows)
    np.testing.assert_array_equal(by_position.chosen_row, d.chosen_row)


def test_action_rewards_add_a_unit_to_each_row_and_a_centred_block() -> None:
    d = MDP(P, AVAILABLE).decisions([1], [2], action_rewards=True)
    np.testing.assert_array_equal(d.rows, [[0.4, 0.6, 0, 1, 0], [1.0, 0.0, 0, 0, 1]])
    assert d.names == ("V(0)", "V(1)", "r(0)", "r(1)", "r(2)")
    assert d.blocks == (
        Block("value", 2, sum_to_zero=True),
        Block("action reward", 3, sum_to_zero=True),
    )


def test_choices_that_were_not_seen() -> None:
    d = MDP(P).decisions([0, 1])
    assert d.chosen is None
    assert len(d) == 2


def test_labels_may_be_pairs() -> None:
    mdp = MDP(P, states=[(0, 0), (0, 1)], actions=[("n", 1), "e", "w"])
    d = mdp.decisions([(0, 1), (0, 0)], [("n", 1), "w"])
    assert list(d.chosen_row) == [0, 5]
    assert d.names[1] == "V((0, 1))"
    assert d.actions is not None
    assert d.actions[0] == "('n', 1)"


# --- the record -----------------------------------------------------------------------------------------------


def test_transitions_come_back_with_zeros_for_missing_pairs() -> None:
    wanted = np.where(AVAILABLE.T[:, :, None], P, 0.0)
    np.testing.assert_array_equal(MDP(P, AVAILABLE).transitions, wanted)
    back = MDP([sp.coo_matrix(each) for each in P], AVAILABLE).transitions
    np.testing.assert_array_equal([each.toarray() for each in back], wanted)


def test_rows_of_missing_pairs_are_ignored() -> None:
    p = P.copy()
    p[1, 0] = np.nan
    p[0, 1] = -7.0
    np.testing.assert_array_equal(MDP(p, AVAILABLE).rows, MDP(P, AVAILABLE).rows)
    sparse = MDP([sp.csr_array(each) for each in p], AVAILABLE)
    np.testing.assert_array_equal(sparse.rows.toarray(), MDP(P, AVAILABLE).rows)


def test_untidy_sparse_matrices_are_tidied() -> None:
    # Row 0 is [0.25, 0.75] out of order with a stored zero; row 1 stays, in two halves.
    untidy = sp.csr_array(([0.75, 0.25, 0.5, 0.5, 0.0], [1, 0, 1, 1, 0], [0, 2, 5]), shape=(2, 2))
    mdp, tidy = MDP([untidy]), MDP([[[0.25, 0.75], [0.0, 1.0]]])
    assert mdp.rows.nnz == 3
    assert untidy.nnz == 5  # and the caller's own matrix is left alone
    np.testing.assert_array_equal(mdp.solve([1.0, 0.0], 1.0), tidy.solve([1.0, 0.0], 1.0))
    walks = [m.simulate(np.random.default_rng(3), np.zeros(2), 20, 0).states for m in (mdp, tidy)]
    np.testing.assert_array_equal(walks[0], walks[1])


@pytest.mark.parametrize("sparse", [False, True])
def test_frozen_and_its_own(sparse: bool) -> None:
    given: Any = [sp.csr_array(each) for each in P] if sparse else P.copy()
    mdp = MDP(given)
    (given[0].data if sparse else given)[:] = 0.0
    np.testing.assert_array_equal(mdp.rows @ np.ones(2), np.ones(6))
    with pytest.raises(ValueError, match="read-only"):
        (mdp.rows.data if sparse else mdp.rows)[0] = 1.0
    with pytest.raises(AttributeError):
        mdp.states = (1, 2)  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(mdp))
    np.testing.assert_array_equal(again.solve([0, 1], 0.5), mdp.solve([0, 1], 0.5))


def test_it_says_what_it_is() -> None:
    assert repr(MDP(P)) == "<MDP: 2 states, 3 actions, dense>"
    assert (
        repr(as_sparse(MDP(P, AVAILABLE)))
        == "<MDP: 2 states, 3 actions, 4 available pairs, sparse>"
    )


def test_random_mdp_has_dirichlet_rows() -> None:
    rng = np.random.default_rng(10)
    toy = random_mdp(rng)
    assert toy.transitions.shape == (3, 7, 7)
    rows = random_mdp(rng, states=10, actions=2000, concentration=0.3).rows
    # E sum p^2 of a Dirichlet(c, ..., c) over N states is (c + 1) / (N c + 1).
    squares = (rows**2).sum(axis=1)
    error = norm.isf(FALSE_ALARM / 2) * squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - 1.3 / 4.0) < error


# --- refusals -------------------------------------------------------------------------------------------------


def test_refuses_bad_transitions() -> None:
    def refused(sentence: str, transitions: Any, available: Any = None, **labels: Any) -> None:
        with pytest.raises(ValueError, match=sentence):
            MDP(transitions, available, **labels)

    def spoilt(value: float) -> Floats:
        p = P.copy()
        p[2, 1, 0] = value
        return p

    for wrap in (lambda p: p, lambda p: [sp.csr_array(each) for each in p]):
        refused(
            r"^state away, action go: the transition probabilities sum to 0.7, not 1",
            wrap(spoilt(0.7)),
            states=["home", "away"],
            actions=["stay", "look", "go"],
        )
        refused(r"^state 1, action 2: .* sum to 1.00000002, not 1", wrap(spoilt(1 + 2e-8)))
        MDP(wrap(spoilt(1 + 5e-9)))
        refused(
            r"^state 1, action 2: a transition probability is NaN or infinite \(nan\)",
            wrap(spoilt(np.nan)),
        )
        refused(
            r"^state 1, action 2: a transition probability is NaN or infinite \(inf\)",
            wrap(spoilt(np.inf)),
        )
        refused(
            r"^state 1, action 2: a transition probability is negative \(-0.5\)", wrap(spoilt(-0.5))
        )
        refused("^no action is available in any state", wrap(P), [[False] * 3] * 2)
    refused("table of numbers", [[["a"]]])
    refused("table of numbers", [[[0.5, 0.5], [1.0]]])
    refused("table of numbers", P * 1j)
    refused(r"shape \(2, 2\); it must be \(M, N, N\)", np.eye(2))
    refused(r"shape \(0, 2, 2\)", np.empty((0, 2, 2)))
    refused(
        r"looks like \[x, a, y\], so give transitions.transpose\(1, 0, 2\)", P.transpose(1, 0, 2)
    )
    MDP(P.transpose(1, 0, 2).transpose(1, 0, 2))
    refused(
        r"looks like \[x, y, a\], so give transitions.transpose\(2, 0, 1\)", P.transpose(1, 2, 0)
    )
    MDP(P.transpose(1, 2, 0).transpose(2, 0, 1))
    refused("one sparse matrix; give a list", sp.eye_array(3))
    refused(r"transitions\[1\] has shape \(3, 3\)", [sp.eye_array(2), sp.eye_array(3)])
    refused(r"transitions\[0\] has shape \(2, 3\)", [sp.csr_array((2, 3))])
    refused(r"transitions\[0\] must hold real numbers", [sp.eye_array(2, dtype=complex)])
    refused("list of .* matrices of numbers", [sp.eye_array(2), "x"])


def test_refuses_bad_availability_and_labels() -> None:
    def refused(sentence: str, available: Any = None, **labels: Any) -> None:
        with pytest.raises(ValueError, match=sentence):
            MDP(P, available, **labels)

    refused(
        r"available has shape \(3, 2\), but must be \(N, M\) = \(2, 3\), states first; this is its transpose",
        AVAILABLE.T,
    )
    refused(r"available has shape \(2, 2\)", np.ones((2, 2), bool))
    refused("True or False", np.full((2, 3), 0.5))
    refused("True or False", np.full((2, 3), np.nan))
    refused("3 labels for 2 states", states=["a", "b", "c"])
    refused("1 labels for 3 actions", actions=["a"])
    refused("label a is used twice", states=["a", "a"])
    refused("states must be a list of labels", states=2)
    refused("states must be a list of labels", states=[["a"], ["b"]])
    refused("label 1 at position 0 is a number, and numbers mean positions", states=[1, 2])
    assert MDP(P, states=[0, 1]).states == (0, 1)


@pytest.mark.parametrize("discount", [0.0, -0.5, 1.5, np.nan, np.inf, "0.9", None, 0.5j])
def test_refuses_bad_discounts(discount: Any) -> None:
    with pytest.raises(ValueError, match="discount must be above 0 and at most 1"):
        MDP(P).solve([0, 1], discount)
    with pytest.raises(ValueError, match="discount must be above 0 and at most 1"):
        MDP(P).reward([0, 1], discount)


def test_refuses_bad_rewards_and_values() -> None:
    mdp = MDP(P)
    with pytest.raises(ValueError, match=r"reward has shape \(3,\)"):
        mdp.solve([0, 1, 2], 0.9)
    with pytest.raises(ValueError, match="reward holds a NaN"):
        mdp.solve([0, np.nan], 0.9)
    with pytest.raises(ValueError, match=r"action_reward has shape \(2,\)"):
        mdp.solve([0, 1], 0.9, action_reward=[0, 1])
    with pytest.raises(ValueError, match="reward must be a table of numbers"):
        mdp.solve(["a", "b"], 0.9)
    for sparse in (mdp, as_sparse(mdp)):
        with pytest.raises(ValueError, match="cannot be solved in floating point"):
            sparse.solve([1e308, 1e308], 0.999)
    for call in (
        mdp.policy,
        lambda v: mdp.reward(v, 0.9),
        lambda v: mdp.simulate(np.random.default_rng(0), v, 5),
    ):
        with pytest.raises(ValueError, match=r"value has shape \(3,\)"):
            call(np.zeros(3))
        with pytest.raises(ValueError, match="value holds a NaN"):
            call(np.array([0.0, np.inf]))
        with pytest.raises(ValueError, match=r"value has shape \(0, 2\)"):
            call(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="holds the action rewards already"):
        mdp.policy(np.zeros(5), action_reward=np.zeros(3))
    with pytest.raises(ValueError, match=r"action_reward has shape \(4, 3\).*or \(5, 3\)"):
        mdp.reward(np.zeros((5, 2)), 0.9, action_reward=np.zeros((4, 3)))


def test_a_number_as_seed_starts_the_generator_of_that_number() -> None:
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng)
    np.testing.assert_array_equal(random_mdp(3).rows, mdp.rows)
    first, second = (mdp.simulate(np.random.default_rng(5), np.arange(7.0), 50) for _ in range(2))
    np.testing.assert_array_equal(first.states, second.states)
    np.testing.assert_array_equal(mdp.simulate(5, np.arange(7.0), 50).states, first.states)
    shared = [mdp.simulate(rng, np.arange(7.0), 50).states.tolist() for _ in range(2)]
    assert shared[0] != shared[1]  # a generator goes on where the last call stopped
    assert len(mdp.simulate(None, np.arange(7.0), 50)) == 50


def test_refuses_bad_simulations() -> None:
    mdp, rng = MDP(P), np.random.default_rng(0)
    for seed in (-1, 2.5, "seven"):
        with pytest.raises(ValueError, match="seed must be a whole number, at least 0, or a numpy"):
            mdp.simulate(seed, np.zeros(2), 5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="seed must be a whole number, at least 0, or a numpy"):
            random_mdp(seed)  # type: ignore[arg-type]
    for length in (0, -1, 2.5):
        with pytest.raises(ValueError, match="length must be a whole number"):
            mdp.simulate(rng, np.zeros(2), length)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one controller has one value"):
        mdp.simulate(rng, np.zeros((4, 2)), 5)
    with pytest.raises(ValueError, match=r"^start: state 9 is unknown; the states are 0 to 1$"):
        mdp.simulate(rng, np.zeros(2), 5, 9)
    for wrong in (
        {"states": 0},
        {"actions": 0},
        {"states": 2.5},
        {"concentration": 0.0},
        {"concentration": np.nan},
    ):
        with pytest.raises(ValueError, match="a random MDP needs"):
            random_mdp(rng, **wrong)


def test_refuses_bad_trajectories() -> None:
    mdp = MDP(P, AVAILABLE, states=["home", "away"], actions=["stay", "look", "go"])

    def refused(sentence: str, states: Any, actions: Any = None) -> None:
        with pytest.raises(ValueError, match=sentence):
            mdp.decisions(states, actions)

    refused(
        "^time 1: state moon is unknown; the states are 0 to 1, or a label such as home$",
        ["home", "moon"],
    )
    refused("^time 0: state 2 is unknown", [2])
    refused("^time 1: state -1 is unknown", np.array([0, -1]))
    refused("^time 0: state 0.5 is unknown", [0.5])
    refused("^time 0: state nan is unknown", [float("nan")])
    refused("^time 1: action fly is unknown", ["home", "away"], ["stay", "fly"])
    refused(
        "^time 1: action stay is not available in state away, which offers look, go$",
        ["home", "away"],
        ["stay", "stay"],
    )
    refused("there are 2 states and 1 actions", ["home", "away"], ["stay"])
    refused("there are no decisions", [])
    refused("there are no decisions", np.array([], dtype=int), [])
    refused("states must be a list", 1)
    refused("states must be a list", np.zeros((2, 2)))
    refused("actions must be a list", ["home"], 0)
