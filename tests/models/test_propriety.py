"""Which directions the choices leave open: against cases known by construction and against brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as some

import revealed as rv
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.models.coordinates import coordinates
from revealed.models.propriety import (
    UnboundedDirection,
    chosen_minus_rivals,
    describe_direction,
    find_unbounded_direction,
    unidentified_directions,
)


def opening(decisions: Decisions) -> UnboundedDirection | None:
    return find_unbounded_direction(decisions, *coordinates(decisions))


def passes(decisions: Decisions, found: UnboundedDirection) -> Floats:
    """The margins along the opening, on the scale of the largest; none may be negative beyond rounding."""
    margin = np.asarray(chosen_minus_rivals(decisions) @ found.direction)
    size = np.abs(chosen_minus_rivals(decisions)) @ np.abs(found.direction)
    assert (margin >= -1e-9 * size.max(initial=0.0)).all()
    return np.asarray(margin / max(size.max(initial=0.0), 1e-300))


def pairs(differences: list[list[float]]) -> Decisions:
    """Decisions of two actions whose margins, chosen minus rival, are these rows."""
    rows = [row for difference in differences for row in (difference, [0.0] * len(difference))]
    return Decisions(rows, np.arange(0, len(rows) + 1, 2), [0] * len(differences))


def noisy(count: int, actions: int, features: int, strength: float, seed: int) -> Decisions:
    """Random features, and a controller whose noise matters the less the larger the strength."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count * actions, features))
    w = strength * rows @ rng.standard_normal(features) + rng.standard_normal(count * actions)
    return Decisions(
        rows, np.arange(0, count * actions + 1, actions), w.reshape(count, actions).argmax(axis=1)
    )


def test_margins_are_chosen_minus_rival() -> None:
    d = Decisions([[1.0], [4.0], [9.0], [5.0], [2.0], [7.0]], [0, 3, 4, 6], [1, 0, 0])
    np.testing.assert_array_equal(chosen_minus_rivals(d), [[3.0], [-5.0], [-5.0]])


def test_choices_in_all_directions_leave_nothing_open() -> None:
    assert opening(pairs([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])) is None


def test_complete_separation_is_found_and_every_choice_agrees_strictly() -> None:
    d = noisy(200, 4, 3, strength=1e6, seed=0)
    found = opening(d)
    assert found is not None
    assert found.tested
    assert passes(d, found).min() > 1e-6


def test_quasi_separation_is_found_and_some_choices_are_only_ties() -> None:
    # The first feature is chosen both ways; the second only ever one way.
    d = pairs([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    found = opening(d)
    assert found is not None
    assert found.tested
    np.testing.assert_allclose(found.direction, [0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(passes(d, found), [0.0, 0.0, 1.0 / 3.0, 1.0], atol=1e-9)


def test_every_choice_that_can_be_explained_outright_is() -> None:
    # Along (1, 0) the second choice is a tie; the opening must be the interior of the cone, where none is.
    d = pairs([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -0.5]])
    found = opening(d)
    assert found is not None
    assert passes(d, found).min() > 1e-3


def test_a_state_never_reached_is_untested_though_the_design_is_well_conditioned() -> None:
    # Each state is offered, but no decision compares the last one with another: it is p = 1 for both actions.
    rng = np.random.default_rng(3)
    mixed = rng.dirichlet(np.ones(3), 40)
    rows = np.vstack(
        [np.column_stack([mixed, np.zeros(40)]), np.tile([[0.0, 0.0, 0.0, 1.0]], (40, 1))]
    )
    d = Decisions(
        rows, np.arange(0, 81, 2), rng.integers(0, 2, 40), blocks=[Block("value", 4, True)]
    )
    basis, constants = coordinates(d)
    design = rows @ basis
    assert np.linalg.cond(design.T @ design) < 50
    never = unidentified_directions(d, basis)
    assert never.shape == (4, 1)
    np.testing.assert_allclose(
        np.abs(never[:, 0]), np.array([1.0, 1.0, 1.0, 3.0]) / np.sqrt(12.0), atol=1e-9
    )
    found = find_unbounded_direction(d, basis, constants)
    assert found is not None
    assert not found.tested
    np.testing.assert_allclose(passes(d, found), 0.0, atol=1e-12)


def test_decisions_of_one_action_test_nothing() -> None:
    d = Decisions([[1.0, 2.0], [3.0, -1.0]], [0, 1, 2], [0, 0])
    np.testing.assert_allclose(
        unidentified_directions(d, np.eye(2)).T @ unidentified_directions(d, np.eye(2)),
        np.eye(2),
        atol=1e-12,
    )
    found = opening(d)
    assert found is not None
    assert not found.tested


def test_untested_directions_are_orthonormal_within_the_basis_and_complete() -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 7))
    d = Decisions(rows, np.arange(0, 61, 3), rng.integers(0, 3, 20), blocks=[Block("a", 7, True)])
    basis, constants = coordinates(d)
    never = unidentified_directions(d, basis)
    assert never.shape[1] == 6 - np.linalg.matrix_rank(chosen_minus_rivals(d) @ basis)
    np.testing.assert_allclose(never.T @ never, np.eye(never.shape[1]), atol=1e-10)
    np.testing.assert_allclose(constants.T @ never, 0.0, atol=1e-10)
    np.testing.assert_allclose(chosen_minus_rivals(d) @ never, 0.0, atol=1e-9)


def test_a_centred_block_is_not_left_open_by_its_constant() -> None:
    # Both states are compared both ways; only adding the same to all values is free, and that is centred away.
    rows = [[0.8, 0.2], [0.3, 0.7]] * 2
    centred = Decisions(rows, [0, 2, 4], [0, 1], blocks=[Block("value", 2, True)])
    loose = Decisions(rows, [0, 2, 4], [0, 1])
    assert opening(centred) is None
    found = opening(loose)
    assert found is not None
    assert not found.tested
    np.testing.assert_allclose(found.direction[0], found.direction[1], rtol=1e-9)


def test_an_opening_of_a_centred_block_is_itself_centred() -> None:
    d = Decisions(
        [[0.8, 0.2, 0.0], [0.3, 0.3, 0.4], [0.1, 0.8, 0.1]] * 2,
        [0, 3, 6],
        [0, 0],
        blocks=[Block("v", 3, True)],
    )
    found = opening(d)
    assert found is not None
    assert found.tested
    passes(d, found)
    np.testing.assert_allclose(found.direction.sum(), 0.0, atol=1e-9)


@pytest.mark.parametrize("strength", [0.0, 0.3, 1e5])
@pytest.mark.parametrize("seed", range(4))
def test_features_of_any_scale_and_storage_give_one_answer(strength: float, seed: int) -> None:
    d = noisy(60, 4, 5, strength, seed)
    scale = 10.0 ** np.array([-6.0, -3.0, 0.0, 3.0, 6.0])
    plain = opening(d)
    stretched = Decisions(d.rows * scale, d.start, d.chosen)
    for other in (stretched, Decisions(sp.csr_array(stretched.rows), d.start, d.chosen)):
        found = opening(other)
        assert (found is None) == (plain is None) == (strength < 1e3)
        assert unidentified_directions(other, np.eye(5)).shape == (5, 0)
        if found is not None:
            assert found.tested
            assert (chosen_minus_rivals(d) @ (found.direction * scale)).min() > 0.0


def test_sparse_decisions_give_the_same_untested_directions() -> None:
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.4)
    rows[:, 2] = rows[:, 0] - rows[:, 1]
    chosen = rng.integers(0, 4, 10)
    dense = unidentified_directions(Decisions(rows, np.arange(0, 41, 4), chosen), np.eye(6))
    sparse = unidentified_directions(
        Decisions(sp.csr_array(rows), np.arange(0, 41, 4), chosen), np.eye(6)
    )
    assert dense.shape == (6, 1)
    np.testing.assert_allclose(dense @ dense.T, sparse @ sparse.T, atol=1e-10)
    np.testing.assert_allclose(
        np.abs(dense[:, 0]), np.array([1, 1, 1, 0, 0, 0]) / np.sqrt(3.0), atol=1e-9
    )


def test_a_feature_that_differs_from_another_by_a_millionth_is_tested() -> None:
    d = noisy(100, 4, 2, strength=0.0, seed=1)
    twin = d.rows[:, 0] + 2e-6 * np.random.default_rng(2).standard_normal(400)
    close = Decisions(np.column_stack([d.rows, twin]), d.start, d.chosen)
    assert unidentified_directions(close, np.eye(3)).shape == (3, 0)
    assert opening(close) is None
    same = Decisions(np.column_stack([d.rows, d.rows[:, 0]]), d.start, d.chosen)
    np.testing.assert_allclose(
        np.abs(unidentified_directions(same, np.eye(3))[:, 0]),
        [np.sqrt(0.5), 0.0, np.sqrt(0.5)],
        atol=1e-9,
    )


def test_one_contradiction_among_many_choices_closes_the_opening() -> None:
    # Many more margins than the first working set holds, so that the one that matters has to be looked for.
    d = noisy(1500, 3, 2, strength=1e9, seed=4)
    assert opening(d) is not None
    margin = np.asarray(chosen_minus_rivals(d))
    contradiction = pairs([list(-margin.sum(axis=0))])
    agreement = pairs([list(margin.sum(axis=0))])
    for t in (1, 777, 1499):
        assert opening(d[:t] + contradiction + d[t:]) is None
        assert opening(d[:t] + agreement + d[t:]) is not None


def test_a_few_margins_that_test_no_more_than_a_part_do_not_decide() -> None:
    # Every other decision compares the first two coefficients, both ways; the rest speak for the third, one way.
    both_ways = [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]
    d = pairs([row for k in range(600) for row in (both_ways[k // 10 % 4], [0.0, 0.0, 1.0])])
    found = opening(d)
    assert found is not None
    assert found.tested
    np.testing.assert_allclose(found.direction, [0.0, 0.0, 1.0], atol=1e-9)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    some.lists(
        some.lists(some.tuples(some.integers(-3, 3), some.integers(-3, 3)), min_size=1, max_size=4),
        min_size=1,
        max_size=6,
    )
)
def test_brute_force_in_the_plane_agrees(offers: list[list[tuple[int, int]]]) -> None:
    rows = np.array([row for offer in offers for row in offer], dtype=np.float64)
    d = Decisions(
        rows, np.concatenate([[0], np.cumsum([len(offer) for offer in offers])]), [0] * len(offers)
    )
    margin = np.asarray(chosen_minus_rivals(d)).astype(np.int64)
    # If an open direction exists, one at a right angle to a margin does (whole numbers: no rounding).
    corners = [
        sign * np.array([-row[1], row[0]]) for row in margin if row.any() for sign in (1, -1)
    ]
    passing = [q for q in corners if (margin @ q >= 0).all()]
    rank = np.linalg.matrix_rank(margin) if margin.size else 0
    found = opening(d)
    assert unidentified_directions(d, np.eye(2)).shape[1] == 2 - rank
    assert (found is not None) == bool(passing or rank == 0)
    if found is not None:
        passes(d, found)
        assert found.tested == (rank == 2)


def test_a_direction_is_told_by_its_largest_coefficients() -> None:
    names = tuple("abcdefgh")
    assert describe_direction(np.array([0.01, -0.5, 1.0, 0, 0, 0, 0, 0]), names) == "+1 c -0.5 b"
    assert describe_direction(np.ones(8), names) == "+1 a +1 b +1 c +1 d +1 e +1 f and 2 more"
    assert (
        str(UnboundedDirection(np.array([1.0, -0.25]), True, ("height", "holes")))
        == "+1 height -0.25 holes"
    )


def test_choices_that_were_not_seen_are_refused() -> None:
    with pytest.raises(ValueError, match="no choices"):
        find_unbounded_direction(rv.Decisions([[1.0], [2.0]], [0, 2]), np.eye(1), np.zeros((1, 0)))
