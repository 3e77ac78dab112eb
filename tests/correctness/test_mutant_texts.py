"""Every mutant can be made: the text that it replaces is in its file exactly once.

Most mutants are run with --slow only. A kernel that was rewritten and took a mutant's text with it
is noticed here at once.
"""

from __future__ import annotations

from pathlib import Path

import revealed
from tests.correctness import (
    test_composite,
    test_hierarchical,
    test_ibis,
    test_known_posterior,
    test_noise_covariance,
    test_prior_part,
    test_prior_scale,
    test_unknown_transitions,
)

PACKAGE = Path(revealed.__file__).parent
TEXTS = [
    *((file, old) for file, old, *_ in test_composite.MUTANTS.values()),
    *((file, old) for file, old, *_ in test_prior_scale.MUTANTS.values()),
    *((file, old) for file, old, _ in test_prior_part.MUTANTS.values()),
    *((file, old) for _, file, old, *_ in test_known_posterior.SOURCE_MUTANTS.values()),
    *((file, old) for file, old, _ in test_noise_covariance.MUTANTS.values()),
    *((file, old) for file, old, _ in test_unknown_transitions.MUTANTS.values()),
    *((test_hierarchical.MUTATED_FILE, old) for _, old, _ in test_hierarchical.MUTANTS.values()),
    *((file, old) for file, old, *_ in test_ibis.MUTANTS.values()),
]


def test_text_of_every_mutant_is_found_exactly_once() -> None:
    counts = {(file, old): (PACKAGE / file).read_text("utf-8").count(old) for file, old in TEXTS}
    assert {key: count for key, count in counts.items() if count != 1} == {}
    assert len(counts) == len(TEXTS)
