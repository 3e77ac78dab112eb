"""Trajectories from tables: their labels, episodes and groups, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import revealed as rv

STEPS = {
    "episode": [1, 1, 1, 2, 2],
    "state": ["n", "s", "n", "s", "s"],
    "action": ["go", "stay", None, "go", "go"],
    "group": ["ann", "ann", "ann", "bob", "bob"],
}


def test_a_table_gives_what_was_put_into_it() -> None:
    seen = rv.read_trajectories(pa.table(STEPS))
    assert (seen.states, seen.actions) == (("n", "s"), ("go", "stay"))
    assert [path.states.tolist() for path in seen.paths] == [[0, 1, 0], [1, 1]]
    assert [path.actions.tolist() for path in seen.paths] == [[0, 1], [0, 0]]
    assert seen.groups is not None
    assert seen.groups.tolist() == ["ann", "bob"]
    # from n by going to s, from s by staying to n; in the second episode from s to s
    assert seen.counts[0].tolist() == [[0, 1], [0, 1]]
    assert seen.counts[1].tolist() == [[0, 0], [1, 0]]


def test_files_are_read_as_tables_are(tmp_path: Path) -> None:
    table = pa.table(STEPS)
    pyarrow.csv.write_csv(table, tmp_path / "steps.csv")
    pq.write_table(table, tmp_path / "steps.parquet")
    for name in ("steps.csv", "steps.parquet"):
        seen = rv.read_trajectories(tmp_path / name)
        assert seen.counts.tolist() == rv.read_trajectories(table).counts.tolist()


def test_whole_numbers_are_positions_and_episodes_may_be_interleaved() -> None:
    rows = {"episode": ["a", "b", "a", "b"], "state": [0, 3, 1, 0], "action": [0, 0, 1, 0]}
    seen = rv.read_trajectories(pa.table(rows), actions=3)
    assert (len(seen.states), len(seen.actions)) == (4, 3)
    assert [path.states.tolist() for path in seen.paths] == [[0, 1], [3, 0]]
    assert seen.groups is None


def test_labels_that_were_never_met_can_be_given() -> None:
    seen = rv.read_trajectories(pa.table(STEPS), states=["s", "w", "n"])
    assert seen.states == ("s", "w", "n")
    assert seen.paths[0].states.tolist() == [2, 0, 2]


def test_a_fit_takes_the_path_of_a_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    walk = rv.random_mdp(rng, 3, 2).simulate(rng, [1.0, 0.0, -1.0], 60)
    rows = pa.table({"state": walk.states, "action": walk.actions})
    pyarrow.csv.write_csv(rows, tmp_path / "steps.csv")
    model = rv.ChoiceModel(prior=rv.Normal(1.0), transitions=rv.Dirichlet(1.0))
    brief = {"draws": 20, "warmup": 20, "chains": 1, "progress": False}
    with pytest.warns(rv.NotConvergedWarning):
        of_path = rv.fit(tmp_path / "steps.csv", model, **brief)  # type: ignore[arg-type]
    with pytest.warns(rv.NotConvergedWarning):
        of_data = rv.fit(rv.Trajectories(walk, 3, 2), model, **brief)  # type: ignore[arg-type]
    np.testing.assert_array_equal(of_path.draws["value"], of_data.draws["value"])


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("state", ["n", None, "n", "s", "s"], "row 1: the state is missing"),
        ("action", ["go", None, "go", "go", "go"], "row 1: the action is missing"),
        ("action", [None] * 5, "no action in any row"),
        ("group", ["ann", "bob", "ann", "bob", "bob"], "episode 1: the rows have more than one"),
    ],
)
def test_what_is_wrong_is_named(column: str, values: list[str | None], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rv.read_trajectories(pa.table(STEPS | {column: values}))


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no column 'place', only 'episode', 'state'"):
        rv.read_trajectories(pa.table(STEPS), state="place")
