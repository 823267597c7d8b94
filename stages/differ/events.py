"""The rule `stage`: one body says that an event is planned, tried or one more, the other does not.

A headline of an event that is to come and one of the event itself differ in a word or two: to close / closes,
another earthquake / earthquake. So do the first news of an event and those of its dead.
"""

from __future__ import annotations

import numpy as np

from twinsieve.stages.differ.align import are_few
from twinsieve.stages.differ.content import may_be_a_name
from twinsieve.stages.differ.forms import are_spellings, is_one_word
from twinsieve.stages.differ.phrases import (
    EDITION,
    EXCLUDES,
    HARM,
    INFINITIVES,
    MAX_PHRASE,
    STAGES,
    Phrases,
    has_sense_of_kind,
)
from twinsieve.stages.differ.tokens import WORD, Tokens, phrase_lengths, phrase_row
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_SIGN = 2
"""Among how many tokens the word before an infinitive is looked for."""


@kernel(callee=True)
def tells_other_stage(number: int, phrases: Phrases, work: Differing) -> bool:
    """Whether a short run says the stage of an event in one body, and the other body says it nowhere.

    HARM counts where the later body adds it: who leaves out the dead of an event says nothing new, and who
    puts another word there mostly says the same. An EDITION counts where it is added: beside another one it
    is an opposite, and lists of features have other orders.
    number: of the run
    """
    run = work.alignment.runs[number]
    if not are_few(run):
        return False
    later, earlier = work.later, work.earlier
    mine = _stages(later, run[0], run[1], phrases)
    if mine and _is_misspelt(later, run[0], run[1], earlier, run[2], run[3], phrases):
        mine = ZERO
    if mine >> HARM & 1 and _says_anything(earlier, run[2], run[3]):
        mine &= ~(np.int64(1) << HARM)
    if run[3] > run[2]:
        mine &= ~(np.int64(1) << EDITION)
    if mine & ~(_stages(earlier, ZERO, earlier.counts[0], phrases) if mine else ZERO):
        return True
    other = _stages(earlier, run[2], run[3], phrases) & ~(np.int64(1) << HARM)
    if run[1] > run[0]:
        other &= ~(np.int64(1) << EDITION)
    if other and _is_misspelt(earlier, run[2], run[3], later, run[0], run[1], phrases):
        other = ZERO
    if other & ~(_stages(later, ZERO, later.counts[0], phrases) if other else ZERO):
        return True
    return _intends(later, run[0], run[1], earlier, run[2], run[3], phrases) or _intends(
        earlier, run[2], run[3], later, run[0], run[1], phrases
    )


@kernel(callee=True)
def _is_misspelt(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int, phrases: Phrases
) -> bool:
    """Whether a word that says a stage stands in its place in another spelling (threatens, threaetns)."""
    for a in range(first, end):
        if tokens.facts[a] & EXCLUDES and tokens.kinds[a] == WORD and _stages(tokens, a, a + 1, phrases):
            for b in range(others_first, others_end):
                if are_spellings(tokens, a, others, b):
                    return True
    return False


@kernel(callee=True)
def _says_anything(tokens: Tokens, first: int, end: int) -> bool:
    """Whether tokens[first:end] hold a word that says something, or a character that is not light."""
    for position in range(first, end):  # noqa: SIM110
        if may_be_a_name(tokens, position):
            return True
    return False


@kernel(callee=True)
def _stages(tokens: Tokens, first: int, end: int, phrases: Phrases) -> int:
    """The stages that phrases with a token of tokens[first:end] say: bit k for the k-th of a list."""
    stages = ZERO
    for position in range(max(0, first - MAX_PHRASE + 1), end):
        if tokens.facts[position] & EXCLUDES:
            lengths = phrase_lengths(tokens, position, tokens.counts[0])
            for length in range(max(1, first + 1 - position), MAX_PHRASE + 1):
                row = phrase_row(tokens, position, length, lengths, phrases)
                if row >= 0:
                    for k in range(phrases.sense_starts[row], phrases.sense_starts[row + 1]):
                        if phrases.senses[k] >> 8 == STAGES:
                            stages |= np.int64(1) << (phrases.senses[k] & 31)
    return stages


@kernel(callee=True)
def _intends(
    tokens: Tokens, first: int, end: int, others: Tokens, others_first: int, others_end: int, phrases: Phrases
) -> bool:
    """Whether tokens[first:end] have the infinitive of a verb that the others have in another form.

    It stands at their beginning or behind one word (yet to open): further behind, it says what for.
    """
    for a in range(first, min(end - 1, first + _SIGN)):
        if tokens.facts[a] & EXCLUDES:
            row = phrase_row(tokens, a, 1, phrase_lengths(tokens, a, end), phrases)
            for b in range(
                others_first, others_end if has_sense_of_kind(phrases, row, INFINITIVES) else ZERO
            ):
                if tokens.ids[a + 1] != others.ids[b] and is_one_word(tokens, a + 1, others, b, phrases):
                    return True
    return False
