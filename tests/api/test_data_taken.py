"""What `rv.fit` takes as data: tables, paths of files, folders and lists say what data in their own class say."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from tests.support.cases import features, write_two_parquet_files

MODEL = rv.ChoiceModel(prior=rv.Normal(2.0))
RING = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]


def quick(data: Any, model: Any = MODEL, **settings: Any) -> Any:
    """A short fit whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit(data, model, **{"draws": 20, "warmup": 20, "chains": 2, **settings})


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    for name in one.draws:
        np.testing.assert_array_equal(one.draws[name], other.draws[name])


@pytest.mark.parametrize("backend", ["pyarrow", "pandas", "polars"])
def test_a_dataframe_is_read_as_from_dataframe_reads_it(backend: str) -> None:
    d = features(30)
    found = quick(rv.to_dataframe(d, backend))
    assert_same(found, quick(d))
    assert found.names == d.names
    assert isinstance(found.data, rv.Decisions)


def test_a_lazy_table_is_collected_without_a_warning() -> None:
    lazy = rv.to_dataframe(features(30), "polars").lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        found = rv.fit(lazy, MODEL, draws=20, warmup=20, chains=2)
    assert_same(found, quick(features(30)))


@pytest.mark.parametrize("name", ["seen.csv", "seen.csv.gz", "seen.parquet"])
def test_a_path_is_read_as_read_file_reads_it(name: str, tmp_path: Path) -> None:
    rv.write_file(features(30), tmp_path / name)
    found = quick(tmp_path / name)
    np.testing.assert_array_equal(found.draws["value"], quick(str(tmp_path / name)).draws["value"])
    assert_same(found, quick(rv.read_file(tmp_path / name)))
    with pytest.raises(ValueError, match="there is no such file"):
        rv.fit(tmp_path / f"no {name}", MODEL)


def test_a_folder_is_read_chunk_by_chunk(tmp_path: Path) -> None:
    d = features(400)
    folder = write_two_parquet_files(tmp_path, d, first=250, group=217)
    found = quick(folder, draws=200)
    assert found.sampler == "laplace"
    assert_same(found, quick(rv.scan_parquet(folder), draws=200))
    with pytest.raises(ValueError, match='a folder or a cluster needs the sampler "laplace"'):
        rv.fit(folder, MODEL, sampler="da")
    for groups in (rv.Separate(), rv.Hierarchical()):
        with pytest.raises(ValueError, match=r"a folder of files is fitted with groups=rv.Pooled"):
            rv.fit(folder, MODEL.replace(groups=groups))
    with pytest.raises(ValueError, match='"laplace", which does not take correlated noise'):
        rv.fit(folder, MODEL.replace(noise=rv.CorrelatedNoise()))
    lapsing = MODEL.replace(noise=rv.LogitNoise(lapse=rv.Lapse()))
    with pytest.raises(ValueError, match=r"lapses; change the model, or read .* rv\.read_parquet"):
        rv.fit(folder, lapsing)


class Client:
    """What looks like a Dask client with one worker, and must never be asked for work."""

    def submit(self, *_: Any) -> None:
        raise AssertionError("nothing should be submitted")

    def nthreads(self) -> dict[str, int]:
        return {"worker": 1}


@pytest.mark.parametrize(
    ("data", "model", "words"),
    [
        (RING, rv.RankingModel(), "a prior sd that is inferred|rankings"),
        (
            rv.Trajectories(([0, 1, 0], [0, 1]), 2, 2),
            rv.ChoiceModel(transitions=rv.Dirichlet()),
            "unknown transitions",
        ),
        (features(5), MODEL.replace(noise=rv.CorrelatedNoise()), "correlated noise"),
    ],
)
def test_a_cluster_that_could_not_help_is_refused(data: Any, model: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f'"laplace", which does not take .*({words})'):
        rv.fit(data, model, executor=Client())


@pytest.mark.parametrize("groups", [rv.Pooled(), rv.Hierarchical()])
def test_lapses_on_a_cluster_are_refused_with_what_would_do(groups: Any) -> None:
    d = features(30)
    both = rv.Decisions(d.rows, d.start, d.chosen, groups=np.arange(30) % 3)
    model = MODEL.replace(noise=rv.LogitNoise(lapse=rv.Lapse()), groups=groups)
    with pytest.raises(ValueError, match=r"lapses.* executor=threads in place of") as e:
        rv.fit(both, model, executor=Client())
    assert 'sampler="hierarchical"' not in str(e.value)  # which takes no lapses


def test_groups_are_read_from_a_column_called_group() -> None:
    d = features(30)
    grouped = rv.Decisions(d.rows, d.start, d.chosen, groups=np.arange(30) % 3)
    separate = MODEL.replace(groups=rv.Separate())
    assert_same(quick(rv.to_dataframe(grouped), separate), quick(grouped, separate))


def test_lists_of_names_are_the_games_of_a_ranking_model() -> None:
    games = rv.Rankings.from_lists(RING)
    assert_same(quick(RING, rv.RankingModel()), quick(games, rv.RankingModel()))
    assert_same(quick(games, None), quick(games, rv.RankingModel()))


def test_the_model_of_the_data_is_the_default() -> None:
    assert isinstance(quick(features(30), None), rv.ChoicePosterior)
    assert quick(features(30), None).prior == rv.Normal(50.0)
    seen = rv.Trajectories(([0, 1, 0, 1], [0, 1, 1]), 2, 2)
    found = quick(seen, None)
    assert isinstance(found, rv.MDPPosterior)
    assert_same(found, quick(seen, rv.ChoiceModel(transitions=rv.Dirichlet())))


def test_the_memory_is_that_of_any_model() -> None:
    d = features(30)
    grouped = rv.Decisions(d.rows, d.start, d.chosen, groups=np.arange(30) % 3)
    few, many = (
        rv.estimate_memory(grouped, rv.ChoiceModel(groups=rv.Hierarchical()), draws=n)
        for n in (10, 100_000)
    )
    # mean, covariance and three groups of three coefficients, in four chains
    assert many - few > 3 * 8 * 4 * 99_990 * (3 + 9 + 9)
    games = rv.Rankings.from_lists(RING)
    few, many = (rv.estimate_memory(games, draws=n) for n in (10, 100_000))
    assert many - few > 8 * 8 * 4 * 99_990 * 3
