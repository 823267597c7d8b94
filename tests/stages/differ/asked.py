"""What the kernels say of two bodies, for tests that have bodies as `str`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twinsieve.stages.contract import STORED_LENGTH, Bodies, Differences
from twinsieve.stages.differ.difference import difference
from twinsieve.stages.differ.phrases import Phrases
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tails import fill_tallies, tails_differ
from twinsieve.stages.differ.tokens import find_tokens
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.differ.workspace import Differing, new_differing
from twinsieve.stages.kernel import kernel

_WORK = new_differing()


def bodies_of(texts: Sequence[str], starts: Sequence[Sequence[int]]) -> Bodies:
    """Near rows. starts: of each text, for each character whether a word begins there"""
    lengths = np.array([len(text) for text in texts], np.int32)
    return Bodies(
        np.array([ord(char) for text in texts for char in text], np.uint32),
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        np.array([flag for flags in starts for flag in flags], np.uint8),
        lengths,
        lengths.copy(),
        np.zeros(len(texts), np.bool_),
        np.zeros(len(texts), np.uint32),
    )


def reason(
    bodies: Bodies, later: int, earlier: int, limits: Differences, phrases: Phrases | None = None
) -> Rule:
    """Which rule keeps two rows apart, or NONE; tails and cards are not asked. phrases: None for the built-in"""
    for row, tokens in ((later, _WORK.later), (earlier, _WORK.earlier)):
        first, length = int(bodies.starts[row]), int(bodies.body_lengths[row])
        head = min(length, STORED_LENGTH)
        tokens.chars[:head] = bodies.chars[first : first + head]
        tokens.word_starts[:head] = bodies.word_starts[first : first + head]
        find_tokens(tokens, head, length > STORED_LENGTH, phrases or phrases_of())
    number, run = difference(phrases or phrases_of(), limits, _WORK)
    rule = Rule(int(number))
    assert (run >= 0) == rule.has_place, "a rule that has a place names it, and no other one does"
    return rule


def have_other_tails(bodies: Bodies, later: int, earlier: int) -> bool:
    """Whether the tails of two long rows differ. `reason` must have been asked of them before."""
    tallies = np.zeros(len(bodies.body_lengths), np.uint64)
    fill_tallies(bodies, tallies)
    lengths = bodies.body_lengths
    return bool(
        _tails(lengths[later], tallies[later], lengths[earlier], tallies[earlier], phrases_of(), _WORK)
    )


@kernel
def _tails(
    length: int, tally: np.uint64, other: int, other_tally: np.uint64, phrases: Phrases, work: Differing
) -> bool:
    return tails_differ(np.int64(length), tally, np.int64(other), other_tally, phrases, work)
