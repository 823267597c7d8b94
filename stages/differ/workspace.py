"""The working memory in which one thread compares two bodies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.differ.align import Alignment, new_alignment
from twinsieve.stages.differ.number_values import Values, new_values
from twinsieve.stages.differ.rules import RULE_NUMBERS
from twinsieve.stages.differ.tokens import Tokens, new_tokens

MAX_SENSES = 64
_PAIR_CELLS = 1024


class Differing(NamedTuple):
    """Working memory of one thread for a pair of bodies.

    first_runs: int64[RULE_NUMBERS], by number of a rule: the first run for which it holds, or -1
    pairs: uint64[_PAIR_CELLS], hash table of the pairs of neighbouring characters in the earlier body
    spoken: int64[1], the languages of both bodies, or -1; votes: int64[32], by language (`spoken.py`)
    """

    later: Tokens
    earlier: Tokens
    alignment: Alignment
    values: Values
    other_values: Values
    senses: NDArray[np.int64]
    other_senses: NDArray[np.int64]
    first_runs: NDArray[np.int64]
    pairs: NDArray[np.uint64]
    spoken: NDArray[np.int64]
    votes: NDArray[np.int64]


def new_differing() -> Differing:
    """New memory for one thread."""
    return Differing(
        new_tokens(),
        new_tokens(),
        new_alignment(),
        new_values(),
        new_values(),
        np.zeros(MAX_SENSES, np.int64),
        np.zeros(MAX_SENSES, np.int64),
        np.zeros(RULE_NUMBERS, np.int64),
        np.zeros(_PAIR_CELLS, np.uint64),
        np.zeros(1, np.int64),
        np.zeros(32, np.int64),
    )
