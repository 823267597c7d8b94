"""Greetings and closings of letters: Morning all / Howdy; Regards, Theo. What is between says all."""

from __future__ import annotations

from twinsieve.stages.differ.phrases import EXCLUDES, GREETINGS, Phrases, has_sense_of_kind
from twinsieve.stages.differ.senses import ends_with_kind
from twinsieve.stages.differ.tokens import WORD, Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_LONGEST, _REST = 6, 4
"""Most tokens of a greeting, and least tokens of what follows."""
_CLOSING, _FORMULA = 4, 2
"""Most tokens of a closing; and among how many of them its word stands (Many thanks in advance)."""


@kernel(callee=True)
def drop_greeting(phrases: Phrases, work: Differing) -> None:
    """Leave out the first run of the alignment if it holds nothing but a greeting in each body, or in one."""
    later, earlier, alignment = work.later, work.earlier, work.alignment
    run = alignment.runs[0]
    if alignment.count[0] == 0 or run[0] > 0 or run[2] > 0:
        return
    if min(later.counts[0] - run[1], earlier.counts[0] - run[3]) < _REST:
        return
    if not (_greets(later, run[1], phrases) and _greets(earlier, run[3], phrases)):
        return
    for number in range(1, alignment.count[0]):
        for side in range(4):
            alignment.runs[number - 1, side] = alignment.runs[number, side]
    alignment.count[0] -= 1


@kernel(callee=True)
def _greets(tokens: Tokens, end: int, phrases: Phrases) -> bool:
    """Whether tokens[:end] are words of greeting; nothing greets, too."""
    if end > _LONGEST:
        return False
    if end > 0 and tokens.kinds[0] != WORD:
        return ends_with_kind(tokens, ZERO, end, GREETINGS, phrases)
    for position in range(end):
        if tokens.kinds[position] != WORD or not tokens.facts[position] & EXCLUDES:
            return False
        if not has_sense_of_kind(phrases, tokens.rows[position], GREETINGS):
            return False
    return True


@kernel(callee=True)
def closes(tokens: Tokens, first: int, phrases: Phrases) -> bool:
    """Whether tokens[first:] are the closing of a letter: Thanks, Best regards Paula."""
    end = tokens.counts[0]
    if end - first > _CLOSING:
        return False
    for position in range(first, min(end, first + _FORMULA)):
        listed = tokens.kinds[position] == WORD and tokens.facts[position] & EXCLUDES != 0
        if listed and has_sense_of_kind(phrases, tokens.rows[position], GREETINGS):
            return True
    return False
