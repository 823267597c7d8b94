"""The rule `repeated`: the same words are replaced in several places, so the text is about something else."""

from __future__ import annotations

from twinsieve.stages.differ.content import holds_token, may_be_a_name
from twinsieve.stages.differ.forms import has_form
from twinsieve.stages.differ.phrases import Phrases
from twinsieve.stages.differ.tokens import Tokens
from twinsieve.stages.differ.workspace import Differing
from twinsieve.stages.kernel import ZERO, kernel

_LEAST = 4
"""Points of the words that stand twice: two characters, or a word of three letters."""
_LATER, _EARLIER = 0, 2


@kernel(callee=True)
def are_repeated(phrases: Phrases, work: Differing) -> bool:
    """Whether each body has words of its own that stand twice where something was replaced."""
    if _points_twice(work.later, _LATER, work.earlier, _EARLIER, phrases, work) < _LEAST:
        return False
    return _points_twice(work.earlier, _EARLIER, work.later, _LATER, phrases, work) >= _LEAST


@kernel(callee=True)
def _points_twice(
    tokens: Tokens, side: int, others: Tokens, other_side: int, phrases: Phrases, work: Differing
) -> int:
    """Points of the words that stand twice in the replacements of one body, and in no form in the other's."""
    points = ZERO
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        if run[1] == run[0] or run[3] == run[2]:
            continue
        for position in range(run[side], run[side + 1]):
            own = (
                may_be_a_name(tokens, position)
                and _stands_twice(tokens, position, side, work)
                and not holds_token(others, tokens.ids[position])
            )
            if own and not _has_other_form(tokens, position, others, other_side, phrases, work):
                points += tokens.points[position]
    return points


@kernel(callee=True)
def _stands_twice(tokens: Tokens, position: int, side: int, work: Differing) -> bool:
    """Whether a word stands in the replacements once more, and not before this place."""
    again = False
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        if run[1] == run[0] or run[3] == run[2]:
            continue
        for place in range(run[side], run[side + 1]):
            if tokens.ids[place] == tokens.ids[position]:
                if place < position:
                    return False
                again |= place > position
    return again


@kernel(callee=True)
def _has_other_form(
    tokens: Tokens, position: int, others: Tokens, side: int, phrases: Phrases, work: Differing
) -> bool:
    """Whether a word stands in another form in the replacements of the other body."""
    for number in range(work.alignment.count[0]):
        run = work.alignment.runs[number]
        if run[1] == run[0] or run[3] == run[2]:
            continue
        if has_form(tokens, position, others, run[side], run[side + 1], phrases):
            return True
    return False
