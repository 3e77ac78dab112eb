"""A posterior keeps all it came from, through a file and back, and says no to everything else in one sentence."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.io.netcdf import CHECKSUM_MARK
from revealed.models.choice import ChoiceModel
from revealed.models.likelihood import log_likelihood
from revealed.models.priors import Flat, Normal, Prior
from revealed.results.choice import ChoicePosterior
from revealed.results.load import load

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ 0.23 announces 1.0 once a day
    import arviz as az

ROWS = [[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.5, 0.0, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.0, 1.0]]
FULL: dict[str, Any] = {
    "rows": ROWS,
    "start": [0, 2, 5],
    "chosen": [1, 2],
    "names": ["V(1)", "V(2)", "größe"],
    "actions": ["left", "right", "left", "up", "rechts ←"],
    "groups": [17, 4],
    "blocks": [Block("value", 2, sum_to_zero=True), Block("extra", 1)],
    "ids": ["game 1, turn 3", "game 2"],
}


def draws(chains: int = 4, count: int = 500, width: int = 3, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal((chains, count, width))


def posterior(
    prior: Prior | None = None,
    decisions: Decisions | None = None,
    value: Floats | None = None,
    **changes: Any,
) -> ChoicePosterior:
    given: dict[str, Any] = {
        "draws": {"value": draws() if value is None else value},
        "data": decisions or Decisions(**FULL),
        "model": ChoiceModel(prior=prior or Normal(2.0, sum_to_zero=True)),
        "sampler": "px-both",
        "sample_stats": {"acceptance_rate": np.linspace(0, 1, 2000).reshape(4, 500)},
        "settings": {
            "seed": 2**80,
            "draws": 500,
            "warmup": 100,
            "options": {"a": 1, "b": [0.1, None]},
            "complete": True,
        },
    }
    return ChoicePosterior(**{**given, **changes})


def assert_same(a: Any, b: Any) -> None:
    """Equal in value and in kind, field by field, array by array, bit by bit."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind == "O":
            assert [(type(x), x) for x in a.flat] == [(type(x), x) for x in b.flat]
        else:
            assert a.tobytes() == b.tobytes()
    elif sp.issparse(a):
        assert a.shape == b.shape
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part))
    elif hasattr(a, "__dataclass_fields__"):
        for name in a.__dataclass_fields__:
            assert_same(getattr(a, name), getattr(b, name))
    elif isinstance(a, dict):
        assert set(a) == set(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b


# ---- the record


def test_reads_as_arrays() -> None:
    post = posterior()
    assert post.names == ("V(1)", "V(2)", "größe")
    assert post.values.shape == (2000, 3)
    np.testing.assert_array_equal(post.values[500], post.draws["value"][1, 0])
    np.testing.assert_array_equal(post["V(2)"], post.draws["value"][:, :, 1])
    np.testing.assert_allclose(post.mean(), post.draws["value"].mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(post.sd(), post.draws["value"].std(axis=(0, 1), ddof=1), rtol=1e-12)
    assert repr(post) == "<ChoicePosterior: 4 chains of 500 draws, 3 coefficients, sampler px-both>"


def test_is_frozen() -> None:
    mine = draws()
    post = posterior(value=mine)
    mine[0, 0, 0] = 99.0
    assert post.draws["value"][0, 0, 0] != 99.0
    for array in (
        post.draws["value"],
        post.values,
        post["V(1)"],
        post.sample_stats["acceptance_rate"],
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


def test_copies_and_pickles() -> None:
    post = posterior()
    assert_same(pickle.loads(pickle.dumps(post)), post)
    assert_same(copy.deepcopy(post), post)


def test_settings_become_plain() -> None:
    post = posterior(settings={"seed": np.int64(4), "init": np.arange(2.0), "pair": (1, 2)})
    assert post.settings == {"seed": 4, "init": [0.0, 1.0], "pair": [1, 2]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"value": draws()[0]}, r"draws of value must be a \(chain, draw, 3\) array.*\(500, 3\)"),
        ({"value": draws()[:, :0]}, r"at least one draw; its shape is \(4, 0, 3\)"),
        (
            {"value": draws(width=2), "sample_stats": {}},
            r"draws of value must be a \(chain, draw, 3\) array .*; its shape is \(4, 500, 2\)",
        ),
        ({"draws": {}}, "this model has the parameters value, and there are draws of none"),
        (
            {"draws": {"value": draws(), "prior_sd": draws()[:, :, 0]}},
            "this model has the parameters value, and there are draws of value, prior_sd",
        ),
        ({"decisions": Decisions(ROWS, [0, 2, 5])}, "these decisions carry no choices"),
        ({"prior": 2500.0}, r"prior must be rv.Normal\(sd\) or rv.Flat\(\); it is 2500.0"),
        (
            {"sample_stats": {"acceptance_rate": np.zeros(4)}},
            r"the stat 'acceptance_rate' has shape \(4,\); it needs .* \(4, 500\)",
        ),
        (
            {"sample_stats": {"log weight": np.zeros((4, 500))}},
            "the stat 'log weight' needs another name",
        ),
        ({"sample_stats": {"chain": np.zeros((4, 500))}}, "the stat 'chain' needs another name"),
        (
            {"settings": {"sampler": object()}},
            "the settings must be text, numbers, lists and mappings only",
        ),
    ],
)
def test_refuses_at_birth(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        posterior(**changes)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_refuses_draws_that_are_not_finite(bad: float) -> None:
    wrong = draws()
    wrong[2, 7, 1] = bad
    with pytest.raises(
        ValueError, match=rf"chain 2, draw 7: V\(2\) is {bad}; draws must be finite"
    ):
        posterior(value=wrong)


def test_refuses_an_unknown_coefficient() -> None:
    with pytest.raises(
        ValueError, match=r"there is no coefficient 'V\(9\)'; there are V\(1\), V\(2\), größe"
    ):
        posterior()["V(9)"]


# ---- the summary


def test_summary_of_a_good_run() -> None:
    summary = posterior().summary()
    assert summary.converged
    assert summary.warnings == ()
    assert "größe" in str(summary)
    assert str(summary).splitlines()[-1].startswith("Converged: R-hat at most 1.0")


def test_summary_of_chains_that_disagree() -> None:
    summary = posterior(value=draws() + np.arange(4)[:, None, None] * [0.0, 1.0, 0.0]).summary()
    assert not summary.converged
    assert "Do not trust this yet: V(2): R-hat" in str(summary)
    assert "(should be below 1.01): the chains disagree; run longer" in str(summary)


def test_summary_of_an_interrupted_run() -> None:
    summary = posterior(settings={"draws": 3000, "complete": False}).summary()
    assert not summary.converged
    assert "Do not trust this yet: the run was interrupted after 500 of 3000 draws a chain" in str(
        summary
    )


def test_summary_knows_which_coefficient_can_only_be_zero() -> None:
    still = draws()
    still[:, :, 2] = 0.0
    blocks = [Block("value", 2, sum_to_zero=True), Block("extra", 1, sum_to_zero=True)]
    centred = Decisions(**{**FULL, "blocks": blocks})
    assert posterior(value=still, decisions=centred, prior=Normal(2.0)).summary().converged
    assert posterior(value=still, prior=Flat(sum_to_zero=True)).summary().converged
    stuck = posterior(
        value=still, decisions=centred, prior=Normal(2.0, sum_to_zero=False)
    ).summary()
    assert stuck.warnings[0].startswith("größe: no draw ever moved")


# ---- through a file and back

PRIORS: dict[str, Prior] = {
    "number": Normal(50.0),
    "whole number": Normal(2.0, mean=1),
    "vector": Normal(
        mean=np.array([1.0, -0.0, 3.0]),
        sum_to_zero=False,
        covariance=np.array([0.1, 1 / 3, 1e-90]),
    ),
    "matrix": Normal(covariance=np.eye(3) + 0.1),
    "by block": Normal(sum_to_zero=True, covariance={"value": 1.0, "extra": 1 / 7}),
    "flat": Flat(),
    "flat, centred": Flat(sum_to_zero=True),
}


@pytest.mark.filterwarnings("ignore:An ill-conditioned matrix")  # a variance of 1e-90
@pytest.mark.parametrize("prior", PRIORS)
def test_round_trip_of_priors(prior: str, tmp_path: Path) -> None:
    post = posterior(PRIORS[prior])
    post.save(tmp_path / "player.nc")
    assert_same(load(tmp_path / "player.nc"), post)


LABELS: dict[str, Any] = {
    "text": ["b", "a much longer one"],
    "wide text": np.array(["a", "b"], dtype="<U40"),
    "text as objects": np.array(["a", ""], dtype=object),
    "small whole": np.array([1, 200], dtype=np.uint8),
    "whole": [-1, 2**62],
    "big-endian": np.array([1, 2], dtype=">i4"),
    "fractional": [0.1, -0.0],
    "truth": [True, False],
    "dates": np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"),
}


@pytest.mark.parametrize("labels", LABELS)
def test_round_trip_of_labels(labels: str, tmp_path: Path) -> None:
    given = LABELS[labels]
    post = posterior(
        decisions=Decisions(
            **{**FULL, "groups": given, "ids": given, "actions": np.resize(given, 5)}
        )
    )
    post.save(tmp_path / "player.nc")
    assert_same(load(tmp_path / "player.nc"), post)


@pytest.mark.parametrize("sessions", [None, ["b", "a much longer one"], [2, 1]])
def test_round_trip_of_times(sessions: Any, tmp_path: Path) -> None:
    given = Decisions(**{**FULL, "times": [19783.0 + 1 / 3, -1e-7], "sessions": sessions})
    posterior(decisions=given).save(tmp_path / "player.nc")
    back = load(tmp_path / "player.nc").decisions
    np.testing.assert_array_equal(back.times, given.times)
    found = None if back.sessions is None else back.sessions.tolist()
    assert found == sessions


@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
@pytest.mark.parametrize("times", [None, [19783.0 + 1 / 3, -1e-7, 2.0]])
def test_round_trip_of_times_of_games(times: Any, tmp_path: Path) -> None:
    games = rv.Rankings.from_lists([["x", "y"], ["y", "x"], ["x", "y"]], times=times)
    rv.fit(games, draws=10, warmup=10, chains=1, seed=1, progress=False).save(tmp_path / "r.nc")
    back = load(tmp_path / "r.nc").rankings.times
    assert (None if back is None else back.tolist()) == times


@pytest.mark.parametrize("zeros", [False, True])
def test_round_trip_of_sparse_rows(zeros: bool, tmp_path: Path) -> None:
    rows = sp.csr_array((5, 3)) if zeros else sp.csr_array(np.array(ROWS))
    post = posterior(decisions=Decisions(**{**FULL, "rows": rows}))
    post.save(tmp_path / "player.nc")
    back = load(tmp_path / "player.nc")
    assert sp.issparse(back.decisions.rows)
    assert_same(back, post)


def test_round_trip_of_a_bare_posterior(tmp_path: Path) -> None:
    one = Decisions([[1.0], [2.0]], [0, 2], [0])
    post = ChoicePosterior({"value": np.array([[[-0.0]]])}, one, ChoiceModel(prior=Flat()), "da")
    post.save(tmp_path / "player.nc")
    back = load(str(tmp_path / "player.nc"))
    assert_same(back, post)
    assert back.decisions.actions is None
    assert back.decisions.groups is None
    assert back.decisions.times is None
    assert back.decisions.sessions is None


def test_round_trip_of_stats(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    stats = {
        "accepted": rng.random((4, 500)) < 0.5,
        "steps": rng.integers(0, 9, (4, 500)).astype(np.int32),
        "log_weight": np.where(rng.random((4, 500)) < 0.1, np.nan, -np.inf),
    }
    post = posterior(sample_stats=stats)
    post.save(tmp_path / "player.nc")
    assert_same(load(tmp_path / "player.nc"), post)


def test_round_trip_of_a_large_prior(tmp_path: Path) -> None:
    width = 60
    d = Decisions(np.eye(width), [0, width], [0], blocks=[Block(f"b{k}", 1) for k in range(width)])
    covariance = np.cov(
        np.random.default_rng(0).standard_normal((width, 2 * width))
    )  # far beyond 64 KiB of text
    post = posterior(Normal(covariance=covariance), d, value=draws(width=width))
    post.save(tmp_path / "player.nc")
    assert_same(load(tmp_path / "player.nc"), post)


def test_saving_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    posterior().save(tmp_path / "player.nc")
    first = (tmp_path / "player.nc").read_bytes()
    second = posterior(value=draws(seed=1))
    with (tmp_path / "player.nc").open("rb") as reader:
        second.save(tmp_path / "player.nc")
        assert reader.read() == first  # whoever was reading the old file still has it whole
    assert_same(load(tmp_path / "player.nc"), second)
    assert [p.name for p in tmp_path.iterdir()] == ["player.nc"]


def test_loading_does_not_wait_for_arviz(tmp_path: Path) -> None:
    posterior().save(tmp_path / "player.nc")
    code = (
        "import sys; from revealed.results.load import load; p = load(sys.argv[1]); p.save(sys.argv[1]); p.summary(); "
        "print([m for m in ('arviz', 'xarray', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "player.nc")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


# ---- what cannot be written


def test_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"there is no folder .*nowhere to write player.nc into; make it first"
    ):
        posterior().save(tmp_path / "nowhere" / "player.nc")
    assert list(tmp_path.iterdir()) == []


def test_refuses_to_write_over_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder; give the name of a file"):
        posterior().save(tmp_path)


def test_refuses_a_name_the_disk_does_not_take(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be written: File name too long"):
        posterior().save(tmp_path / ("x" * 300))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="needs a folder that even root cannot write to"
)
def test_refuses_an_unwritable_folder() -> None:
    with pytest.raises(ValueError, match=r"/proc/player.nc cannot be written: "):
        posterior().save("/proc/player.nc")


def test_a_full_disk_leaves_the_old_file_alone(tmp_path: Path) -> None:
    old = posterior()
    old.save(tmp_path / "player.nc")
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(ValueError, match="cannot be written: File too large"):
            posterior(value=draws(seed=1)).save(tmp_path / "player.nc")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_same(load(tmp_path / "player.nc"), old)
    assert [p.name for p in tmp_path.iterdir()] == ["player.nc"]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            np.array(["a", 1], dtype=object),
            "the groups are of mixed types, .* make them all text or all numbers",
        ),
        (np.array([1j, 2j]), "the groups are of complex128"),
        (["a", "b\0c"], "groups 'b.*c' has a character that a NetCDF file cannot hold; rename it"),
        (["a", "\udc80"], "groups .* has a character that a NetCDF file cannot hold; rename it"),
    ],
)
def test_refuses_labels_that_netcdf_cannot_hold(labels: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        posterior(decisions=Decisions(**{**FULL, "groups": labels})).save(tmp_path / "player.nc")
    assert list(tmp_path.iterdir()) == []


# ---- what cannot be read


def test_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^there is no file .*player.nc$"):
        load(tmp_path / "player.nc")


def test_refuses_to_read_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder, not a saved posterior"):
        load(tmp_path)


def test_refuses_a_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be read: Not a directory"):
        load(tmp_path / "file" / "player.nc")


@pytest.mark.parametrize(
    "content", [b"", b"decision,action,chosen\n", b"CDF\x01" + bytes(60), b"\x80\x04N."]
)
def test_refuses_other_kinds_of_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "player.nc").write_bytes(content)
    with pytest.raises(
        ValueError, match="is not a posterior saved by revealed: it is not a NetCDF 4 file"
    ):
        load(tmp_path / "player.nc")


def test_refuses_every_truncation(tmp_path: Path) -> None:
    post = posterior()
    post.save(tmp_path / "player.nc")
    whole = (tmp_path / "player.nc").read_bytes()
    for length in np.linspace(8, len(whole) - len(CHECKSUM_MARK) - 33, 40).astype(int):
        (tmp_path / "player.nc").write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is damaged or cut short and cannot be read"):
            load(tmp_path / "player.nc")
    (tmp_path / "player.nc").write_bytes(whole[:-1])  # part of the seal is gone, and nothing else
    assert_same(load(tmp_path / "player.nc"), post)


def test_refuses_every_flipped_bit(tmp_path: Path) -> None:
    posterior().save(tmp_path / "player.nc")
    whole = (tmp_path / "player.nc").read_bytes()
    rng = np.random.default_rng(0)
    for at, bit in zip(
        rng.integers(8, len(whole) - len(CHECKSUM_MARK) - 32, 200),
        rng.integers(0, 8, 200),
        strict=True,
    ):
        broken = bytearray(whole)
        broken[at] ^= 1 << int(bit)
        (tmp_path / "player.nc").write_bytes(broken)
        with pytest.raises(ValueError, match="is damaged or cut short and cannot be read"):
            load(tmp_path / "player.nc")


def edited(path: Path, **attributes: Any) -> Path:
    import h5py

    posterior().save(path)
    with h5py.File(path, "r+") as file:
        for key, value in attributes.items():
            file.attrs[key] = value
            if value is None:
                del file.attrs[key]
    return path


@pytest.mark.parametrize(
    "attributes",
    [
        {"model": "{"},
        {"model": json.dumps({"part": "Normal"})},
        {"model": json.dumps({"part": "ChoiceModel", "colour": 1})},
        {"data": "Boards"},
        {"blocks": json.dumps([["value", 99, False]])},
        {"format_version": "one"},
    ],
)
def test_refuses_attributes_that_make_no_sense(attributes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is damaged or cut short and cannot be read"):
        load(edited(tmp_path / "player.nc", **attributes))


def test_a_part_that_nobody_has_imported_is_named(tmp_path: Path) -> None:
    model = json.dumps({"part": "Cauchy"})
    with pytest.raises(ValueError, match=r"has the part 'Cauchy', .* import the module"):
        load(edited(tmp_path / "player.nc", model=model))


def test_refuses_a_file_with_a_part_missing(tmp_path: Path) -> None:
    import h5py

    for parts in (
        ["posterior/value"],
        ["posterior/coefficient", "constant_data/coefficient"],  # each can stand in for the other
        ["constant_data/ids"],
        ["constant_data/rows"],
        ["observed_data"],
    ):
        posterior().save(tmp_path / "player.nc")
        with h5py.File(tmp_path / "player.nc", "r+") as file:
            for part in parts:
                del file[part]
        with pytest.raises(ValueError, match="is damaged or cut short and cannot be read"):
            load(tmp_path / "player.nc")


def test_refuses_a_newer_format(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"written by a newer version of revealed \(file format 5; this one reads 4\)",
    ):
        load(edited(tmp_path / "player.nc", format_version=5))


@pytest.mark.parametrize("mark", ["pymc", ""])
def test_refuses_a_foreign_netcdf(mark: str, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"not a posterior saved by revealed: it is some other program's NetCDF file",
    ):
        load(edited(tmp_path / "player.nc", created_by=mark, format_version="CF-1.7"))


# ---- ArviZ

old_arviz = pytest.mark.skipif(
    "InferenceData" not in vars(az), reason="ArviZ 1.x reads files through xarray alone"
)


def test_to_arviz_has_the_groups_and_names() -> None:
    post = posterior()
    idata = post.to_arviz(log_likelihood=False)
    assert idata["posterior"]["value"].dims == ("chain", "draw", "coefficient")
    assert list(idata["posterior"]["coefficient"].values) == ["V(1)", "V(2)", "größe"]
    np.testing.assert_array_equal(
        idata["posterior"]["value"].sel(coefficient="V(2)").values, post["V(2)"]
    )
    np.testing.assert_array_equal(
        idata["sample_stats"]["acceptance_rate"].values, post.sample_stats["acceptance_rate"]
    )
    assert idata["observed_data"]["chosen"].sel(decision="game 2") == 2
    constant = idata["constant_data"]
    assert constant["rows"].dims == ("row", "coefficient")
    np.testing.assert_array_equal(constant["rows"].values, ROWS)
    assert list(constant["start"].values) == [0, 2, 5]
    assert list(constant["ids"].values) == FULL["ids"]
    assert list(constant["actions"].values) == FULL["actions"]
    assert list(constant["groups"].values) == FULL["groups"]
    assert idata.attrs["created_by"] == "revealed"
    assert idata.attrs["format_version"] == 4
    assert idata.attrs["sampler"] == "px-both"
    assert json.loads(idata.attrs["settings"]) == post.settings
    assert json.loads(idata.attrs["model"]) == {
        "part": "ChoiceModel",
        "prior": {
            "part": "Normal",
            "sd": 2.0,
            "mean": 0.0,
            "sum_to_zero": True,
            "covariance": None,
        },
        "noise": {"part": "NormalNoise"},
        "groups": {"part": "Pooled"},
        "transitions": {"part": "Known"},
    }
    assert idata.attrs["data"] == "Decisions"
    assert json.loads(idata.attrs["blocks"]) == [["value", 2, True], ["extra", 1, False]]


def test_to_arviz_with_sparse_rows_and_nothing_optional() -> None:
    post = posterior(
        decisions=Decisions(sp.csr_array(np.array(ROWS)), [0, 2, 5], [1, 2]), sample_stats={}
    )
    idata = post.to_arviz(log_likelihood=False)
    constant = idata["constant_data"]
    parts = (
        constant["rows_data"].values,
        constant["rows_indices"].values,
        constant["rows_indptr"].values,
    )
    np.testing.assert_array_equal(sp.csr_array(parts, shape=(5, 3)).toarray(), ROWS)
    assert not {"rows", "actions", "groups"} & set(constant.data_vars)


def test_to_arviz_gives_a_tree_where_there_is_no_inference_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import xarray as xr

    if "InferenceData" in vars(az):
        monkeypatch.delattr(az, "InferenceData")
    tree = posterior().to_arviz(log_likelihood=False)
    assert isinstance(tree, xr.DataTree)
    assert set(tree.children) == {"posterior", "sample_stats", "observed_data", "constant_data"}
    assert tree.attrs["created_by"] == "revealed"
    np.testing.assert_array_equal(tree["posterior/value"].values, posterior().draws["value"])


def assert_reads_like(read: Any, post: ChoicePosterior) -> None:
    np.testing.assert_array_equal(read["posterior"]["value"].values, post.draws["value"])
    assert list(read["posterior"]["coefficient"].values) == list(post.names)
    assert read["sample_stats"]["accepted"].dtype == bool
    np.testing.assert_array_equal(
        read["sample_stats"]["accepted"].values, post.sample_stats["accepted"]
    )
    assert list(read["observed_data"]["chosen"].values) == [1, 2]
    assert list(read["constant_data"]["actions"].values) == FULL["actions"]
    assert read.attrs["created_by"] == "revealed"


def test_arviz_opens_the_file(tmp_path: Path) -> None:
    import xarray as xr

    post = posterior(sample_stats={"accepted": draws()[:, :, 0] > 0})
    post.save(tmp_path / "player.nc")
    with xr.open_datatree(tmp_path / "player.nc", engine="h5netcdf") as tree:  # as ArviZ 1.x does
        assert set(tree.children) == {"posterior", "sample_stats", "observed_data", "constant_data"}
        assert_reads_like(tree, post)


@old_arviz
def test_old_arviz_opens_the_file(tmp_path: Path) -> None:
    post = posterior(sample_stats={"accepted": draws()[:, :, 0] > 0})
    post.save(tmp_path / "player.nc")
    idata = az.from_netcdf(str(tmp_path / "player.nc"))
    assert set(idata.groups()) == {"posterior", "sample_stats", "observed_data", "constant_data"}
    assert_reads_like(idata, post)
    assert list(az.summary(idata).index) == ["value[V(1)]", "value[V(2)]", "value[größe]"]


@old_arviz
def test_a_file_that_arviz_wrote_loads_again(tmp_path: Path) -> None:
    post = posterior()
    post.to_arviz(log_likelihood=False).to_netcdf(str(tmp_path / "player.nc"))
    back = load(tmp_path / "player.nc")
    assert_same(back.draws, post.draws)
    assert_same(back.prior, post.prior)
    assert_same(back.settings, post.settings)
    assert list(back.decisions.ids) == list(post.decisions.ids)


def test_log_likelihood_of_every_choice(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    d = Decisions(rng.standard_normal((60, 3)), np.arange(0, 61, 3), rng.integers(0, 3, 20))
    post = posterior(decisions=d, value=0.1 * draws(), sample_stats={})
    exact = log_likelihood(d, post.draws["value"][2, 7])
    idata = post.to_arviz()
    choice = idata["log_likelihood"]["choice"]
    assert choice.dims == ("chain", "draw", "decision")
    np.testing.assert_allclose(choice.values[2, 7], exact, rtol=1e-12)
    assert az.loo(idata).n_data_points == 20
    post.save(tmp_path / "player.nc", log_likelihood=True)
    import h5py

    with h5py.File(tmp_path / "player.nc") as file:
        np.testing.assert_array_equal(file["log_likelihood/choice"][...], choice.values)
    assert_same(load(tmp_path / "player.nc"), post)
