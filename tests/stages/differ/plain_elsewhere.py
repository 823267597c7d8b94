"""What two bodies say differently beyond one run: the plain twin of `elsewhere.py`, `repeated.py`, `names.py`, `endings.py`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.stages.differ import plain_differences as plain
from twinsieve.stages.differ.rules import Rule

if TYPE_CHECKING:
    from tests.stages.differ.plain_differences import Pair, Run, Sense, Token, Value


def elsewhere(pair: Pair) -> set[Rule]:
    """NUMBER, NUMERAL, CALENDAR, OPPOSITE: each body has one that the other lacks anywhere; of whole bodies."""
    if pair.cut:
        return set()
    later = [t for run in pair.runs for t in pair.a[run.a0 : run.a1]]
    earlier = [t for run in pair.runs for t in pair.b[run.b0 : run.b1]]
    rules = senses_apart(pair)
    if any(map(plain.has_value, later)) and any(map(plain.has_value, earlier)):
        dated = plain.writes_dates([*pair.a, *pair.b])
        every, other = stored_values(pair.a, dated=dated), stored_values(pair.b, dated=dated)
        sides = [tuple(any(map(plain.has_value, side)) for side in pair.texts(run)) for run in pair.runs]
        if max(len(every), len(other)) < 64:
            if (
                (True, False) in sides
                and (False, True) in sides
                and own_number(pair.a, pair.ends[0], other, dated=dated)
                and own_number(pair.b, pair.ends[1], every, dated=dated)
            ):
                rules.add(Rule.NUMBER)
            if own_numerals(pair, every, other):
                rules.add(Rule.NUMERAL)
    return rules


def stored_values(some: list[Token], end: int | None = None, *, dated: bool) -> list[Value]:
    """The numbers of a body, without the counter of an agency."""
    first = 2 if some and some[0].kind == "W" and some[0].text in plain.words().agency else 0
    end = len(some) if end is None else end
    return plain.values(some[first:end], behind=some[end:], before=some[:first], spaced=True, dotted=dated)


def own_number(some: list[Token], end: int, others: list[Value], *, dated: bool) -> bool:
    """Whether a body has a number that the other lacks; names with digits are written in too many ways."""
    return any(
        how == "n"
        and not any(plain.are_one(value, other) for _, other in others)
        and not (isinstance(value, tuple) and value[0] == "name")
        for how, value in stored_values(some, end, dated=dated)
    )


def numerals(some: list[Token], spans: list[tuple[int, int]]) -> list[tuple[object, str]]:
    """Chinese numerals that touch these spans, with the character behind them; the first 16."""
    found = []
    listed = plain.words().numerals
    for first, end in spans:
        k = first
        while k < end and len(found) < 16:
            begin, stop = k, k
            while stop < len(some) and some[stop].text in listed:
                stop += 1
            if stop > k:
                while begin and some[begin - 1].text in listed:
                    begin -= 1
                if stop < len(some) and some[stop].kind == "H":
                    value = plain.values(some[begin:stop])[0][1]
                    found.append((value, some[stop].text))
            k = max(stop, k + 1)
    return found


def own_numerals(pair: Pair, every: list[Value], other: list[Value]) -> bool:
    """Whether each body has a numeral of its own before the same character."""
    mine = numerals(pair.a, [(run.a0, run.a1) for run in pair.runs])
    theirs = numerals(pair.b, [(run.b0, run.b1) for run in pair.runs])
    known, known_mine = {value for _, value in other}, {value for _, value in every}
    return any(
        unit == other_unit and value not in known and other_value not in known_mine
        for value, unit in mine
        for other_value, other_unit in theirs
    )


def strong_senses(some: list[Token], spans: list[tuple[int, int]]) -> set[Sense]:
    """Of words of three letters and of phrases of two characters that touch these spans; no light words."""
    return {
        sense
        for k in range(len(some))
        for phrase, size in plain.phrases(some, k)
        if (size > 1 if some[k].kind == "H" else len(phrase) >= 3 and phrase not in plain.words().light)
        and any(k < end and k + size > first for first, end in spans)
        for sense in plain.senses_of(phrase)
    }


def senses_apart(pair: Pair) -> set[Rule]:
    """CALENDAR and OPPOSITE."""
    mine = strong_senses(pair.a, [(run.a0, run.a1) for run in pair.runs])
    theirs = strong_senses(pair.b, [(run.b0, run.b1) for run in pair.runs])
    mine, theirs = mine - all_senses(pair.b), theirs - all_senses(pair.a)
    return {
        Rule.CALENDAR if sense[0] == "calendar" else Rule.OPPOSITE
        for sense in mine
        for other in theirs
        if sense[:2] == other[:2] and sense[2] != other[2]
    }


def all_senses(some: list[Token]) -> set[Sense]:
    """What the words of a body exclude."""
    return {
        s for k in range(len(some)) for phrase, _ in plain.phrases(some, k) for s in plain.senses_of(phrase)
    }


def content(token: Token) -> bool:
    """Whether a token may be a name or a part of one."""
    return plain.says_something(token) or (token.kind == "H" and token.text not in plain.words().light)


def repeated(pair: Pair) -> bool:
    """Whether each body has words of its own that stand twice where something was replaced."""
    filled = [run for run in pair.runs if run.a1 > run.a0 and run.b1 > run.b0]
    x = [t for run in filled for t in pair.a[run.a0 : run.a1]]
    y = [t for run in filled for t in pair.b[run.b0 : run.b1]]
    return twice(x, y, pair.b) >= 4 and twice(y, x, pair.a) >= 4


def twice(mine: list[Token], others: list[Token], body: list[Token]) -> int:
    """Points of the words that stand twice in `mine`, and in no form in `others`, nor in the body."""
    counts, first = Counter(t.word for t in mine), {}
    for token in mine:
        first.setdefault(token.word, token)
    return sum(
        plain.points(token)
        for word, token in first.items()
        if counts[word] > 1
        and content(token)
        and all(word != t.word for t in body)
        and not any(plain.one_word(token, t) for t in others)
    )


def moved_name(pair: Pair) -> bool:
    """Whether what one added and the other left out elsewhere are one phrase with another name."""
    added = [run for run in pair.runs if run.b0 == run.b1 and 2 <= run.a1 - run.a0 <= 4][:32]
    left = [run for run in pair.runs if run.a0 == run.a1 and 2 <= run.b1 - run.b0 <= 4][:32]
    for run in added:
        for other in left:
            x, y = pair.a[run.a0 : run.a1], pair.b[other.b0 : other.b1]
            fits = len(x) == len(y) and x[0].word == y[0].word
            if fits and other_names(pair, x[1:], y[1:]):
                return True
    return False


def other_names(pair: Pair, x: list[Token], y: list[Token]) -> bool:
    """Whether both are names of their own, and no forms of each other."""
    return (
        all(map(content, x + y))
        and min(sum(map(plain.points, x)), sum(map(plain.points, y))) >= 4
        and not {t.word for t in x} & {t.word for t in pair.b}
        and not {t.word for t in y} & {t.word for t in pair.a}
        and not any(plain.one_word(s, t) for s in x for t in y)
    )


def name_points(some: list[Token]) -> int:
    """Points of characters; a light one counts in a listed name that holds it."""
    total = k = 0
    while k < len(some):
        size = next(
            (
                size
                for size in (3, 2)
                if k + size <= len(some)
                and all(t.kind == "H" for t in some[k : k + size])
                and "".join(t.text for t in some[k : k + size]) in plain.words().names
            ),
            1,
        )
        total += 2 * size if size > 1 else plain.points(some[k]) if some[k].kind == "H" else 0
        k += size
    return total


def short_names(x: list[Token], y: list[Token], then: Token | None) -> bool:
    """Whether one name of two letters, or of one before a word, stands in the place of another."""
    return (
        len(x) == len(y) == 1 and x[0].word != y[0].word and short_name(x[0], then) and short_name(y[0], then)
    )


def short_name(token: Token, then: Token | None) -> bool:
    """Of two letters, or of one before a word that says something. then: the token behind it"""
    if len(token.text) == 1 and not (then and plain.says_something(then) and "a" <= token.text < "\uac00"):
        return False
    lists = plain.words()
    mere = token.text in lists.light | lists.agency | lists.negation
    spelled = all(c.isascii() or "\u0400" <= c <= "\u04ff" or "\uac00" <= c <= "\ud7a3" for c in token.text)
    return token.kind == "W" and len(token.text) <= 2 and spelled and (token.text in lists.names or not mere)


def other_title(pair: Pair) -> bool:
    """Whether what a mark cuts off at the end of a template is another title."""
    parts = [
        [k for k in range(1, len(some)) if begins[k] and some[k - 1].kind == some[k].kind == "H"]
        for some, begins in zip((pair.a, pair.b), pair.begins, strict=True)
    ]
    if len(parts[0]) != 1 or parts[0] != parts[1] or pair.cut:
        return False
    at = parts[0][0]
    if at < 4 or pair.runs[0].a0 < at or max(len(pair.a), len(pair.b)) - at > 15:
        return False
    x = [t for run in pair.runs for t in pair.a[run.a0 : run.a1]]
    own = other = 0
    for run in pair.runs:
        mine, theirs = pair.texts(run)
        own += title_points(mine, theirs)
        other += title_points(theirs, mine)
    if any("\u3040" <= t.text <= "\u30ff" for t in pair.a[:at]):
        return max(own, other) >= 4
    shared = sum(map(plain.points, pair.a[at:])) - sum(map(plain.points, x))
    return min(own, other) >= max(4, shared + 1)


def title_points(some: list[Token], others: list[Token]) -> int:
    """Points of what may be a name and is no word of the others."""
    return sum(
        plain.points(t) for t in some if content(t) and not any(plain.one_word(t, other) for other in others)
    )


def other_last_words(pair: Pair) -> bool:
    """Whether the last word or two are other ones, and all before them is equal."""
    if len(pair.runs) != 1 or pair.cut:
        return False
    run = pair.runs[0]
    x, y = pair.texts(run)
    if run.a1 < len(pair.a) or run.b1 < len(pair.b) or not 1 <= len(x) == len(y) <= 2 or run.a0 < 4:
        return False
    if len(x) > 1 and plain.is_light(x[0]) and plain.is_light(y[0]):
        x, y = x[1:], y[1:]
    if pair.a[run.a0 - 1].kind != "W" or not all(map(plain.says_something, x + y)):
        return False
    if any(t.text in ("http", "https", "url") for t in x + y):
        return False
    return not any(
        plain.one_word(s, t) or s.text.startswith(t.text) or t.text.startswith(s.text) for s in x for t in y
    )


def are_names(x: list[Token], y: list[Token]) -> bool:
    """Whether two names share the one Han character between two runs, of which none replaces anything."""
    lists = plain.words()
    negating = {phrase[0] for phrase in lists.negation}
    return (
        max(len(x), len(y)) <= 3
        and sorted(t.text for t in x) != sorted(t.text for t in y)
        and all(
            "\u4e00" <= t.text <= "\u9fff" and t.text not in lists.light and t.text not in negating
            for t in x + y
        )
    )


def joins(a: list[Token], b: list[Token], last: Run, run: Run) -> bool:
    """Whether one run adds and the other leaves out, and together they are two names."""
    return (last.a1 > last.a0) != (run.a1 > run.a0) and are_names(a[last.a0 : run.a1], b[last.b0 : run.b1])


def said(pair: Pair) -> tuple[list[int], list[int]]:
    """By run: letters that each body alone says in a text of Japanese or Thai; a Han character says as much as four."""
    letters = "".join(t.text for t in (*pair.a, *pair.b))
    if not in_thai(pair) and sum("\u3041" <= char <= "\u30ff" for char in letters) < 2:
        return [0], [0]
    short = min(sum(len(t.text) for t in some) for some in (pair.a, pair.b)) < 24
    return tuple(
        [
            said_in(
                some,
                span(run),
                others,
                numbers=k == 0 and not any(map(plain.has_value, pair.texts(run)[1])),
                twice=short,
            )
            for run in pair.runs
            if not plain.in_two_writings(pair, run)
        ]
        for k, (some, others, span) in enumerate(
            ((pair.a, pair.b, lambda run: (run.a0, run.a1)), (pair.b, pair.a, lambda run: (run.b0, run.b1)))
        )
    )


def in_thai(pair: Pair) -> bool:
    return sum(map(is_thai, "".join(t.text for t in (*pair.a, *pair.b)))) >= 4


def said_in(
    some: list[Token], span: tuple[int, int], others: list[Token], *, numbers: bool, twice: bool
) -> int:
    """Letters of some[slice(*span)] that say something and are not in the other body."""
    first, end = span
    body = "".join(t.text for t in others)
    mine = [t.word for t in some[first:end]]
    if mine in [[t.word for t in others[k : k + len(mine)]] for k in range(len(others) + 1)]:
        return 0
    end = min(end, first + 64)
    bland = plain.words().bland
    mere = {
        position
        for start in range(max(0, first - 7), end)
        for stop in range(start + 1, min(start + 8, len(some)) + 1)
        if all(t.kind == "H" for t in some[start:stop]) and "".join(t.text for t in some[start:stop]) in bland
        for position in range(start, stop)
    }
    total = 0
    for position in range(first, end):
        token = some[position]
        if token.kind == "N":
            total += 4 * numbers
        elif token.kind == "W":
            alone = not plain.is_light(token) and not any(plain.one_word(token, other) for other in others)
            total += max(4, len(token.text)) * (alone and len(token.text) > 1)
        elif token.kind == "H" and position not in mere and not plain.has_value(token):
            if "\u4e00" <= token.text <= "\u9fff" or "\u30a1" <= token.text <= "\u30fa":
                unit = token.text in plain.DATE_PARTS and position > 0 and some[position - 1].kind == "N"
                total += 4 * (token.text not in body and not unit)
            elif is_thai(token.text) and not is_thai_mark(token.text):
                total += 1 + twice
    return total


def is_thai(char: str) -> bool:
    return "\u0e00" <= char <= "\u0e7f"


def is_thai_mark(char: str) -> bool:
    """A vowel or tone above or below a letter."""
    return char == "\u0e31" or "\u0e34" <= char <= "\u0e3a" or "\u0e47" <= char <= "\u0e4e"
