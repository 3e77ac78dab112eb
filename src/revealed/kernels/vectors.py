"""Arithmetic of a fixed order: blocks of numbers that fill vector registers, and fused steps.

A sum is quick when its terms are added in the order that suits the machine, and a compiler that is
free to choose the order may choose another one in each loop it compiles. Draws would then differ in
the last digit with what else had run in the process. So the order is written down: a block is 64
bytes of an array, sixteen single- or eight double-precision numbers, which one or a few
instructions load, multiply and add; its sum is taken by halves,

    (x_0, ..., x_15) -> (x_0 + x_8, ..., x_7 + x_15) -> ... -> one number.

`multiply_add` rounds once where the machine can (all since 2013) and twice elsewhere; that depends
on the machine alone. None of these are called from Python: they exist only in compiled loops.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from revealed._types import Floats
from revealed.kernels._compile import inlined_formula

BLOCK_BYTES = 64  # a cache line, and the widest register there is
# Unsigned positions need no test for negative ones.
TWO, THREE, FOUR, EIGHT, SIXTEEN = (np.uint64(n) for n in (2, 3, 4, 8, 16))


class Block(types.Type):  # type: ignore[misc]  # numba has no types for mypy
    """The compiled type of a block: a vector of single- or double-precision numbers."""

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar
        self.count = BLOCK_BYTES * 8 // scalar.bitwidth
        super().__init__(name=f"Block({self.count} x {scalar})")


@register_model(Block)
class _BlockModel(models.PrimitiveModel):  # type: ignore[misc]
    """In machine code a block is an LLVM vector."""

    def __init__(self, manager: Any, block: Block) -> None:
        vector = ir.VectorType(manager.lookup(block.scalar).get_value_type(), block.count)
        super().__init__(manager, block, vector)


def instruction(function: Callable[..., Any]) -> Any:
    """Declare what a loop can call: `function` gives its types, and writes its machine code."""
    return intrinsic(function)


def _require(condition: bool, sentence: str) -> None:
    """Refuse arguments of other types while a loop is compiled."""
    if not condition:
        raise TypeError(sentence)


def _block_pointer(context: Any, builder: Any, array_type: Any, array: Any, start: Any) -> Any:
    """The address of array[start], as that of a vector."""
    data = context.make_array(array_type)(context, builder, array).data
    address = builder.gep(data, [start], inbounds=True)
    vector = context.get_value_type(Block(array_type.dtype))
    return builder.bitcast(address, vector.as_pointer())


def _check_array(array: Any, start: Any) -> None:
    contiguous = isinstance(array, types.Array) and array.layout == "C" and array.ndim == 1
    _require(contiguous, "blocks are loaded from contiguous arrays of one dimension")
    _require(isinstance(start, types.Integer), "a block begins at a whole number")


def _lanes(positions: Sequence[int]) -> Any:
    """Positions within a vector, for a shuffle."""
    return ir.VectorType(ir.IntType(32), len(positions))(list(positions))


def _halves(builder: Any, vector: Any) -> tuple[Any, Any]:
    """The first and the second half of a vector."""
    half = vector.type.count // 2
    low, high = (
        builder.shuffle_vector(vector, vector, _lanes(range(begin, begin + half)))
        for begin in (0, half)
    )
    return low, high


def _sum_by_halves(builder: Any, vector: Any) -> Any:
    """The sum of a vector's numbers: half added to half, until one is left."""
    while vector.type.count > 1:
        vector = builder.fadd(*_halves(builder, vector))
    return builder.extract_element(vector, ir.IntType(32)(0))


def _fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """x y + z in one instruction where the machine has it."""
    scalar, count = (
        (x.type.element, f"v{x.type.count}") if isinstance(x.type, ir.VectorType) else (x.type, "")
    )
    name = f"llvm.fmuladd.{count}{'f32' if scalar == ir.FloatType() else 'f64'}"
    # LLVM knows a function of this name; a module declares it once.
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(x.type, [x.type] * 3), name
    )
    return builder.call(function, (x, y, z))


@instruction
def load(_: Any, array: Any, start: Any) -> tuple[Any, Callable[..., Any]]:
    """The block of an array that begins at a position."""
    _check_array(array, start)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _block_pointer(context, builder, signature.args[0], *arguments)
        loaded = builder.load(pointer)
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return Block(array.dtype)(array, types.uint64), generate


@instruction
def store(_: Any, array: Any, start: Any, block: Any) -> tuple[Any, Callable[..., Any]]:
    """Write a block into an array from a position on."""
    _check_array(array, start)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _block_pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.uint64, block), generate


@instruction
def repeat(_: Any, number: Any) -> tuple[Any, Callable[..., Any]]:
    """The block whose numbers are all equal."""
    _require(isinstance(number, types.Float), "a block holds floating-point numbers")
    block = Block(number)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, lane = context.get_value_type(block), ir.IntType(32)
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[0], lane(0))
        return builder.shuffle_vector(first, first, _lanes([0] * block.count))

    return block(number), generate


@instruction
def count_up(_: Any) -> tuple[Any, Callable[..., Any]]:
    """The block 0, 1, ..., 7 of double precision."""
    block = Block(types.float64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_value_type(block)([float(lane) for lane in range(block.count)])

    return block(), generate


@instruction
def multiply(_: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """The products of two blocks, number by number."""
    _require(isinstance(x, Block) and x == y, "only blocks of one kind are multiplied")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments)

    return x(x, y), generate


@instruction
def add(_: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """The sums of two blocks, number by number."""
    _require(isinstance(x, Block) and x == y, "only blocks of one kind are added")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return x(x, y), generate


@instruction
def multiply_add(_: Any, x: Any, y: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
    """x y + z, rounded once: of numbers, in the widest precision among them, or of blocks."""
    if isinstance(x, Block):
        _require(x == y == z, "only blocks of one kind are multiplied and added")
        kind = x
    else:
        _require(all(isinstance(n, types.Float) for n in (x, y, z)), "numbers or blocks")
        kind = max((x, y, z), key=lambda number: number.bitwidth)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _fused(builder, *arguments)

    return kind(kind, kind, kind), generate


@instruction
def subtract_product(_: Any, x: Any, y: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
    """z - x y of blocks, rounded once."""
    _require(isinstance(x, Block) and x == y == z, "only blocks of one kind are subtracted")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second, third = arguments
        return _fused(builder, builder.fneg(first), second, third)

    return x(x, x, x), generate


@instruction
def divide(_: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """The quotients of two blocks, number by number."""
    _require(isinstance(x, Block) and x == y, "only blocks of one kind are divided")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fdiv(*arguments)

    return x(x, y), generate


@instruction
def square_root(_: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
    """The square roots of a block's numbers."""
    _require(isinstance(x, Block) and x.scalar == types.float64, "a block of doubles")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = arguments[0].type
        name = f"llvm.sqrt.v{vector.count}f64"
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(vector, [vector]), name
        )
        return builder.call(function, (arguments[0],))

    return x(x), generate


@instruction
def sum_block(_: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
    """The sum of a block's numbers, by halves."""
    _require(isinstance(x, Block), "a block is summed")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _sum_by_halves(builder, arguments[0])

    return x.scalar(x), generate


@instruction
def last_of_block(_: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
    """A block's last number."""
    _require(isinstance(x, Block), "a block has a last number")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.extract_element(arguments[0], ir.IntType(32)(x.count - 1))

    return x.scalar(x), generate


@inlined_formula
def dot(x: Floats, y: Floats) -> float:
    """The inner product x'y of contiguous double-precision arrays, in sixteen partial sums."""
    # Two blocks of sums: an addition waits for the one before it, and two can be under way.
    total_1, total_2 = repeat(0.0), repeat(0.0)
    whole = np.uint64(x.size) // SIXTEEN * SIXTEEN
    for p in range(np.uint64(0), whole, SIXTEEN):
        total_1 = multiply_add(load(x, p), load(y, p), total_1)
        total_2 = multiply_add(load(x, p + EIGHT), load(y, p + EIGHT), total_2)
    total: float = sum_block(total_1) + sum_block(total_2)
    for p in range(whole, np.uint64(x.size)):
        total = multiply_add(x[p], y[p], total)
    return total


@inlined_formula
def quartic_block(table: Any, i: np.uint64, width: np.uint64, u: Any) -> Any:
    """A block of polynomials of degree four at u, by Horner's rule.

    Coefficients of one polynomial stand `width` entries from one another; the constants begin at i.
    """
    position = repeat(u)
    value = load(table, i + FOUR * width)
    value = multiply_add(position, value, load(table, i + THREE * width))
    value = multiply_add(position, value, load(table, i + TWO * width))
    value = multiply_add(position, value, load(table, i + width))
    return multiply_add(position, value, load(table, i))


@instruction
def exp_block(_: Any, x: Any) -> tuple[Any, Callable[..., Any]]:
    """The exponentials of a block, each right to two units in the last place.

    exp(x) = 2^k exp(r) with |r| at most log(2) / 2. Beyond +-700 it is that of +-700, so that no
    number overflows or loses digits.
    """
    _require(isinstance(x, Block) and x.scalar == types.float64, "a block of doubles")
    # 1.5 * 2^52, added to a number, leaves its nearest whole number in the last bits
    shifter, largest, mantissa_bits = 6755399441055744.0, 700.0, 52
    # log(2) in two parts: the first has few digits, so that k times it is exact
    log_2, log_2_rest = 0.693145751953125, 1.4286068203094172e-06
    # Taylor's series; the first term that is left out is below 2e-16
    coefficients = [1.0 / math.factorial(n) for n in range(13)]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = context.get_value_type(x)
        whole_type = ir.VectorType(ir.IntType(64), x.count)

        def constant(number: float) -> Any:
            return vector([number] * x.count)

        def clip(value: Any, comparison: str, bound: float) -> Any:
            beyond = builder.fcmp_ordered(comparison, value, constant(bound))
            return builder.select(beyond, constant(bound), value)

        value = clip(clip(arguments[0], ">", largest), "<", -largest)
        shifted = _fused(builder, value, constant(1.0 / math.log(2.0)), constant(shifter))
        k = builder.fsub(shifted, constant(shifter))
        r = _fused(builder, k, constant(-log_2), value)
        r = _fused(builder, k, constant(-log_2_rest), r)
        total = constant(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            total = _fused(builder, total, r, constant(coefficient))
        # times 2^k: k is added to the exponent
        places = whole_type([mantissa_bits] * x.count)
        exponent = builder.shl(builder.bitcast(shifted, whole_type), places)
        scaled = builder.add(builder.bitcast(total, whole_type), exponent)
        return builder.bitcast(scaled, vector)

    return x(x), generate
