"""Blocks and fused steps against the same arithmetic written out in numpy, bit for bit."""

import math

import numpy as np
import pytest

from revealed._types import Floats, Singles
from revealed.kernels import vectors
from revealed.kernels._compile import compiled, compiled_no_nan

SEED = 20


@compiled
def block_sum(numbers: Singles, start: np.uint64) -> np.float32:
    total: np.float32 = vectors.sum_block(vectors.load(numbers, start))
    return total


@compiled
def horner(numbers: Singles, u: np.float32, out: Singles) -> None:
    first, second = vectors.load(numbers, np.uint64(0)), vectors.load(numbers, np.uint64(16))
    sums = vectors.add(first, vectors.multiply(first, second))
    vectors.store(out, np.uint64(1), vectors.multiply_add(vectors.repeat(u), sums, second))


@compiled
def fused(x: float, y: float, z: float) -> float:
    value: float = vectors.multiply_add(x, y, z)
    return value


@compiled
def inner(x: Floats, y: Floats) -> float:
    return vectors.dot(x, y)


@compiled_no_nan
def inner_in_another_loop(x: Floats, y: Floats, times: int) -> float:
    total = 0.0
    for _ in range(times):
        total = max(total, abs(vectors.dot(x, y)))
    return total


@compiled
def last_and_lanes(numbers: Floats) -> tuple[float, float]:
    block = vectors.load(numbers, np.uint64(0))
    weighted = vectors.multiply(block, vectors.count_up())
    return vectors.last_of_block(block), vectors.sum_block(weighted)


@compiled
def quotients_and_roots(numbers: Floats, out: Floats) -> None:
    first, second = vectors.load(numbers, np.uint64(0)), vectors.load(numbers, np.uint64(8))
    vectors.store(out, np.uint64(0), vectors.divide(first, second))
    vectors.store(out, np.uint64(8), vectors.square_root(first))
    vectors.store(out, np.uint64(16), vectors.subtract_product(first, second, first))


def by_halves(numbers: Singles) -> np.float32:
    while numbers.size > 1:
        half = numbers.size // 2
        numbers = numbers[:half] + numbers[half:]
    return np.float32(numbers[0])


def test_a_block_is_summed_by_halves_from_any_position() -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        numbers = rng.lognormal(sigma=4.0, size=40).astype(np.float32)
        start = int(rng.integers(24))
        assert block_sum(numbers, np.uint64(start)) == by_halves(numbers[start : start + 16])


def test_sums_of_single_precision_depend_on_the_order() -> None:
    """The check above could see another order."""
    rng = np.random.default_rng(SEED)
    numbers = rng.lognormal(sigma=4.0, size=(200, 16)).astype(np.float32)
    in_sequence = np.cumsum(numbers, axis=1, dtype=np.float32)[:, -1]
    halves = np.array([by_halves(row) for row in numbers])
    assert (in_sequence != halves).sum() > 50


def test_blocks_are_multiplied_and_added_number_by_number() -> None:
    rng = np.random.default_rng(SEED)
    numbers, u = rng.normal(size=32).astype(np.float32), np.float32(0.3)
    out = np.zeros(18, np.float32)
    horner(numbers, u, out)
    sums = numbers[:16] + numbers[:16] * numbers[16:]
    # In double precision the product of two single-precision numbers is exact: one rounding.
    once = (np.float64(u) * sums.astype(float) + numbers[16:].astype(float)).astype(np.float32)
    np.testing.assert_array_equal(out[1:17], once)
    assert out[0] == out[17] == 0.0


def test_multiply_add_rounds_once() -> None:
    """What is left of x y after rounding it is itself a number, which only one rounding finds."""
    x, y = 1.0 + 2.0**-30, 1.0 - 2.0**-30
    assert x * y == 1.0
    assert fused(x, y, -1.0) == -(2.0**-60)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 15, 16, 17, 31, 33, 120])
def test_inner_product_of_any_length_is_within_its_rounding_error(size: int) -> None:
    rng = np.random.default_rng([SEED, size])
    x, y = rng.normal(size=(2, size))
    exact = math.fsum(float(a) * float(b) for a, b in zip(x, y, strict=True))
    # Higham (2002, section 3.1): n roundings of at most half a last place each.
    bound = max(size, 1) * np.finfo(float).eps * float(np.abs(x * y).sum())
    assert abs(inner(x, y) - exact) <= bound


def test_inner_product_is_the_same_in_every_loop_that_holds_a_copy() -> None:
    rng = np.random.default_rng(SEED)
    for size in range(1, 70):
        x, y = rng.normal(size=(2, size))
        assert inner_in_another_loop(x, y, 3) == abs(inner(x, y))


def test_last_number_and_count_of_a_block() -> None:
    numbers = np.arange(2.0, 10.0)
    assert last_and_lanes(numbers) == (9.0, float(np.arange(8.0) @ numbers))


def test_arrays_that_are_not_contiguous_are_refused_when_compiled() -> None:
    with pytest.raises(TypeError, match="contiguous arrays of one dimension"):
        inner(np.ones(20)[::2], np.ones(10))


def test_blocks_are_divided_rooted_and_subtracted_number_by_number() -> None:
    rng = np.random.default_rng(SEED)
    numbers, out = rng.uniform(0.5, 2.0, size=16), np.empty(24)
    quotients_and_roots(numbers, out)
    first, second = numbers[:8], numbers[8:]
    assert np.array_equal(out[:8], first / second)
    assert np.array_equal(out[8:16], np.sqrt(first))
    # rounded once: as near as one rounding of a product can be
    assert np.abs(out[16:] - (first - first * second)).max() < 1e-15
