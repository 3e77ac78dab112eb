"""The checks of arguments that all modules share: what they return, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revealed._validation import (
    as_generator,
    as_seed_number,
    check_count,
    check_counts,
    check_finite,
    check_positive,
    check_writable,
)


def test_counts_come_back_as_python_numbers() -> None:
    assert check_count("draws", np.int32(7)) == 7
    assert type(check_count("draws", np.int32(7))) is int
    assert check_count("warmup", 0, least=0) == 0


@pytest.mark.parametrize("number", [0, -3, 2.0, "7", None, np.nan])
def test_what_is_no_count_is_refused_by_name(number: Any) -> None:
    with pytest.raises(ValueError, match=r"^draws must be a whole number, at least 1; it is "):
        check_count("draws", number)


def test_the_counts_of_a_run_have_limits_of_their_own() -> None:
    check_counts(draws=1, warmup=0, chains=1, executor=1, seed=None)
    check_counts(warmup=None)
    check_counts(seed=np.random.default_rng(0))
    for wrong in ({"draws": 0}, {"warmup": -1}, {"seed": -1}, {"executor": 0}, {"chains": None}):
        (name,) = wrong
        with pytest.raises(ValueError, match=f"^{name} must be a whole number, at least"):
            check_counts(**wrong)


@pytest.mark.parametrize("number", [0.0, -1.0, np.inf, np.nan, "wide", None])
def test_what_is_not_positive_is_refused_by_name(number: Any) -> None:
    assert check_positive("the scale", np.float32(2.5)) == 2.5
    with pytest.raises(ValueError, match=r"^the scale must be a positive number; it is "):
        check_positive("the scale", number)


def test_what_is_not_finite_is_refused_by_name() -> None:
    numbers = np.arange(4.0)
    assert check_finite("the reward", numbers) is numbers
    for odd in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"^the reward holds a NaN or infinite number"):
            check_finite("the reward", np.array([1.0, odd]))


def test_a_file_needs_a_folder_that_may_be_written(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.nc")
    with pytest.raises(ValueError, match="is a folder; give the name of a file to write"):
        check_writable(tmp_path)
    with pytest.raises(ValueError, match=r"there is no folder .* to write new.nc into"):
        check_writable(tmp_path / "nowhere" / "new.nc")


def test_a_generator_is_used_and_a_number_starts_one() -> None:
    rng = np.random.default_rng(5)
    assert as_generator(rng) is rng
    assert as_generator(5).random() == np.random.default_rng(5).random()
    assert as_generator(None).random() != as_generator(None).random()


def test_a_seed_becomes_the_number_that_is_recorded() -> None:
    assert as_seed_number(7) == 7
    rng = np.random.default_rng(5)
    first, second = as_seed_number(rng), as_seed_number(rng)
    assert first != second
    assert first == as_seed_number(np.random.default_rng(5))
    assert 0 <= as_seed_number(None) < 2**32


@pytest.mark.parametrize("seed", [-1, 1.5, "one"])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    for convert in (as_generator, as_seed_number):
        with pytest.raises(
            ValueError, match=r"^seed must be a whole number, at least 0, or a numpy"
        ):
            convert(seed)
