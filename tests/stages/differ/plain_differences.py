"""The decision list of docs/DIFFERENCES.md in plain Python: strings, sets and counters, and no kernel.

Written from the page, not from the kernel, so that a mistake would have to be made twice.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from twinsieve.stages import differ
from twinsieve.stages.contract import FULL, OFF, STORED_LENGTH, Differences
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.text.scripts import UNSPACED_RANGES

MARKS = set("-<>≤≥.,:/+*")


FIRST_REFERENCE = "\U000f0000"


class Token(NamedTuple):
    """kind: H a character of an unspaced script, W a word, N a number, M a mix of letters and digits."""

    text: str
    kind: str


class Run(NamedTuple):
    """Tokens [a0, a1) of the later body against [b0, b1) of the earlier one."""

    a0: int
    a1: int
    b0: int
    b1: int


@dataclass
class Words:
    """The lists of all languages together."""

    light: set[str] = field(default_factory=set)
    negation: set[str] = field(default_factory=set)
    idioms: set[str] = field(default_factory=set)
    corrections: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    numerals: dict[str, int] = field(default_factory=dict)
    calendar: list[list[set[str]]] = field(default_factory=list)
    opposites: list[list[set[str]]] = field(default_factory=list)


@cache
def words() -> Words:
    """The lists of `data/words.yaml`, all languages in one."""
    merged = Words()
    path = Path(differ.__path__[0]) / "data" / "words.yaml"
    days: dict[str, list[set[str]]] = {}
    for lists in yaml.safe_load(path.read_text(encoding="utf-8")).values():
        merged.light |= set(lists.get("light", "").split())
        merged.negation |= set(lists.get("negation", "").split())
        merged.idioms |= set(lists.get("idioms", "").split())
        merged.corrections |= set(lists.get("corrections", "").split())
        merged.numbers |= lists.get("numbers", {})
        merged.numerals |= lists.get("numerals", {})
        for name in ("weekdays", "months", "days"):
            sides = days.setdefault(name, [set() for _ in range(12)])
            for number, side in enumerate(lists.get(name, [])):
                sides[number] |= set(side.split())
        merged.opposites += [[set(side.split()) for side in pair.split("/")] for pair in lists["opposites"]]
    merged.calendar = list(days.values())
    return merged


@cache
def unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in UNSPACED_RANGES)


@cache
def is_digit(char: str) -> bool:
    return unicodedata.category(char) == "Nd"


@cache
def is_mark(char: str) -> bool:
    return char in MARKS or unicodedata.category(char) == "Sc"


def tokens(body: str, word_starts: Sequence[int]) -> list[Token]:
    """Tokens of a body; of one beyond STORED_LENGTH those of its head that do not touch the cut."""
    return whole_tokens(body[:STORED_LENGTH], word_starts, cut=len(body) > STORED_LENGTH)


def whole_tokens(body: str, word_starts: Sequence[int], *, cut: bool = False) -> list[Token]:
    """Tokens of a body, however long. cut: it goes on, and a token at its end is left out"""
    tokens, position = [], 0
    while position < len(body) and body[position] < FIRST_REFERENCE:
        if unspaced(body[position]) and not is_digit(body[position]):
            tokens.append(Token(body[position], "H"))
            position += 1
            continue
        end = position + 1
        while end < len(body) and not word_starts[end] and (is_digit(body[end]) or not unspaced(body[end])):
            end += 1
        if cut and end == len(body):
            break
        text = body[position:end]
        if not any(map(is_digit, text)):
            tokens.append(Token(text, "W"))
        elif all(is_digit(char) or is_mark(char) for char in text):
            tokens.append(Token(text, "N"))
        else:
            tokens.append(Token(text, "M"))
        position = end
    return tokens


def runs_of(a: list[Token], b: list[Token], cut: bool) -> tuple[list[Run], tuple[int, int]]:
    """What one longest common subsequence leaves over, joined over weak tokens; where what is unknown begins."""
    x, y = [t.text for t in a], [t.text for t in b]
    head = 0
    while head < min(len(x), len(y)) and x[head] == y[head]:
        head += 1
    tail = 0
    while not cut and tail < min(len(x), len(y)) - head and x[-1 - tail] == y[-1 - tail]:
        tail += 1
    inner_x, inner_y = x[head : len(x) - tail], y[head : len(y) - tail]
    matches = [(head + i, head + j) for i, j in common(inner_x, inner_y)]
    runs, i, j = [], head, head
    for p, q in [*matches, (len(x) - tail, len(y) - tail)]:
        if p > i or q > j:
            runs.append(Run(i, p, j, q))
        i, j = p + 1, q + 1
    if cut and runs and (runs[-1].a1 == len(x) or runs[-1].b1 == len(y)):
        unknown = runs.pop()
        x, y = x[: unknown.a0], y[: unknown.b0]
    return joined_runs(a, x, y, runs), (len(x), len(y))


def joined_runs(a: list[Token], x: list[str], y: list[str], runs: list[Run]) -> list[Run]:
    """Without weak tokens between two runs, and without runs that differ in blanks alone."""
    joined: list[Run] = []
    for run in runs:
        if joined and are_joined(a, joined[-1], run):
            joined[-1] = Run(joined[-1].a0, run.a1, joined[-1].b0, run.b1)
        else:
            joined.append(run)
    return [run for run in joined if "".join(x[run.a0 : run.a1]) != "".join(y[run.b0 : run.b1])]


def are_joined(a: list[Token], last: Run, run: Run) -> bool:
    """Whether one weak token stands between two runs, of which one replaces something."""
    between = a[last.a1 : run.a0]
    weak = len(between) == 1 and (
        between[0].kind == "H" or (between[0].kind == "W" and len(between[0].text) <= 3)
    )
    return weak and any(one.a1 > one.a0 and one.b1 > one.b0 for one in (last, run))


def common(x: Sequence[str], y: Sequence[str]) -> list[tuple[int, int]]:
    """Places of one longest common subsequence; of several the one that skips tokens of `x` first, from the end."""
    longest = [[0] * (len(x) + 1) for _ in range(len(y) + 1)]
    for j in range(1, len(y) + 1):
        for i in range(1, len(x) + 1):
            same = longest[j - 1][i - 1] + 1 if x[i - 1] == y[j - 1] else 0
            longest[j][i] = max(longest[j - 1][i], longest[j][i - 1], same)
    matches, i, j = [], len(x), len(y)
    while i and j:
        if longest[j][i] == longest[j][i - 1]:
            i -= 1
        elif longest[j - 1][i] > longest[j - 1][i - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            matches.append((i, j))
    return matches[::-1]


Value = tuple[str, object]
"""What is compared, and how it was written: `c` in Chinese numerals, else `n`."""


def values(some: Sequence[Token], most: int = 64) -> list[Value]:
    """The numbers of some tokens, no more than the first 64."""
    lists, results, position = words(), [], 0
    while position < len(some):
        token = some[position]
        if token.kind == "H":
            end = position
            while end < len(some) and some[end].text in lists.numerals:
                end += 1
            if end > position:
                results.append(("c", Fraction(numeral("".join(t.text for t in some[position:end])))))
                position = end
                continue
        elif token.kind == "W" and token.text in lists.numbers:
            results.append(("n", Fraction(lists.numbers[token.text])))
        elif token.kind == "M" and is_name(token.text):
            results.append(("n", ("name", token.text)))
        elif token.kind in "NM":
            factor, position = 1, position + 1
            while position < len(some) and lists.numerals.get(some[position].text, 0) >= 10:
                factor *= lists.numerals[some[position].text]
                position += 1
            results += [("n", value) for value in parts(token, factor)]
            continue
        position += 1
    return results[:most]


def is_name(text: str) -> bool:
    return sum(not is_digit(char) for char in text) > 2 and len(text) <= 14


def parts(token: Token, factor: int) -> Iterator[object]:
    """The numbers of one token; the factor (万: 10000) belongs to the last one, if the token ends with it."""
    text, position, prefix = token.text, 0, ""
    while position < len(text):
        if not is_digit(text[position]):
            if token.kind == "N" and (position == 0 or prefix):
                prefix += text[position]
            position += 1
            continue
        end = position
        while end < len(text) and (
            is_digit(text[end]) or (text[end] in ".," and end + 1 < len(text) and is_digit(text[end + 1]))
        ):
            end += 1
        digits = "".join(str(unicodedata.decimal(c)) if is_digit(c) else "." for c in text[position:end])
        value: object = digits
        behind = text[end:] if len(text) == end + 1 and is_mark(text[end]) else ""
        if digits.count(".") <= 1:
            value = Fraction(digits) * (factor if end + len(behind) == len(text) else 1)
        if behind:
            value = (value, behind)
        yield (prefix, value) if prefix else value
        prefix, position = "", end


def numeral(text: str) -> int:
    """The value of Chinese numerals."""
    digits = [words().numerals[char] for char in text]
    if all(digit < 10 for digit in digits):
        return int("".join(map(str, digits)))
    total = section = current = 0
    for digit in digits:
        if digit < 10:
            current = digit
        elif digit < 10_000:
            section, current = section + max(current, 1) * digit, 0
        else:
            total, section, current = max(total + section + current, 1) % 10**8 * digit, 0, 0
    return total + section + current


def other_reference(later: str, earlier: str) -> Rule:
    """LINK, MENTION or TAG where each body has one that the other lacks; bodies beyond what is stored have none."""
    references = []
    for body in (later, earlier):
        behind = [char for char in body if char >= FIRST_REFERENCE] if len(body) <= STORED_LENGTH else []
        references.append({first + other for first, other in zip(behind[::2], behind[1::2], strict=True)})
    for kind, reason in enumerate((Rule.LINK, Rule.MENTION, Rule.TAG)):
        mine, other = (
            {pair for pair in some if kind * 21844 <= ord(pair[0]) - 0xF0000 < (kind + 1) * 21844}
            for some in references
        )
        if mine - other and other - mine:
            return reason
    return Rule.NONE


@dataclass
class Pair:
    """Two bodies as tokens, and the runs in which they differ."""

    a: list[Token]
    b: list[Token]
    runs: list[Run]

    def texts(self, run: Run) -> tuple[list[Token], list[Token]]:
        return self.a[run.a0 : run.a1], self.b[run.b0 : run.b1]

    def is_inside(self, run: Run) -> bool:
        return run.a0 > 0 and run.b0 > 0 and run.a1 < len(self.a) and run.b1 < len(self.b)


def reason(
    later: str,
    later_starts: Sequence[int],
    earlier: str,
    earlier_starts: Sequence[int],
    differences: Differences,
) -> Rule:
    """Why the two are kept apart, the first rule that holds; NONE for none."""
    a, b = tokens(later, later_starts), tokens(earlier, earlier_starts)
    pair = Pair(a, b, runs_of(a, b, max(len(later), len(earlier)) > STORED_LENGTH)[0])
    if differences.level == OFF:
        return Rule.NONE
    rule = guards(pair) or other_reference(later, earlier)
    if rule == Rule.NONE and pair.runs and differences.level == FULL:
        return measured(pair, differences)
    return rule


def tails_differ(
    later: str, later_starts: Sequence[int], earlier: str, earlier_starts: Sequence[int]
) -> bool:
    """Whether two bodies beyond STORED_LENGTH go on about as long, with other numbers or negations."""
    if min(len(later), len(earlier)) <= STORED_LENGTH:
        return False
    a, b = tokens(later, later_starts), tokens(earlier, earlier_starts)
    _, (end, other_end) = runs_of(a, b, True)
    behind = len(later) - sum(len(t.text) for t in a[:end])
    other = len(earlier) - sum(len(t.text) for t in b[:other_end])
    if abs(behind - other) > max(8, max(behind, other) // 50):
        return False
    mine, other_tally = (
        tally_of(whole_tokens(later, later_starts)),
        tally_of(whole_tokens(earlier, earlier_starts)),
    )
    mine.subtract(tally_of(a, end))
    other_tally.subtract(tally_of(b, other_end))
    mine.subtract(other_tally)
    return any(mine.values())


def tally_of(some: list[Token], end: int | None = None) -> Counter[object]:
    """The numbers in digits, and the negations, of the first tokens."""
    end = len(some) if end is None else end
    digits = [t if t.kind in "NM" or t.text in words().numerals else Token("", "W") for t in some[:end]]
    counts: Counter[object] = Counter(value for how, value in values(digits, most=len(some)) if how == "n")
    counts["negations"] += negations(some, 0, end)
    return counts


def guards(pair: Pair) -> Rule:
    """Category.GUARD, in order."""
    rules = {number_rule(pair, run) for run in pair.runs} | {sense_rule(pair, run) for run in pair.runs}
    if turned_round(pair):
        rules.add(Rule.OPPOSITE)
    if any(exchanged(pair, number) for number in range(len(pair.runs))):
        rules.add(Rule.EXCHANGED)
    if any(corrects(pair, run) for run in pair.runs):
        rules.add(Rule.CORRECTION)
    return first_of(rules)


def first_of(rules: set[Rule]) -> Rule:
    """The first of these rules in the order of the table, NONE for none."""
    return next((rule for rule in Rule if rule and rule in rules), Rule.NONE)


def lacks(some: list[Value], other: list[Value], *, numerals: bool = False) -> bool:
    """Whether a value of `some` is missing in `other`, counted with repeats."""
    wanted = Counter(value for how, value in some if numerals or how == "n")
    return bool(wanted - Counter(value for _, value in other))


def number_rule(pair: Pair, run: Run) -> Rule:
    """NUMBER, NUMERAL, NUMBER_ADDED."""
    x, y = pair.texts(run)
    if len(x) == len(y) == 1 and x[0].kind == y[0].kind == "M" and max(len(x[0].text), len(y[0].text)) <= 6:
        return Rule.NUMBER
    if not x or not y:
        added = number_added(pair.a, run.a0, run.a1) or number_added(pair.b, run.b0, run.b1)
        return Rule.NUMBER_ADDED if added and pair.is_inside(run) else Rule.NONE
    mine, other = values(x), values(y)
    plain, other_plain = ([v for v in some if v[0] == "n"] for some in (mine, other))
    if plain and other_plain:
        return Rule.NUMBER if lacks(mine, other) and lacks(other, mine) else Rule.NONE
    if len(x) <= 4 and len(y) <= 4 and mine and other:
        if plain:
            return Rule.NUMBER if lacks(mine, other) else Rule.NONE
        if other_plain:
            return Rule.NUMBER if lacks(other, mine) else Rule.NONE
        return Rule.NONE if {v for _, v in mine} & {v for _, v in other} else Rule.NUMERAL
    return Rule.NONE


def number_added(some: list[Token], first: int, end: int) -> bool:
    """Whether one or two tokens hold a number, or a Chinese numeral beside a value."""
    if not 1 <= end - first <= 2:
        return False
    if any(t.kind == "N" for t in some[first:end]):
        return True
    numerals = words().numerals
    behind = [t.text for t in some[end - 1 : end + 1]]
    if len(behind) == 2 and set(behind) <= numerals.keys():
        return True
    return (
        first > 0
        and some[first].text in numerals
        and (some[first - 1].kind == "N" or some[first - 1].text in numerals)
    )


def phrases(some: Sequence[Token], position: int) -> Iterator[tuple[str, int]]:
    """Every phrase that can begin at a token, with its number of tokens."""
    if some[position].kind == "W":
        yield some[position].text, 1
    elif some[position].kind == "H":
        for end in range(position, min(len(some), position + 8)):
            if some[end].kind != "H":
                return
            yield "".join(t.text for t in some[position : end + 1]), end + 1 - position


def negations(some: list[Token], first: int, end: int) -> int:
    """Negations that stand in some[first:end], without those inside an idiom."""
    lists, count, position = words(), 0, first
    while position < end:
        step = 1
        for phrase, size in phrases(some[:end], position):
            if phrase in lists.negation and not (
                some[position].kind == "H"
                and any(
                    idiom in lists.idioms and start + wide >= position + size
                    for start in range(max(0, position + size - 8), position + 1)
                    for idiom, wide in phrases(some, start)
                )
            ):
                count, step = count + 1, size
                break
        position += step
    return count


def slide(some: list[Token], first: int, end: int) -> int:
    """How far to the left an added run holds a negation, where adding it gives the same text."""
    left = some[:first] + some[end:]
    for by in range(1, min(first, end - first) + 1):
        moved = some[first - by : end - by]
        if left[: first - by] + moved + left[first - by :] != some:
            break
        if negations(some, first - by, end - by):
            return by
    return 0


def is_short(some: list[Token], first: int, end: int) -> bool:
    side = some[first:end]
    spelled = "".join(t.text for t in side)
    return len(side) <= 3 or (all(t.kind == "H" for t in side) and spelled in words().negation)


def turned_round(pair: Pair) -> bool:
    total, odd = 0, False
    for run in pair.runs:
        a0, a1, b0, b1 = run
        if not negations(pair.a, a0, a1) and not negations(pair.b, b0, b1):
            by, other_by = slide(pair.a, a0, a1), slide(pair.b, b0, b1)
            if b0 == b1:
                a0, a1 = a0 - by, a1 - by
            elif a0 == a1:
                b0, b1 = b0 - other_by, b1 - other_by
        mine, other = negations(pair.a, a0, a1), negations(pair.b, b0, b1)
        total += mine - other
        short = is_short(pair.a, a0, a1) and is_short(pair.b, b0, b1)
        odd |= (mine + other) % 2 == 1 and short
    return total % 2 == 1 and odd


Sense = tuple[str, int, int]
"""(list, entry, side)"""


@cache
def every_sense() -> dict[str, set[Sense]]:
    """What each phrase of the lists excludes."""
    all_words = words()
    by_phrase: dict[str, set[Sense]] = {}
    for name, entries in (("calendar", all_words.calendar), ("opposites", all_words.opposites)):
        for entry, sides in enumerate(entries):
            for side, synonyms in enumerate(sides):
                for phrase in synonyms:
                    by_phrase.setdefault(phrase, set()).add((name, entry, side))
    return by_phrase


def senses_of(phrase: str) -> set[Sense]:
    """What a phrase excludes."""
    return every_sense().get(phrase, set())


def senses(some: list[Token], first: int, end: int, few: bool) -> set[Sense]:
    """Of phrases that cover some[first:end], and if few of those inside, with a token more on either side."""
    return {
        sense
        for position in range(len(some))
        for phrase, size in phrases(some, position)
        if (position <= first and position + size >= end)
        or (few and position >= first - 1 and position + size <= end + 1)
        for sense in senses_of(phrase)
    }


def excluded(mine: set[Sense], other: set[Sense]) -> Rule:
    against = {
        sense[0]
        for sense in mine - other
        for other_sense in other - mine
        if sense[:2] == other_sense[:2] and sense[2] != other_sense[2]
    }
    if "calendar" in against:
        return Rule.CALENDAR
    return Rule.OPPOSITE if against else Rule.NONE


def sense_rule(pair: Pair, run: Run) -> Rule:
    """CALENDAR, and OPPOSITE but for negations."""
    x, y = pair.texts(run)
    if not x or not y:
        return lengthened(pair, run)
    few = len(x) <= 4 and len(y) <= 4
    found = excluded(senses(pair.a, run.a0, run.a1, few), senses(pair.b, run.b0, run.b1, few))
    marked = few and any(
        marked_apart(s.text, t.text) for s in x for t in y if s.kind == "W" and t.kind == "W"
    )
    return found or (Rule.OPPOSITE if marked else Rule.NONE)


def lengthened(pair: Pair, run: Run) -> Rule:
    """Where an added run makes another phrase of the token before or behind it."""
    spans = []
    if run.a0 and run.b0:
        spans.append(Run(run.a0 - 1, run.a1, run.b0 - 1, run.b1))
    if run.a1 < len(pair.a) and run.b1 < len(pair.b):
        spans.append(Run(run.a0, run.a1 + 1, run.b0, run.b1 + 1))
    rules = (
        excluded(senses(pair.a, a0, a1, False), senses(pair.b, b0, b1, False)) for a0, a1, b0, b1 in spans
    )
    return next(filter(None, rules), Rule.NONE)


def marked_apart(word: str, other: str) -> bool:
    """Whether two words differ in the mark at their ends alone: a+ and a-, a+ and a."""

    def bare(text: str) -> str:
        return text[:-1] if len(text) > 1 and is_mark(text[-1]) else text

    return word != other and bare(word) == bare(other)


def reordered(pair: Pair, run: Run) -> bool:
    """The same numbers, two at least, in another order."""
    mine, other = ([v for _, v in values(some)] for some in pair.texts(run))
    return len(mine) > 1 and mine != other and Counter(mine) == Counter(other)


def exchanged(pair: Pair, number: int) -> bool:
    run = pair.runs[number]
    if run.a1 - run.a0 > 6 or run.b1 - run.b0 > 6:
        return False
    if reordered(pair, run):
        return True
    if number + 1 < len(pair.runs):
        then = pair.runs[number + 1]
        (x, y), (z, w) = pair.texts(run), pair.texts(then)
        if (then.a0 - run.a1 <= 6) and (
            (not x and not w and turned(y, z)) or (not y and not z and turned(x, w))
        ):
            return True
    for then in pair.runs[number + 1 : number + 33]:
        (x, y), (z, w) = pair.texts(run), pair.texts(then)
        if (
            x
            and y
            and [t.text for t in x] == [t.text for t in w]
            and [t.text for t in z] == [t.text for t in y]
        ):
            return True
    return False


def turned(some: list[Token], other: list[Token]) -> bool:
    """Whether the first tokens of one come last in the other: a beats, beats a."""
    x, y = [t.text for t in some], [t.text for t in other]
    return x != y and any(x[by:] + x[:by] == y for by in range(1, len(x)))


def corrects(pair: Pair, run: Run) -> bool:
    x, y = pair.texts(run)

    def corrections_in(some: list[Token]) -> set[tuple[str, str]]:
        return {
            (phrase, some[position].kind)
            for position in range(len(some))
            for phrase, _ in phrases(some, position)
            if phrase in words().corrections
        }

    for some, at_edge, others in (
        (x, run.a0 == 0 or run.a1 == len(pair.a), pair.b),
        (y, run.b0 == 0 or run.b1 == len(pair.b), pair.a),
    ):
        if at_edge and len(some) <= 20 and corrections_in(some) - corrections_in(others):
            return True
    return False


def points(token: Token) -> int:
    """Half characters that a token weighs."""
    if token.kind == "H":
        return 0 if token.text in words().light else 2
    if token.kind == "W":
        return 1 if token.text in words().light else min(2 + len(token.text), 8)
    return min(1 + len(token.text), 8)


def spelled_alike(s: Token, t: Token) -> bool:
    """Whether two words are one in two spellings."""
    short, long = sorted((s.text, t.text), key=len)
    if s.kind != "W" or t.kind != "W" or len(short) < 4 or len(long) - len(short) > 1:
        return s == t and s.kind == "W"
    position = next((k for k in range(len(short)) if short[k] != long[k]), len(short))
    if len(long) > len(short):
        return short[position:] == long[position + 1 :]
    return short == long or (len(short) >= 5 and short[position + 1 :] == long[position + 1 :])


def paired(pair: Pair, run: Run) -> tuple[int, int]:
    """Points of both sides, less those of words in two spellings."""
    x, y = pair.texts(run)
    mine, other = sum(map(points, x)), sum(map(points, y))
    if not x or not y:
        return mine, other
    if len(x) <= 12 and len(y) <= 12:
        free = list(y)
        for s in x:
            match = next((t for t in free if spelled_alike(s, t)), None)
            if match is not None:
                # By identity: the same word may stand there twice.
                free.pop(next(k for k, t in enumerate(free) if t is match))
                mine, other = mine - points(s), other - points(match)
    return max(0, mine), max(0, other)


def measured(pair: Pair, limits: Differences) -> Rule:
    """Category.AMOUNT, in order."""
    sides = [paired(pair, run) for run in pair.runs]
    replaced = [
        min(side) if run.a1 > run.a0 and run.b1 > run.b0 else 0
        for run, side in zip(pair.runs, sides, strict=True)
    ]
    changed = {position for run in pair.runs for position in range(run.a0, run.a1)}
    shared = sum(points(t) for position, t in enumerate(pair.a) if position not in changed)
    only = min(sum(mine for mine, _ in sides), sum(other for _, other in sides))
    short = min(sum(len(t.text) for t in some) for some in (pair.a, pair.b)) < limits.short
    most = limits.replaced_short if short else limits.replaced
    rules = set()
    if sum(replaced) * 1000 > most * (sum(replaced) + shared):
        rules.add(Rule.REPLACED)
    if short and only * 1000 > limits.only_short * (only + shared):
        rules.add(Rule.BOTH_SAY_MORE)
    if max(replaced) > 2 * limits.longest:
        rules.add(Rule.LONG_REPLACEMENT)
    if any(in_its_place(pair, run, limits) for run in pair.runs):
        rules.add(Rule.IN_ITS_PLACE)
    if any(own_words(pair, run) > limits.own for run in pair.runs):
        rules.add(Rule.OWN_WORDS)
    for run, side in zip(pair.runs, sides, strict=True):
        if pair.is_inside(run) and 0 in map(len, pair.texts(run)) and max(side) > 2 * limits.inside:
            rules.add(Rule.ADDED_INSIDE)
    return first_of(rules)


def in_its_place(pair: Pair, run: Run, limits: Differences) -> bool:
    """Whether a run before the end replaces enough, where few places differ."""
    if not limits.in_place or len(pair.runs) > limits.places:
        return False
    replaced = min(sum(points(t) for t in some if t.kind == "H") for some in pair.texts(run))
    return run.a1 < len(pair.a) and run.b1 < len(pair.b) and replaced >= 2 * limits.in_place


def own_words(pair: Pair, run: Run) -> int:
    """New pairs of characters, and letters of new words, in the later body's side of a run."""
    earlier = "".join(t.text for t in pair.b)
    known_pairs = {earlier[k : k + 2] for k in range(len(earlier) - 1)}
    new, mine = 0, pair.texts(run)[0]
    for position, token in enumerate(mine):
        if token.kind == "W":
            new += 0 if token in pair.b else len(token.text)
        else:
            spelled = token.text + "".join(t.text for t in mine[position + 1 : position + 2])[:1]
            new += sum(spelled[k : k + 2] not in known_pairs for k in range(len(spelled) - 1))
    return new
