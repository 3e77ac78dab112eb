"""What the columns of a long table hold: labels, flags and numbers, checked cell by cell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints, Labels
from revealed.data.times import check_times, dates_to_days, texts_to_times
from revealed.io.columns import Arrow


@dataclass(frozen=True)
class FlagWords:
    """Words that say whether an action was chosen, or on offer, in any case."""

    true: tuple[str, ...] = ("1", "1.0", "true", "t", "yes", "y")
    false: tuple[str, ...] = ("0", "0.0", "false", "f", "no", "n")
    sentence: str = "it must hold true or false, yes or no, or 1 or 0"


FLAGS = FlagWords()


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of those that hold text."""
    import pyarrow as pa

    is_view = getattr(pa.types, "is_string_view", lambda _: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind))


def describe_kind(kind: Any) -> str:
    """An Arrow type in a word that people have: all its kinds of text are text."""
    return "text" if is_text(kind) else str(kind)


def encode_labels(table: dict[str, Arrow], name: str) -> tuple[Ints, Labels]:
    """A column of labels as positions in a list of distinct labels, and that list.

    Labels are in the order in which they first appear; none may be missing.
    """
    import pyarrow as pa

    column = table[name]
    if pa.types.is_floating(column.type):
        # NaN counts as missing too.
        column = pa.array(column.to_numpy(zero_copy_only=False), from_pandas=True)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(
            f"row {row} of the table: column {name!r} has no value; every row needs one"
        )
    try:
        coded = column.dictionary_encode()
    except pa.ArrowException:
        raise ValueError(
            f"column {name!r} holds {column.type}; labels must be numbers or text"
        ) from None
    labels = coded.dictionary.to_numpy(zero_copy_only=False)
    if labels.dtype == object and isinstance(labels[0], str):
        labels = labels.astype(np.str_)
    return coded.indices.to_numpy().astype(np.int64), labels


def read_flags(table: dict[str, Arrow], name: str, code: Ints, ids: Labels) -> Bools:
    """(rows,) a column of true and false, of yes and no, or of 1 and 0, as booleans.

    code, ids: which decision each row belongs to, to name the one with a mistake.
    """
    column = table[name]
    numbers = _flag_words(column) if is_text(column.type) else _numbers(column)
    if numbers is None:
        raise ValueError(f"column {name!r} holds {column.type}; {FLAGS.sentence}")
    # A missing value is NaN here, and neither 0 nor 1.
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if wrong.size:
        cell = column[int(wrong[0])].as_py()
        missing = cell is None or cell != cell
        held = "no value" if missing else f"{cell:g}" if isinstance(cell, float) else repr(cell)
        raise ValueError(
            f"decision {ids[code[wrong[0]]]}: column {name!r} holds {held}; {FLAGS.sentence}"
        )
    return numbers.astype(np.bool_)


def read_feature(
    table: dict[str, Arrow], name: str, order: Ints, code: Ints, ids: Labels, given: bool
) -> Floats:
    """(P,) a column of numbers in the order of the decisions' rows.

    order: which rows of the table, in which order. given: whether the caller asked for this column.
    Missing, NaN and infinite values are refused by decision and column.
    """
    numbers = _numbers(table[name])
    if numbers is None:
        raise ValueError(_not_numeric(name, table[name], given))
    # Rows that were not on offer may hold anything.
    kept = numbers[order]
    wrong = np.flatnonzero(~np.isfinite(kept))
    if wrong.size:
        raise ValueError(
            f"decision {ids[code[order[wrong[0]]]]}, column {name!r}: "
            "a feature is missing, NaN or infinite; all features must be finite numbers"
        )
    return kept


def read_groups(
    table: dict[str, Arrow],
    name: str,
    order: Ints,
    start: Ints,
    ids: Labels,
    what: str = "belongs to one group",
) -> Labels:
    """(T,) the label of who decided.

    The rows of a decision must agree. what: why they must, in the words of the message.
    """
    code, labels = encode_labels(table, name)
    code = code[order]
    # Every row of a decision is compared with its first.
    first = code[start[:-1]]
    decision = np.repeat(np.arange(len(ids)), np.diff(start))
    wrong = np.flatnonzero(code != first[decision])
    if wrong.size:
        t = decision[wrong[0]]
        raise ValueError(
            f"decision {ids[t]}: column {name!r} holds both {labels[first[t]]} and "
            f"{labels[code[wrong[0]]]}; one decision {what}"
        )
    return labels[first]


def read_times(table: dict[str, Arrow], name: str, order: Ints, start: Ints, ids: Labels) -> Floats:
    """(T,) when each decision was made: numbers, or days since 1970-01-01 of dates.

    The rows of a decision must agree.
    """
    # Rows that were not on offer have no say.
    by_row = _times(name, table[name])[order]
    first = check_times(by_row[start[:-1]], ids)
    # A time that is missing in another row of a decision differs from its first too.
    wrong = np.flatnonzero(by_row != np.repeat(first, np.diff(start)))
    if wrong.size:
        row = int(wrong[0])
        t = int(np.searchsorted(start, row, side="right")) - 1
        cells = [table[name][int(order[i])].as_py() for i in (start[t], row)]
        raise ValueError(
            f"decision {ids[t]}: column {name!r} holds both {cells[0]} and {cells[1]}; "
            "one decision is made at one time"
        )
    return first


def _times(name: str, column: Arrow) -> Floats:
    """(rows,) a column of numbers, dates or ISO text as floats, NaN where nothing is."""
    import pyarrow as pa

    if is_text(column.type):
        return texts_to_times(f"column {name!r}", column.to_pylist())
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        # Arrow keeps a moment with a time zone in UTC, which is what is wanted.
        return dates_to_days(column.to_numpy(zero_copy_only=False))
    # True and false are numbers in a feature, and no times.
    numbers = None if pa.types.is_boolean(column.type) else _numbers(column)
    if numbers is None:
        raise ValueError(
            f"column {name!r} holds {describe_kind(column.type)}; times must be numbers or dates"
        )
    return numbers


def _numbers(column: Arrow) -> Floats | None:
    """The column as floats, missing values as NaN; None where it does not hold numbers."""
    import pyarrow as pa

    # Booleans count as 0 and 1, and a column of nothing as missing numbers.
    kinds = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    if not any(kind(column.type) for kind in kinds):
        return None
    numbers: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _flag_words(column: Arrow) -> Floats:
    """(rows,) one and zero for the words that mean true and false; NaN for any other text."""
    import pyarrow as pa

    coded = column.cast(pa.large_string()).dictionary_encode()
    words = dict.fromkeys(FLAGS.true, 1.0) | dict.fromkeys(FLAGS.false, 0.0)
    distinct = [words.get(word.strip().lower(), np.nan) for word in coded.dictionary.to_pylist()]
    # A missing word has no place among the distinct ones: it gets the one behind them.
    position = coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return np.asarray(np.append(distinct, np.nan)[position])


def _not_numeric(name: str, column: Arrow, given: bool) -> str:
    """The sentence for a feature that is no number, with the way out."""
    import pyarrow as pa

    if pa.types.is_binary(column.type):
        return (
            f"column {name!r} holds text that is not UTF-8; "
            'pass encoding="latin-1" (on the command line --encoding latin-1), or another'
        )
    if is_text(column.type):
        first = next((text for text in column.to_pylist() if text is not None), "")
        if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", first):
            return (
                f"column {name!r} has numbers with a decimal comma, such as {first!r}; read the "
                'file with decimal="," (on the command line --decimal ",")'
            )
    held = f"column {name!r} holds {describe_kind(column.type)}, and features are numbers; "
    if given:
        return held + "leave it out of features, or make columns of 0 and 1 of it"
    return held + "pass features=[...] (on the command line --features) to pick the columns"
