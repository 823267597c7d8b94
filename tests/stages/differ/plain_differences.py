"""The decision list of docs/DIFFERENCES.md in plain Python: strings, sets and counters, and no kernel.

Written from the page, not from the kernel, so that a mistake would have to be made twice.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.stages.differ import plain_elsewhere
from twinsieve.stages import differ
from twinsieve.stages.contract import FULL, OFF, STORED_LENGTH, Differences
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.text.scripts import UNSPACED_RANGES

BESIDE = ("ones", "below_zero", "more", "counters", "numbered", "measures", "parts", "last_parts")
"""Lists of words that stand beside numbers."""
MARKS = set("-<>≤≥.,:/+*")


FIRST_REFERENCE = "\U000f0000"


class Token(NamedTuple):
    """kind: H a character of an unspaced script, W a word, N a number, M a mix of letters and digits.

    word: the first spelling of the same word
    """

    text: str
    kind: str
    word: str


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
    concord: set[str] = field(default_factory=set)
    questions: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    idioms: set[str] = field(default_factory=set)
    corrections: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    numerals: dict[str, int] = field(default_factory=dict)
    calendar: list[list[set[str]]] = field(default_factory=list)
    opposites: list[list[set[str]]] = field(default_factory=list)
    agency: set[str] = field(default_factory=set)
    beside: dict[str, set[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    bland: set[str] = field(default_factory=set)
    emoticons: set[str] = field(default_factory=set)
    powers: dict[str, int] = field(default_factory=dict)
    currencies: dict[str, str] = field(default_factory=dict)
    endings: list[set[str]] = field(default_factory=list)
    first: dict[str, str] = field(default_factory=dict)
    stages: dict[str, set[int]] = field(default_factory=dict)
    infinitives: set[str] = field(default_factory=set)
    outlets: set[str] = field(default_factory=set)
    institutions: set[str] = field(default_factory=set)


ENGLISH = "en"
ANY = "any"
ALWAYS = {ANY, "zh", "zh_names", "ja", "th"}
"""Of no language, and of scripts that no other language writes without blanks."""
_PATH = Path(differ.__path__[0]) / "data" / "words"


@cache
def files() -> dict[str, dict[str, Any]]:
    """The lists of `data/words/`, by language."""
    return {
        file.stem: yaml.load(file.read_text(encoding="utf-8").replace("ı", "i"), yaml.CSafeLoader)
        for file in sorted(_PATH.iterdir())
    }


Spoken = frozenset[str]
EVERY: Spoken = frozenset(files())
_NOW: list[tuple[Spoken, Spoken]] = [(EVERY, EVERY)]
"""The languages of the two bodies in hand: of all lists, and of agency marks."""


def words() -> Words:
    """The lists that hold for the two bodies in hand."""
    return words_of(*_NOW[-1])


@cache
def words_of(spoken: Spoken, marks: Spoken) -> Words:
    """The lists of some languages in one; opposites, days and spellings are those of all."""
    merged = replace(everything())
    held = [of_language(language) for language in files() if language in spoken | ALWAYS]
    for name in ("light", "negation", "concord", "corrections"):
        setattr(merged, name, set().union(*(getattr(one, name) for one in held)))
    merged.numbers = {word: value for one in held for word, value in one.numbers.items()}
    merged.agency = set().union(*(of_language(name).agency for name in files() if name in marks | ALWAYS))
    share(merged)
    return merged


@cache
def of_language(language: str) -> Words:
    """The lists of one language that hold where it is spoken."""
    lists = files()[language]
    some = Words(
        **{
            name: spelled(lists.get(name, ""))
            for name in ("light", "negation", "concord", "corrections", "agency")
        }
    )
    some.negation |= some.concord
    for text, value in lists.get("numbers", {}).items():
        some.numbers |= dict.fromkeys(spelled(text), value)
    return some


@cache
def everything() -> Words:
    """The lists that hold in each text."""
    merged = Words()
    days: dict[str, list[set[str]]] = {}
    for lists in files().values():
        for name in ("questions", "inside", "denied"):
            getattr(merged, name).update(spelled(lists.get(name, "")))
        merged.idioms |= {idiom.replace("_", "") for idiom in spelled(lists.get("idioms", ""))}
        for name in BESIDE:
            merged.beside.setdefault(name, set()).update(spelled(lists.get(name, "")))
        for name in ("names", "bland", "emoticons", "infinitives", "outlets", "institutions"):
            getattr(merged, name).update(spelled(lists.get(name, "")))
        for number, side in enumerate(lists.get("stages", [])):
            for phrase in spelled(side):
                merged.stages.setdefault(phrase, set()).add(number)
        for text, value in lists.get("powers", {}).items():
            merged.powers |= dict.fromkeys(spelled(text), value)
        for sign, text in lists.get("currencies", {}).items():
            merged.currencies |= dict.fromkeys(spelled(text), sign)
        merged.numerals |= lists.get("numerals", {})
        if "endings" in lists:
            merged.endings.append({bare(end) for end in lists["endings"].replace("-", "''").split()})
        for name in ("weekdays", "months", "days"):
            sides = days.setdefault(name, [set() for _ in range(12)])
            for number, side in enumerate(lists.get(name, [])):
                sides[number] |= followed(side, lists)
        merged.opposites += [
            [followed(side, lists) for side in pair.split("/")] for pair in lists.get("opposites", [])
        ]
        for group in lists.get("same", []):
            of_one = [form for text in group.split() for form in in_order(text)]
            first = merged.first.get(of_one[0], of_one[0])
            for word in of_one:
                merged.first.setdefault(word, first)
    merged.endings = [{"" if ending == "''" else ending for ending in some} for some in merged.endings]
    merged.calendar = list(days.values())
    elsewhere = spelled_elsewhere()
    sides_of = (side for kind in (*merged.calendar, *merged.opposites) for side in kind)
    others = (merged.infinitives, merged.outlets, *merged.beside.values())
    for some in (merged.idioms, merged.questions, merged.bland, *others, *sides_of):
        for word in some & elsewhere.keys():
            some |= elsewhere[word]
    for group in spellings().values():
        of_one_word = set().union(*(merged.stages.get(word, set()) for word in group))
        if of_one_word:
            merged.stages |= dict.fromkeys(group, of_one_word)
    for meant in (merged.powers, merged.currencies):
        share_values(meant)
    return merged


def followed(side: str, lists: dict[str, Any]) -> set[str]:
    """The words of a side, each with all that may follow it."""
    behind = lists.get("suffixes", "-").replace("-", "").split(" ")
    return {word + end for word in spelled(side) for end in behind}


@cache
def spellings() -> dict[str, set[str]]:
    """By first spelling: all spellings of a word."""
    first_of_all: dict[str, str] = {}
    for lists in files().values():
        for group in lists.get("same", []):
            of_one = [form for text in group.split() for form in in_order(text)]
            first = first_of_all.get(of_one[0], of_one[0])
            for word in of_one:
                first_of_all.setdefault(word, first)
    by_first: dict[str, set[str]] = {}
    for word, first in first_of_all.items():
        by_first.setdefault(first, {first}).add(word)
    return by_first


@cache
def spelled_elsewhere() -> dict[str, set[str]]:
    """By word: its spellings."""
    return {word: group for group in spellings().values() for word in group}


def share(merged: Words) -> None:
    """Give all spellings of a word its roles and its number."""
    elsewhere = spelled_elsewhere()
    for some in (merged.light, merged.negation, merged.concord, merged.corrections, merged.agency):
        for word in some & elsewhere.keys():
            some |= elsewhere[word]
    share_values(merged.numbers)


def share_values(meant: dict[str, Any]) -> None:
    for word in meant.keys() & spelled_elsewhere().keys():
        meant |= dict.fromkeys(spelled_elsewhere()[word], meant[word])


def in_order(text: str) -> list[str]:
    """The words that one word with braces stands for, each followed by itself without accents."""
    before, brace, rest = text.partition("{")
    inner, _, behind = rest.partition("}")
    forms = (
        [before + form + end for form in inner.split(",") for end in in_order(behind)] if brace else [text]
    )
    result = []
    for form in forms:
        result.append(form)
        if len(form) >= 4 and not unspaced(form[0]):
            result.append(bare(form))
    return list(dict.fromkeys(form for form in result if form)) if text else [""]


def spelled(text: str) -> set[str]:
    """All words of a text of a list."""
    return {form for word in text.split() for form in in_order(word)}


@cache
def bare(text: str) -> str:
    """A text without the accents that its letters are composed with."""
    letters = [(char, unicodedata.normalize("NFD", char)) for char in text]
    return "".join(
        parts[0] if len(parts) > 1 and all(map(unicodedata.combining, parts[1:])) else char
        for char, parts in letters
    )


@cache
def unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in UNSPACED_RANGES)


@cache
def is_digit(char: str) -> bool:
    return unicodedata.category(char) == "Nd"


def is_jamo(char: str) -> bool:
    """A letter of Hangul that is part of no syllable, as in ㅋㅋ and ㅠㅠ."""
    return "\u1100" <= char <= "\u11ff"


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
            tokens.append(Token(body[position], "H", body[position]))
            position += 1
            continue
        end = position + 1
        while end < len(body) and not word_starts[end] and (is_digit(body[end]) or not unspaced(body[end])):
            if is_jamo(body[end]) != is_jamo(body[position]):
                break
            end += 1
        if cut and end == len(body):
            break
        text = body[position:end]
        word = everything().first.get(text, text)
        if not any(map(is_digit, text)):
            tokens.append(Token(text, "W", word))
        elif laughs(body, position, end, word_starts, tokens) or is_heart(body, position, end, word_starts):
            tokens.append(Token(text, "W", text[:3]))
        elif all(is_digit(char) or is_mark(char) for char in text):
            tokens.append(Token(text, "N", text))
        else:
            tokens.append(Token(text, "M", word))
        position = end
    return tokens


def laughs(body: str, first: int, end: int, word_starts: Sequence[int], before: list[Token]) -> bool:
    """Whether digits laugh or clap, at the end of a clause of an unspaced script."""
    text, lists = ascii_digits(body[first:end]), words().beside
    if not re.fullmatch(r"(([1-9])\2\2+|233+)\+?", text):
        return False
    body = body[: next((k for k, char in enumerate(body) if char >= FIRST_REFERENCE), len(body))]
    if end < len(body) and not word_starts[end]:
        return False
    if before:
        if before[-1].kind != "H" or before[-1].text in words().numerals:
            return False
        if any(body[max(0, first - size) : first] in lists["numbered"] for size in range(1, 9)):
            return False
    if end == len(body):
        return bool(before)
    char = body[end]
    if is_digit(char) or is_mark(char):
        return False
    if unspaced(char):
        return not any(body[end : end + size] in lists["measures"] for size in range(1, 9))
    stop = end + 1
    while stop < len(body) and not word_starts[stop] and not unspaced(body[stop]):
        stop += 1
    word = body[end:stop]
    known = words()
    excludes = any(word in side for kind in (*known.calendar, *known.opposites) for side in kind)
    return bool(before) and not (
        excludes or word in known.currencies or word in known.powers or word in lists["measures"]
        or word in known.currencies.values()
    )  # fmt: skip


def is_heart(body: str, first: int, end: int, word_starts: Sequence[int]) -> bool:
    """Whether a mark and a number are the heart <3, and what follows counts nothing."""
    if not re.fullmatch("<3+", body[first:end]):
        return False
    if end == len(body) or body[end] >= FIRST_REFERENCE or body[end] == "<":
        return True
    lists = words()
    if unspaced(body[end]):
        return not any(body[end : end + size] in lists.beside["measures"] for size in range(1, 9))
    stop = end + 1
    while stop < len(body) and not word_starts[stop] and not unspaced(body[stop]):
        stop += 1
    return body[end:stop] in lists.light


def laughed(token: Token) -> bool:
    """Whether a token is digits that laugh."""
    return token.kind == "W" and any(map(is_digit, token.text))


def runs_of(a: list[Token], b: list[Token], cut: bool) -> tuple[list[Run], tuple[int, int]]:
    """What one longest common subsequence leaves over, joined over weak tokens; where what is unknown begins."""
    x, y = [t.word for t in a], [t.word for t in b]
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
    return joined_runs(a, b, [t.text for t in a], [t.text for t in b], runs), (len(x), len(y))


def joined_runs(a: list[Token], b: list[Token], x: list[str], y: list[str], runs: list[Run]) -> list[Run]:
    """Without weak tokens between two runs, and without runs that differ in blanks alone."""
    joined: list[Run] = []
    for run in runs:
        if joined and are_joined(a, b, joined[-1], run):
            joined[-1] = Run(joined[-1].a0, run.a1, joined[-1].b0, run.b1)
        else:
            joined.append(run)
    return [run for run in joined if "".join(x[run.a0 : run.a1]) != "".join(y[run.b0 : run.b1])]


def are_joined(a: list[Token], b: list[Token], last: Run, run: Run) -> bool:
    """Whether one weak token stands between two runs, of which one replaces something, or that make two names."""
    between = a[last.a1 : run.a0]
    weak = len(between) == 1 and (
        between[0].kind == "H" or (between[0].kind == "W" and len(between[0].text) <= 3)
    )
    replaces = any(one.a1 > one.a0 and one.b1 > one.b0 for one in (last, run))
    return weak and (replaces or plain_elsewhere.joins(a, b, last, run))


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


@dataclass(frozen=True)
class Read:
    """A number that can be read in two ways: 59.000 as 59 and as 59000."""

    one: object
    other: object


def are_one(value: object, other: object) -> bool:
    """Whether two values are one, in one of the ways to read each of them."""
    mine = (value.one, value.other) if isinstance(value, Read) else (value,)
    theirs = (other.one, other.other) if isinstance(other, Read) else (other,)
    return any(one == another for one in mine for another in theirs)


def contains(some: list[object], of: list[object]) -> bool:
    """Whether each value of one list is in the other one, as often."""
    return all(
        sum(are_one(value, each) for each in some) >= sum(value == each for each in of) for value in of
    )


def writes_dates(some: Sequence[Token]) -> bool:
    """Whether some tokens write a month and a day as 9/22, 9月22 or 05.03."""
    return any(set(t.text) & set("/月") or (t.kind == "N" and re.match(r"0.\..", t.text)) for t in some)


Value = tuple[str, object]
"""What is compared, and how it was written: `c` in Chinese numerals, else `n`."""


def values(
    some: Sequence[Token],
    most: int = 64,
    behind: Sequence[Token] = (),
    *,
    before: Sequence[Token] = (),
    plainly: bool = False,
    spaced: bool = False,
    dotted: bool = False,
) -> list[Value]:
    """The numbers of some tokens, no more than the first 64.

    behind: the tokens after them, which may say am, pm, million or dollars; plainly: digits alone
    before: the tokens before them; spaced, dotted: also 1 299,00 as one number, 9.22 as a month and a day
    """
    lists, results, position = words(), [], 0
    if not plainly:
        body = [*before, *some, *behind]
        some = [
            t._replace(text=t.text[1:]) if is_dash(body, len(before) + k) and not is_name_of(t) else t
            for k, t in enumerate(some)
        ]
    if dotted or spaced:
        some = list(in_other_ways(some, dotted=dotted))
    every = [*some, *behind]
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
        elif not plainly and (found := written(every, position, len(some))):
            results += [("n", value) for value in found[0]]
            position = min(found[1], max(len(some), position + 1))
            continue
        elif token.kind == "W" and token.word in lists.numbers:
            value, position = said_number(every, position, len(some))
            results.append(("n", Fraction(value)))
            continue
        elif token.kind == "M" and is_name(token.text):
            results.append(("n", ("name", token.word)))
        elif token.kind in "NM":
            factor, position = 1, position + 1
            while position < len(some) and lists.numerals.get(some[position].text, 0) >= 10:
                factor *= lists.numerals[some[position].text]
                position += 1
            results += [("n", value) for value in parts(token, factor)]
            continue
        position += 1
    return results[:most]


def said_number(every: Sequence[Token], position: int, end: int) -> tuple[int, int]:
    """The value of a number in several words, and the index after them: two hundred and five."""
    lists = words()
    value, at = lists.numbers[every[position].word], position + 1
    while at < len(every) and every[at].kind == "W":
        word = every[at]
        if word.word in lists.powers:
            for _ in range(lists.powers[word.word]):
                value = value * 10 if value < 10**15 else value
            at += 1
            continue
        more = at + 1 if len(word.text) <= 3 and is_light(word) else at
        if more >= end or every[more].kind != "W":
            break
        ones = 1 if every[more].text in lists.beside["ones"] else 0
        unit = lists.numbers.get(every[more].word, ones)
        tens = value % 10 == 0 and value % 100 >= 20 and unit < 10
        if not unit or not (tens or (value >= 100 and value % 100 == 0 and unit < 100)):
            break
        value, at = value + unit, more + 1
    return value, at


def ones_of(some: Sequence[Token], first: int, end: int) -> list[Value]:
    """The number 1 of each word such as a, or that of a hundred, one million."""
    lists = words()
    return [
        ("c", Fraction(10 ** (lists.powers.get(some[k + 1].word, 0) if k + 1 < len(some) and some[k + 1].kind == "W" else 0)))
        for k in range(first, end)
        if some[k].kind == "W" and some[k].text in lists.beside["ones"]
    ]  # fmt: skip


def is_name_of(token: Token) -> bool:
    """Whether a mix of letters and digits is a name."""
    return token.kind == "M" and is_name(token.text)


def in_other_ways(some: Sequence[Token], *, dotted: bool) -> Iterator[Token]:
    """Tokens with one number where blanks separate thousands, and (dotted) two where a dot separates a date."""
    position = 0
    while position < len(some):
        token = some[position]
        text = ascii_digits(token.text)
        date = re.fullmatch(r"(\d{1,2})\.(\d{1,2})", text)
        if dotted and date:
            month, day = sorted((int(date[1]), int(date[2])))
            if 1 <= month <= 12 and day <= 31:
                yield from (Token(part, "N", part) for part in date.groups())
                position += 1
                continue
        stop = position + 1
        if token.kind == "N" and re.fullmatch(r"\D*[1-9]\d{0,2}", text):
            while stop < len(some) and some[stop].kind == "N":
                following = re.fullmatch(r"\d{3}([.,]\d+)?", ascii_digits(some[stop].text))
                if not following:
                    break
                stop += 1
                if following[1]:
                    break
        yield token if stop == position + 1 else Token("".join(t.text for t in some[position:stop]), "N", "")
        position = stop


DATE_PARTS = set("年月日号號点點时時")


def with_role(some: Sequence[Token], position: int, role: str, longest: int, end: int | None = None) -> int:
    """Tokens of the longest phrase of a list of BESIDE that begins at a token; 0 for none."""
    end = len(some) if end is None else end
    if not 0 <= position < end:
        return 0
    listed = words().beside[role]
    if some[position].kind != "H":
        return int(some[position].kind == "W" and some[position].text in listed)
    found = 0
    for stop in range(position + 1, min(end, position + longest) + 1):
        if some[stop - 1].kind != "H":
            break
        if "".join(t.text for t in some[position:stop]) in listed:
            found = stop - position
    return found


def is_light(token: Token) -> bool:
    return token.kind in "HW" and (token.text in words().light or laughed(token))


def unit_of(token: Token) -> str:
    """The letters right behind a number, as in 5kg."""
    found = re.fullmatch(r"[\W\d]*\d[\W\d]*?([^\W\d].*)", token.text) if token.kind == "M" else None
    return found[1] if found and not any(is_digit(c) or is_mark(c) for c in found[1]) else ""


def is_dash(body: Sequence[Token], position: int) -> bool:
    """Whether a number begins with a dash of a range or of a list."""
    token, lists = body[position], words()
    if token.kind not in "NM" or token.text[0] != "-" or len(token.text) < 2:
        return False
    last = body[position - 1] if position else None
    below = lists.beside["below_zero"]
    if unit_of(token) in below or with_role(body, position + 1, "below_zero", 8):
        return False
    if last and (
        (last.kind == "W" and any(last.text in side for kind in lists.calendar[:2] for side in kind))
        or (last.text in DATE_PARTS and position > 1 and body[position - 2].kind == "N")
    ):
        return True
    near = range(max(0, position - 32), min(len(body), position + 8))
    for k in near:
        if body[k].kind == "W" and len(body[k].text) > 1 and body[k].text in below:
            return False
        if body[k].kind == "H" and with_role(body, k, "below_zero", 8) > 1:
            return False
    following = body[position + 1] if position + 1 < len(body) else None
    if last and is_light(last):
        return False
    if is_paid(body, position):
        return True
    if last and last.kind in "NM":
        return separates(last, token, following)
    return bool(last and ends_quantity(body, position - 1)) or is_listed(body, position)


def separates(last: Token, token: Token, following: Token | None) -> bool:
    """Whether a dash between two numbers is none of a row of numbers below zero."""
    if last.text[0] == "-" or ("." in token.text and "." not in last.text):
        return False
    if following and following.kind in "HW" and not is_light(following):
        return True
    low = re.fullmatch(r"(\d{1,4})|(\d{1,2})[^\W\d]{2}", ascii_digits(last.text))
    low_number = int(low[1] or low[2]) if low and (low[1] or len(last.text) <= 6) else -1
    high = 0
    for char in token.text[1:]:
        high = min(high * 10 + (unicodedata.decimal(char) if is_digit(char) else worth_of(char)), 1_000_000)
    return low_number < high


def worth_of(char: str) -> int:
    return words().numerals.get(char, 0)


def ends_quantity(body: Sequence[Token], position: int) -> bool:
    """Whether a token ends an abbreviation or a unit behind a number."""
    token = body[position]
    if token.kind == "W":
        return len(token.text) <= 4 and position > 0 and body[position - 1].kind in "NM"
    at = position
    while at > 0 and body[at].kind == "H" and position - at < 6:
        at -= 1
    return at < position and body[at].kind in "NM"


def is_paid(body: Sequence[Token], position: int) -> bool:
    """Whether a number has a currency before it, in it or behind it."""
    token, lists = body[position], words()
    if any(char in lists.currencies.values() or char in lists.currencies for char in token.text[1:]):
        return True
    if unit_of(token) in lists.currencies:
        return True
    following = body[position + 1] if position + 1 < len(body) else None
    if following and following.kind == "W":
        return following.text in lists.currencies
    return bool(following and following.kind == "H" and with_role(body, position + 1, "measures", 8))


def is_listed(body: Sequence[Token], position: int) -> bool:
    """Whether several numbers have a dash, and each of them a word behind it."""
    dashed = [
        k
        for k in range(max(0, position - 32), min(len(body), position + 32))
        if body[k].kind in "NM" and body[k].text[0] == "-"
    ]
    behind = [body[k + 1] if k + 1 < len(body) else None for k in dashed]
    return len(dashed) > 1 and all(t is not None and t.kind in "HW" and not is_light(t) for t in behind)


def written(every: Sequence[Token], position: int, end: int) -> tuple[list[object], int] | None:
    """(values, index after them) of a date, a time or a sum that is written with words; None if none begins here."""
    lists, token = words(), every[position]
    date = date_in_words(every, position, end)
    if date:
        return date
    if token.kind not in "NM":
        return None
    numbers = re.fullmatch(r"(\d+)[-./:*+,<>≤≥](\d+)[-./:*+,<>≤≥](\d+)", ascii_digits(token.text))
    if token.kind == "N" and numbers:
        a, b, c = numbers.groups()
        year, one, other = (int(part) for part in ((a, b, c) if len(a) == 4 else (c, a, b)))
        fits = 1000 <= year <= 2999 and min(one, other) >= 1
        if fits and len(a) == 4 and one <= 12 and other <= 31:
            return [Fraction(year), Fraction(one), Fraction(other)], position + 1
        one_way = max(one, other) > 12 or one == other
        if fits and one_way and len(a) != 4 == len(c) and max(one, other) <= 31 and min(one, other) <= 12:
            return [Fraction(year), Fraction(min(one, other)), Fraction(max(one, other))], position + 1
    text, rest = ascii_digits(token.text), [t.text for t in every[position + 1 :]]
    clock = re.fullmatch(r"(\d{1,2})(?:[:.](\d{1,2}))?(am|pm)?", text)
    if clock and 1 <= int(clock[1]) <= 12 and int(clock[2] or 0) < 60:
        words_behind = 0 if clock[3] else 1 if rest[:1] in (["am"], ["pm"]) else 2
        half = clock[3] or "".join(rest[:words_behind])
        if half in ("am", "pm"):
            hour = int(clock[1]) % 12 + 12 * (half == "pm")
            return [Fraction(hour), Fraction(clock[2] or 0)], position + 1 + words_behind
    letters = re.fullmatch(
        r"([^\W\d]+)", "".join(c for c in token.text if not is_digit(c) and not is_mark(c))
    )
    after, power, sign = position + 1, None, None
    body = token.text
    if letters:
        if not token.text.endswith(letters[1]) or token.text == letters[1]:
            return None
        body = token.text[: -len(letters[1])]
        unit = letters[1]
        power, sign = lists.powers.get(unit), lists.currencies.get(unit)
        power = 6 if unit == "m" and body[0] in lists.currencies.values() else power
    elif token.kind == "M":
        return None
    elif after < len(every) and every[after].kind == "W" and every[after].text in lists.powers:
        power, after = lists.powers[every[after].text], after + 1
    if after < len(every) and every[after].kind == "W" and every[after].text in lists.currencies:
        sign, after = lists.currencies[every[after].text], after + 1
    if power is None and sign is None:
        return None
    spelled_sign = sign if sign and is_digit(body[0]) else ""
    return list(parts(Token(spelled_sign + body, "N", ""), 10 ** (power or 0))), after


def ascii_digits(text: str) -> str:
    """Digits of any script as 0 to 9."""
    return "".join(str(unicodedata.decimal(c)) if is_digit(c) else c for c in text)


def date_in_words(every: Sequence[Token], position: int, end: int) -> tuple[list[object], int] | None:
    """Year, where it is said, month and day of March 5, 2024 or 5th of March."""
    months = words().calendar[1]

    def month(k: int) -> int | None:
        named = [
            n
            for n, side in enumerate(months, 1)
            if k < end and every[k].kind == "W" and every[k].text in side
        ]
        return named[0] if named else None

    def whole(k: int) -> int | None:
        text = ascii_digits(every[k].text) if k < end and every[k].kind in "NM" else ""
        fits = re.fullmatch(r"(\d{1,4})(?:[^\W\d]{2})?", text)
        return int(fits[1]) if fits else None

    if month(position):
        found, day, after = month(position), whole(position + 1), position + 2
    else:
        after = position + 1
        if after < end and every[after].kind == "W" and len(every[after].text) == 2:
            after += 1
        found, day, after = month(after), whole(position), after + 1
    if not found or not day or day > 31 or after > end:
        return None
    year = whole(after)
    if year and 1000 <= year <= 2999:
        return [Fraction(year), Fraction(found), Fraction(day)], after + 1
    return [Fraction(found), Fraction(day)], after


def is_name(text: str) -> bool:
    letters = [char for char in text if not is_digit(char) and not is_mark(char)]
    return len(letters) > 2 and set(letters) != {"x"} and len(text) <= 14


def parts(token: Token, factor: int) -> Iterator[object]:
    """The numbers of one token; the factor (万: 10000) belongs to the last one, if the token ends with it."""
    text, position, prefix = token.text, 0, ""
    while position < len(text):
        if not is_digit(text[position]):
            if is_mark(text[position]) and (position == 0 or prefix):
                prefix += text[position]
            position += 1
            continue
        end = position
        while end < len(text) and (
            is_digit(text[end]) or (text[end] in ".," and end + 1 < len(text) and is_digit(text[end + 1]))
        ):
            end += 1
        digits = "".join(str(unicodedata.decimal(c)) if is_digit(c) else "." for c in text[position:end])
        value: object = ".".join(str(int(part)) for part in digits.split("."))
        behind = text[end:] if len(text) == end + 1 and is_mark(text[end]) else ""
        times = factor if end + len(behind) == len(text) else 1
        if digits.count(".") <= 1:
            value = Fraction(digits) * times
        spelled, other = ascii_digits(text[position:end]), None
        grouped = re.fullmatch(r"([1-9]\d{0,2}(?:\.\d{3})+)(?:,(\d+))?", spelled) or re.fullmatch(
            r"([1-9]\d{0,2}(?:,\d{2})*,\d{3})(?:\.(\d+))?", spelled
        )
        if grouped:
            other = Fraction(re.sub("[.,]", "", grouped[1]) + "." + (grouped[2] or "0")) * times
        both = [(prefix, each, behind) if prefix or behind else each for each in (value, other)]
        yield both[0] if other is None else Read(both[0], both[1])
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
    """Two bodies as tokens, and the runs in which they differ.

    begins: of each token, whether it begins behind punctuation, a blank or another script
    ends: how many tokens are aligned; cut: whether one of the bodies goes on
    """

    a: list[Token]
    b: list[Token]
    runs: list[Run]
    begins: tuple[list[bool], list[bool]]
    ends: tuple[int, int]
    cut: bool

    def texts(self, run: Run) -> tuple[list[Token], list[Token]]:
        return self.a[run.a0 : run.a1], self.b[run.b0 : run.b1]

    def values(self, run: Run) -> tuple[list[Value], list[Value]]:
        """The numbers of both sides of a run."""
        return (
            values(self.a[run.a0 : run.a1], behind=self.a[run.a1 :], before=self.a[: run.a0]),
            values(self.b[run.b0 : run.b1], behind=self.b[run.b1 :], before=self.b[: run.b0]),
        )

    def values_in_all_ways(self, run: Run) -> tuple[list[Value], list[Value]]:
        """The same, with spaced thousands as one number, and dotted dates where one side has a date."""
        x, y = self.texts(run)
        dated = writes_dates(x + y)
        return (
            values(x, behind=self.a[run.a1 :], before=self.a[: run.a0], spaced=True, dotted=dated),
            values(y, behind=self.b[run.b1 :], before=self.b[: run.b0], spaced=True, dotted=dated),
        )

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
    cut = max(len(later), len(earlier)) > STORED_LENGTH
    runs, ends = runs_of(a, b, cut)
    shown = [] if not cut and differ_in_source(a, b, runs) else runs
    pair = Pair(a, b, shown, (begins(a, later_starts), begins(b, earlier_starts)), ends, cut)
    if differences.level == OFF:
        return Rule.NONE
    _NOW.append(languages_of(a, b))
    try:
        rule = guards(pair) or other_reference(later, earlier)
        if rule == Rule.NONE and pair.runs and differences.level == FULL:
            return measured(pair, differences)
        return rule
    finally:
        _NOW.pop()


def languages_of(a: list[Token], b: list[Token]) -> tuple[Spoken, Spoken]:
    """The languages whose lists hold for two bodies, and those whose agency marks do."""
    if 2 * sum(t.kind == "H" for t in (*a, *b)) >= len(a) + len(b):
        return frozenset({ENGLISH}), frozenset({ENGLISH})
    votes: Counter[str] = Counter()
    light = light_languages()
    for some in (a, b):
        for token in [t for t in some if t.kind == "W" and t.text in light][:16]:
            votes.update(light[token.text])
    most = max(votes.values(), default=0)
    if most < 3:
        return EVERY, frozenset({ENGLISH})
    spoken = {language for language, count in votes.items() if 4 * count >= 3 * most}
    for language in list(spoken):
        spoken |= set(files()[language].get("beside", "").split())
    return frozenset(spoken), frozenset(spoken)


@cache
def light_languages() -> dict[str, set[str]]:
    """By light word: the languages that have it."""
    by_word: dict[str, set[str]] = {}
    for language, lists in files().items():
        if language != ANY:
            for word in spelled(lists.get("light", "")):
                by_word.setdefault(word, set()).add(language)
    elsewhere = spelled_elsewhere()
    for word in by_word.keys() & elsewhere.keys():
        of_all = set().union(*(by_word.get(other, set()) for other in elsewhere[word]))
        by_word |= dict.fromkeys(elsewhere[word], of_all)
    of_none = spelled(files()[ANY].get("light", ""))
    return {word: spoken for word, spoken in by_word.items() if not of_none & elsewhere.get(word, {word})}


def begins(some: list[Token], word_starts: Sequence[int]) -> list[bool]:
    """Of each token: whether it begins behind punctuation, a blank or another script."""
    result, position = [], 0
    for token in some:
        result.append(bool(word_starts[position]))
        position += len(token.text)
    return result


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
    digits = [t if t.kind in "NM" or t.text in words().numerals else Token("", "W", "") for t in some[:end]]
    counts: Counter[object] = Counter(
        value for how, value in values(digits, most=len(some), plainly=True) if how == "n"
    )
    counts["negations"] += negations(some, 0, end)
    return counts


def guards(pair: Pair) -> Rule:
    """Category.GUARD, in order."""
    rules = {number_rule(pair, run) for run in pair.runs} | {sense_rule(pair, run) for run in pair.runs}
    if turned_round(pair):
        rules.add(Rule.OPPOSITE)
    if any(other_stage(pair, run) for run in pair.runs):
        rules.add(Rule.STAGE)
    if any(exchanged(pair, number) for number in range(len(pair.runs))):
        rules.add(Rule.EXCHANGED)
    if any(corrects(pair, run) for run in pair.runs):
        rules.add(Rule.CORRECTION)
    if pair.runs:
        rules |= plain_elsewhere.elsewhere(pair)
        if plain_elsewhere.repeated(pair):
            rules.add(Rule.REPEATED)
    return first_of(rules)


def first_of(rules: set[Rule]) -> Rule:
    """The first of these rules in the order of the table, NONE for none."""
    return next((rule for rule in Rule if rule and rule in rules), Rule.NONE)


def lacks(some: list[Value], other: list[Value], *, numerals: bool = False) -> bool:
    """Whether a value of `some` is missing in `other`, counted with repeats."""
    return not contains([value for _, value in other], [v for how, v in some if numerals or how == "n"])


def number_rule(pair: Pair, run: Run) -> Rule:
    """NUMBER, NUMERAL, NUMBER_ADDED."""
    x, y = pair.texts(run)
    if len(x) == len(y) == run.a0 == run.b0 == 1 and pair.a[0].text in words().agency:
        return Rule.NONE
    if len(x) == len(y) == 1 and x[0].kind == y[0].kind == "M" and max(len(x[0].text), len(y[0].text)) <= 6:
        return Rule.NONE if one_quantity(pair, run) else Rule.NUMBER
    if not x or not y:
        if counted_apart(pair, run):
            return Rule.NUMBER_ADDED
        added = any(
            number_added(some, first, end) and not is_face(some, first, end)
            for some, first, end in ((pair.a, run.a0, run.a1), (pair.b, run.b0, run.b1))
        )
        moved = day_moved(pair.a, run.a0, x, pair.b, run.b0) or day_moved(pair.b, run.b0, y, pair.a, run.a0)
        return Rule.NUMBER_ADDED if added and pair.is_inside(run) and not moved else Rule.NONE
    mine, other = pair.values(run)
    plain, other_plain = ([v for v in some if v[0] == "n"] for some in (mine, other))
    if plain and other_plain:
        if not (lacks(mine, other) and lacks(other, mine)):
            return Rule.NONE
        mine, other = pair.values_in_all_ways(run)
        differ = lacks(mine, other) and lacks(other, mine)
        return Rule.NUMBER if differ and not count_readers(pair, run) else Rule.NONE
    if len(x) <= 4 and len(y) <= 4:
        valued, other_valued = any(map(has_value, x)), any(map(has_value, y))
        if (valued and not other_valued and says_last(pair.b, run.b0, run.b1)) or (
            other_valued and not valued and says_last(pair.a, run.a0, run.a1)
        ):
            return Rule.NUMBER
        if (not mine and names_many(y, x)) or (not other and names_many(x, y)):
            return Rule.NUMBER
        if not mine and other_plain:
            mine = ones_of(pair.a, run.a0, run.a1)
        elif not other and plain:
            other = ones_of(pair.b, run.b0, run.b1)
    if len(x) <= 4 and len(y) <= 4 and mine and other:
        if plain:
            return Rule.NUMBER if lacks(mine, other) else Rule.NONE
        if other_plain:
            return Rule.NUMBER if lacks(other, mine) else Rule.NONE
        same = any(are_one(v, w) for _, v in mine for _, w in other)
        return Rule.NONE if same else Rule.NUMERAL
    return Rule.NONE


def valued_at(some: Sequence[Token], position: int) -> bool:
    return 0 <= position < len(some) and has_value(some[position])


def counted_apart(pair: Pair, run: Run) -> bool:
    """Whether tokens that one body adds change what is counted."""
    mine = run.a1 > run.a0
    some, others = (pair.a, pair.b) if mine else (pair.b, pair.a)
    first, end = (run.a0, run.a1) if mine else (run.b0, run.b1)
    size = end - first
    if with_role(some, first, "more", 8, end) == size and (
        valued_at(some, first - 1)
        or valued_at(some, end)
        or (first > 1 and some[first - 1].kind == "W" and valued_at(some, first - 2))
        or re.match("H{1,3}N", "".join(t.kind for t in some[end : end + 4]))
    ):
        return True
    number = pair.runs.index(run)
    if size == 1 and some[first].kind == "N" and number + 1 < len(pair.runs):
        then = pair.runs[number + 1]
        a, b = (then.a0, then.b0) if mine else (then.b0, then.a0)
        replaces = then.a1 > then.a0 and then.b1 > then.b0
        if a - end <= 3 and replaces and some[a].word != others[b].word and one_word(some[a], others[b]):
            return True
    if end != len(some) or first == 0:
        return False
    if size == 1 and some[first].kind == "N":
        short = re.fullmatch(r"\d{1,2}", ascii_digits(some[first].text))
        return ends_part(some, first) or bool(len(pair.runs) == 1 and short)
    return size == 2 and with_role(some, first, "parts", 8, end - 1) == 1 and valued_at(some, end - 1)


def names_many(some: list[Token], others: list[Token]) -> bool:
    """Whether a number stands before a word of which the other side has another form."""
    return any(
        number.kind == "N" and word.kind == "W" and word.word != other.word and one_word(word, other)
        for number, word in pairwise(some)
        for other in others
    )


def ends_part(some: Sequence[Token], end: int) -> bool:
    return any(with_role(some, end - size, "parts", 8, end) == size for size in range(1, min(8, end) + 1))


def says_last(some: Sequence[Token], first: int, end: int) -> bool:
    """Whether some tokens say that this is the last part of a series."""
    return any(
        size
        and (
            with_role(some, position + size, "parts", 8)
            or ends_part(some, position)
            or some[position].kind == "H"
        )
        for position in range(first, end)
        for size in [with_role(some, position, "last_parts", 8)]
    )


def count_readers(pair: Pair, run: Run) -> bool:
    """Whether one number stands for another one, and both count who is there or has seen a message."""
    x, y = pair.texts(run)
    if not 1 <= len(x) <= 4 or not 1 <= len(y) <= 4:
        return False
    places = ((pair.a, run.a0), (pair.b, run.b0))
    if len(x) == len(y) == 1 and all(with_others(some, position) for some, position in places):
        return True
    return all(counts_readers(some, position) for some, position in places)


def with_others(some: Sequence[Token], position: int) -> bool:
    """Whether a token stands between w/ and others."""
    if not 0 < position < len(some) - 1 or some[position - 1].text != "w":
        return False
    return re.fullmatch("other.?", some[position + 1].text) is not None


def counts_readers(some: Sequence[Token], position: int) -> bool:
    first = position
    while first > 0:
        sizes = [
            n for n in range(1, min(8, first) + 1) if with_role(some, first - n, "counters", 8, first) == n
        ]
        if some[first - 1].kind in "NM":
            first -= 1
        elif sizes:
            first -= sizes[-1]
        else:
            break
    numbers = counters = 0
    at = first
    while at < len(some):
        if some[at].kind in "NM":
            numbers, at = numbers + 1, at + 1
            continue
        size = with_role(some, at, "counters", 8)
        if not size:
            return False
        counters, at = counters + 1, at + size
    labelled = some[first].kind not in "NM" and some[-1].kind in "NM" and counters
    return bool(labelled or (numbers >= 2 and counters >= 2))


def one_quantity(pair: Pair, run: Run) -> bool:
    """Whether two mixes are one number with one unit."""
    units = []
    for token in (pair.a[run.a0], pair.b[run.b0]):
        unit = re.fullmatch(r"[^\w]*\d[\d.,:/+*<>≤≥-]*?([^\W\d]+)", ascii_digits(token.text))
        if not unit:
            return False
        units.append(unit[1])
    mine, other = pair.values(run)
    lists = words_of(EVERY, EVERY)
    known = (
        lists.light, lists.negation, lists.idioms, lists.corrections, lists.agency, lists.numbers, lists.powers, lists.currencies, lists.first,
        lists.stages, lists.infinitives, lists.outlets,
        *(side for kind in (*lists.calendar, *lists.opposites) for side in kind),
    )  # fmt: skip
    if units[0] != units[1] and not all(any(unit in some for some in known) for unit in units):
        return False
    if units[0] == units[1]:
        return equal(mine, other)
    one = lists.first.get(units[0], units[0]) == lists.first.get(units[1], units[1])
    return (one or all(unit in lists.powers for unit in units)) and equal(mine, other)


def day_moved(some: list[Token], first: int, added: list[Token], other: list[Token], place: int) -> bool:
    """Whether an added number is a day that stands on the other side of its month in the other body."""
    if len(added) != 1:
        return False

    def is_month(k: int) -> bool:
        return (
            k < len(some)
            and some[k].kind == "W"
            and any(some[k].text in side for side in words().calendar[1])
        )

    if place + 1 < len(other) and is_month(first + 1):
        return one_day(some[first], other[place + 1])
    return place >= 2 and is_month(first - 1) and one_day(some[first], other[place - 2])


def one_day(token: Token, other: Token) -> bool:
    """Whether both are the same day of a month, as 5 and 5th."""
    days = [
        re.fullmatch(r"(\d{1,4})(?:[^\W\d]{2})?", ascii_digits(t.text))
        for t in (token, other)
        if t.kind in "NM"
    ]
    return (
        len(days) == 2
        and all(days)
        and len({int(day[1]) for day in days if day}) == 1
        and int(days[0][1]) > 0
    )


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


def is_face(some: list[Token], first: int, end: int) -> bool:
    """Whether tokens are o_0 or 0_o, and no number stands beside them."""
    beside = some[max(0, first - 1) : first] + some[end : end + 1]
    return sorted(t.text for t in some[first:end]) == ["0", "o"] and all(t.kind not in "NM" for t in beside)


def names_emoticons(pair: Pair, run: Run) -> bool:
    """Whether all that differs is names of emoticons: added beside a clause or at the end, or other ones."""
    sides = ((pair.a, pair.begins[0], run.a0, run.a1), (pair.b, pair.begins[1], run.b0, run.b1))
    filled = [side for side in sides if side[3] > side[2]]
    if len(filled) == 2:
        return all(
            pieces is not None and all(piece in words().emoticons for piece in pieces)
            for pieces in (pieces_around(*side) for side in sides)
        )
    some, begins_, first, end = filled[0]
    starts = [*(k for k, begin in enumerate(begins_) if begin), len(some)]
    if first not in starts or end not in starts:
        return False
    if not all(piece in words().emoticons for piece in pieces_around(*filled[0]) or [""]):
        return False
    if first and some[first - 1].kind != "H":
        return False
    if end == len(some):
        return True
    before = first - max((k for k in starts if k < first), default=first)
    behind = min(k for k in starts if k > end) - end
    return some[end].kind == "H" and max(before, behind) >= 3


def pieces_around(some: list[Token], begins_: list[bool], first: int, end: int) -> list[str] | None:
    """The texts between marks, blanks and ends that hold tokens; None if more than eight tokens away."""
    starts = [*(k for k, begin in enumerate(begins_) if begin), len(some)]
    low, high = max((k for k in starts if k <= first), default=-1), min(k for k in starts if k >= end)
    if low < 0 or first - low > 8 or high - end > 8:
        return None
    bounds = [k for k in starts if low <= k <= high]
    return ["".join(t.text for t in some[one:other]) for one, other in pairwise(bounds)]


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
    """Number of negations that begin in some[first:end]."""
    return len(denials(some, first, end))


def denials(some: list[Token], first: int, end: int) -> list[tuple[int, int]]:
    """(first token, end) of each negation that begins in some[first:end]; the longest one, from left to right."""
    lists, found, position = words(), [], first
    while position < end:
        sizes = [size for phrase, size in phrases(some, position) if phrase in lists.negation]
        if some[position].kind == "W":
            if (sizes or denies_inside(some[position].text)) and not in_idiom_of_words(some, position):
                word = some[position].text
                asks = word in lists.questions and position + 1 == len(some)
                if not asks and not (word in lists.concord and agrees(some, position)):
                    found.append((position, position + 1))
            position += 1
            continue
        if sizes and not any(in_idiom(some, position, position + size) for size in sizes):
            found.append((position, position + max(sizes)))
        position += max(sizes, default=1)
    return found


def denies_inside(word: str) -> bool:
    """Whether a word has a part that denies, and none of an idiom."""
    lists = words()
    return any(part in word for part in lists.inside) and not any(
        word[k : k + size] in lists.idioms for k in range(len(word)) for size in range(1, 5)
    )


def in_idiom(some: list[Token], first: int, end: int) -> bool:
    return any(
        idiom in words().idioms and start + wide >= end
        for start in range(max(0, end - 8), first + 1)
        for idiom, wide in phrases(some, start)
    )


def in_idiom_of_words(some: list[Token], position: int) -> bool:
    """Whether a word is one of two that are an idiom together: not only."""
    return any(
        "".join(t.text for t in two) in words().idioms
        for k in (position - 1, position)
        if k >= 0 and len(two := some[k : k + 2]) == 2 and two[0].kind == two[1].kind == "W"
    )


def agrees(some: list[Token], position: int) -> bool:
    """Whether a word of concord stands near a negation with which it is one: ne … pas, no … nunca."""
    lists = words()
    return any(
        k != position
        and some[k].text in lists.negation
        and (k < position or some[k].text not in lists.concord)
        for k in range(max(0, position - 4), min(len(some), position + 5))
    )


def touching(some: list[Token], first: int, end: int, before: int) -> list[tuple[int, int]]:
    """The negations that share a token with some[first:end], or within which an empty one lies.

    before: end of the run before, to which a negation belongs that begins there
    """
    return [
        (k, stop)
        for k, stop in denials(some, max(0, first - 16), max(end, first))
        if k >= before and (k < end and stop > first if end > first else k < first < stop)
    ]


def rest_is_small(some: list[Token], first: int, end: int, found: list[tuple[int, int]]) -> bool:
    """Whether little remains of some[first:end] without its negations and without hiragana, which are grammar."""
    rest = [some[k] for k in range(first, end) if not any(f <= k < stop for f, stop in found)]
    kana = sum("\u3041" <= t.text <= "\u309f" for t in rest)
    return len(rest) - kana <= MOST + (not found) and kana <= KANA


MOST, KANA = 2, 4


def turned_round(pair: Pair) -> bool:
    total, odd, before, other_before = 0, False, 0, 0
    for run in pair.runs:
        mine = touching(pair.a, run.a0, run.a1, before)
        other = touching(pair.b, run.b0, run.b1, other_before)
        before, other_before = run.a1, run.b1
        mine, other = mine + denied(pair, run, later=True), other + denied(pair, run, later=False)
        if names_emoticons(pair, run):
            continue
        small = rest_is_small(pair.a, run.a0, run.a1, mine) and rest_is_small(pair.b, run.b0, run.b1, other)
        if not small and not pair.is_inside(run) and 0 in map(len, pair.texts(run)):
            continue
        total += len(mine) - len(other)
        odd |= small and (len(mine) + len(other)) % 2 == 1
    return total % 2 == 1 and odd


def denied(pair: Pair, run: Run, *, later: bool) -> list[tuple[int, int]]:
    """Words of one side that deny by their endings, of which the other side has the form without denial."""
    x, y = pair.texts(run) if later else pair.texts(run)[::-1]
    first = run.a0 if later else run.b0
    if not x or not y or len(x) > 4 or len(y) > 4:
        return []
    negate = words_of(EVERY, EVERY).negation
    return [
        (first + k, first + k + 1)
        for k, s in enumerate(x)
        if s.text not in negate and not denies_inside(s.text) and any(is_denied_form(s, t) for t in y)
    ]


def is_denied_form(s: Token, t: Token) -> bool:
    """Whether a word has an ending that denies behind a stem that the other word has, too: gitmiyor, gidiyor."""
    if s.kind != "W" or t.kind != "W":
        return False
    x, y = bare_letters(s.text), bare_letters(t.text)
    alike = next((k for k in range(min(len(x), len(y))) if x[k] != y[k]), min(len(x), len(y)))
    return any(
        x[stem:] in denied and y[stem:] in endings
        for denied, endings in denied_endings(_NOW[-1][0])
        for stem in range(alike - 2, alike + 2)
        if 2 <= stem <= len(y)
    )


@cache
def denied_endings(spoken: Spoken) -> list[tuple[set[str], set[str]]]:
    """Of each language spoken: endings that deny, and endings."""
    return [
        (
            {bare_letters(ending) for ending in spelled(lists["denied"])},
            {bare(ending) for ending in lists["endings"].replace("-", "").split(" ")},
        )
        for language, lists in files().items()
        if language in spoken and "denied" in lists
    ]


Sense = tuple[str, int, int]
"""(list, entry, side)"""


@cache
def every_sense() -> dict[str, set[Sense]]:
    """What each phrase of the lists excludes."""
    all_words = everything()
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
    if names_emoticons(pair, run):
        return Rule.NONE
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
    mine, other = pair.values(run)
    in_order = len(mine) == len(other) and all(
        are_one(v, w) for (_, v), (_, w) in zip(mine, other, strict=True)
    )
    return len(mine) > 1 and not in_order and equal(mine, other)


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
            and [t.word for t in x] == [t.word for t in w]
            and [t.word for t in z] == [t.word for t in y]
        ):
            return True
    return False


def equal(some: list[Value], other: list[Value]) -> bool:
    """Whether both are the same values, in any order."""
    return len(some) == len(other) and contains([v for _, v in some], [v for _, v in other])


def turned(some: list[Token], other: list[Token]) -> bool:
    """Whether the first tokens of one come last in the other: a beats, beats a."""
    x, y = [t.word for t in some], [t.word for t in other]
    return x != y and any(x[by:] + x[:by] == y for by in range(1, len(x)))


BEFORE_SOURCE, SOURCE = 4, 10


def differ_in_source(a: list[Token], b: list[Token], runs: list[Run]) -> bool:
    """Whether all that differs is a last run in which each body says nothing or the name of an outlet."""
    if len(runs) != 1 or runs[0].a1 < len(a) or runs[0].b1 < len(b):
        return False
    last = runs[0]
    named = all(not side or names_outlet(side) for side in (a[last.a0 :], b[last.b0 :]))
    return named and min(last.a0, last.b0) >= BEFORE_SOURCE


def names_outlet(some: list[Token]) -> bool:
    """Whether the end of a body is the name of an outlet: it is short, has no number and ends with its word."""
    return (
        len(some) <= SOURCE
        and not any(map(has_value, some))
        and any(
            phrase in words().outlets and position + size == len(some)
            for position in range(len(some))
            for phrase, size in phrases(some, position)
        )
    )


def stages_of(some: list[Token], first: int, end: int) -> set[int]:
    """The stages of an event that phrases say which have a token of some[first:end]."""
    return {
        stage
        for position in range(end)
        for phrase, size in phrases(some, position)
        if position + size > first
        for stage in words().stages.get(phrase, ())
    }


HARM = 3
"""The stage that counts only where the later body tells it: who leaves out the dead of an event says nothing new."""


def other_stage(pair: Pair, run: Run) -> bool:
    """Whether one body says that an event is planned, tried or another one, and the other body does not."""
    x, y = pair.texts(run)
    if len(x) > 4 or len(y) > 4:
        return False
    mine, other = stages_of(pair.a, run.a0, run.a1), stages_of(pair.b, run.b0, run.b1)
    if any(not is_light(t) if t.kind == "H" else says_something(t) for t in y):
        mine -= {HARM}
    if mine - stages_of(pair.b, 0, len(pair.b)) or other - stages_of(pair.a, 0, len(pair.a)) - {HARM}:
        return True
    return intended(x, y) or intended(y, x)


def intended(some: list[Token], other: list[Token]) -> bool:
    """Whether one side has the infinitive of a verb that stands in another form on the other side: to close, closes."""
    return any(
        some[k].text in words().infinitives and some[k + 1].word != form.word and one_word(some[k + 1], form)
        for k in range(min(2, len(some) - 1))
        for form in other
    )


def corrects(pair: Pair, run: Run) -> bool:
    x, y = pair.texts(run)

    def corrections_in(some: list[Token]) -> set[tuple[str, str]]:
        return {
            (words().first.get(phrase, phrase), some[position].kind)
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


def has_value(token: Token) -> bool:
    """Whether a token writes a number."""
    lists = words()
    return (
        token.kind in "NM"
        or token.text in lists.numerals
        or (token.kind == "W" and token.word in lists.numbers)
    )


def says_something(token: Token) -> bool:
    """Whether a token is a word that may be a name or a fact."""
    mere = words().light | words().agency
    reaction = laughed(token) or is_jamo(token.text[0])
    return token.kind == "W" and len(token.text) >= 3 and token.word not in mere and not reaction


def points(token: Token) -> int:
    """Half characters that a token weighs."""
    if token.kind == "H":
        return 0 if token.text in words().light else 2
    if token.kind == "W":
        light = token.text in words().light or laughed(token) or is_jamo(token.text[0])
        return 1 if light else min(2 + len(token.text), 8)
    return min(1 + len(token.text), 8)


def spelled_alike(s: Token, t: Token) -> bool:
    """Whether two words are one in two spellings."""
    short, long = sorted((s.text, t.text), key=len)
    if s.kind != "W" or t.kind != "W" or len(short) < 4 or len(long) - len(short) > 1:
        return s == t and s.kind == "W"
    position = next((k for k in range(len(short)) if short[k] != long[k]), len(short))
    if len(long) > len(short):
        return short[position:] == long[position + 1 :]
    swapped = short[:position] + short[position : position + 2][::-1] + short[position + 2 :]
    one_letter = short[position + 1 :] == long[position + 1 :]
    return short == long or (len(short) >= 5 and (long == swapped or one_letter))


def one_word(s: Token, t: Token) -> bool:
    """Whether two tokens are one word, in two spellings or forms."""
    if s.kind != "W" or t.kind != "W":
        return False
    if s.word == t.word or spelled_alike(s, t) or stretched(s.text, t.text) or laugh_alike(s.text, t.text):
        return True
    x, y = bare_letters(s.text), bare_letters(t.text)
    stem = next((k for k in range(min(len(x), len(y))) if x[k] != y[k]), min(len(x), len(y)))
    if x == y:
        return True
    is_hangul = "가" <= x[0] <= "힣"
    if stem < (2 if is_hangul else 3) or 2 * stem < (min if is_hangul else max)(len(x), len(y)):
        return False
    return any({x[stem:], y[stem:]} <= endings for endings in words().endings)


def stretched(word: str, other: str) -> bool:
    """Whether one word has a letter three times or more where the other has it once or more: sooo, soooooo.

    Or one is the other, of two letters or more, twice: 너무, 너무너무.
    """
    if min(len(word), len(other)) >= 2 and (word == 2 * other or other == 2 * word):
        return True
    one, two = ([(letter, len(list(some))) for letter, some in groupby(text)] for text in (word, other))
    alike = [letter for letter, _ in one] == [letter for letter, _ in two]
    least = 1 if is_jamo(word[0]) else 3
    return alike and all(m == n or max(m, n) >= least for (_, m), (_, n) in zip(one, two, strict=True))


def laugh_alike(word: str, other: str) -> bool:
    """Whether both repeat the same one to three letters, twice or more: haha, hahahah."""
    return any(
        min(len(word), len(other)) >= 2 * size
        and all(text[k] == word[k % size] for text in (word, other) for k in range(len(text)))
        for size in (1, 2, 3)
    )


@cache
def bare_letters(text: str) -> str:
    """Each letter without its accents, where one character remains of it."""
    return "".join(bare(char) if len(bare(char)) == 1 and ord(char) < 0x3000 else char for char in text)


def paired(pair: Pair, run: Run) -> tuple[int, int]:
    """Points of both sides, less those of words in two spellings or forms and of numbers in two."""
    x, y = pair.texts(run)
    mine, other = sum(map(points, x)), sum(map(points, y))
    if not x or not y:
        return mine, other
    if in_two_writings(pair, run) or (any(map(has_value, x)) and count_readers(pair, run)):
        return 0, 0
    if say_one_number(pair, run):
        if words_but_numbers(x) == words_but_numbers(y):
            return 0, 0
        mine -= sum(points(t) for t in x if has_value(t) or t.word in words().powers)
        other -= sum(points(t) for t in y if has_value(t) or t.word in words().powers)
    if len(x) <= 12 and len(y) <= 12:
        free = list(y)
        for s in x:
            match = next((t for t in free if one_word(s, t)), None)
            if match is not None:
                # By identity: the same word may stand there twice.
                free.pop(next(k for k, t in enumerate(free) if t is match))
                mine, other = mine - points(s), other - points(match)
    return max(0, mine), max(0, other)


def in_two_writings(pair: Pair, run: Run) -> bool:
    """Whether a run lies in one listed phrase in two writings, one of them in kana: 美味しい, おいしい."""
    x, y = ("".join(t.text for t in some) for some in pair.texts(run))
    if not 0 < len(x) <= 8 or not 0 < len(y) <= 8 or not (is_kana(x) or is_kana(y)):
        return False
    first = words().first
    for before, behind in itertools.product(range(4), range(4)):
        if before > min(run.a0, run.b0) or behind > min(len(pair.a) - run.a1, len(pair.b) - run.b1):
            continue
        mine = "".join(t.text for t in pair.a[run.a0 - before : run.a1 + behind])
        other = "".join(t.text for t in pair.b[run.b0 - before : run.b1 + behind])
        if mine in first and first[mine] == first.get(other):
            return True
    return False


def is_kana(text: str) -> bool:
    return all("\u3041" <= char <= "\u30ff" for char in text)


def say_one_number(pair: Pair, run: Run) -> bool:
    """Whether both sides of a run hold the same numbers, written differently."""
    x, y = pair.texts(run)
    ones = words().beside["ones"]
    sides = [[has_value(t) or (t.kind == "W" and t.text in ones) for t in some] for some in (x, y)]
    if not all(map(any, sides)) or not any(map(has_value, x + y)):
        return False
    mine, other = pair.values(run)
    mine = mine or ones_of(pair.a, run.a0, run.a1)
    other = other or ones_of(pair.b, run.b0, run.b1)
    return equal(mine, other) or equal(*pair.values_in_all_ways(run))


def words_but_numbers(some: list[Token]) -> list[str]:
    """The words of a side, without its numbers and the characters between the numbers of a date."""
    powers = words().powers
    return [t.word for t in some if not has_value(t) and t.word not in powers and t.text not in DATE_PARTS]


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
    if each_has_words(pair, limits):
        rules.add(Rule.BOTH_SAY_MORE)
    if another_item(pair, limits) or (limits.in_place and in_another_script(pair)):
        rules.add(Rule.IN_ITS_PLACE)
    said = plain_elsewhere.said(pair)
    if short and (adds_institution(pair) or any(adds_words(pair, run) for run in pair.runs)):
        rules.add(Rule.WORD_ADDED)
    if short and max(said[0], default=0) > limits.added_short:
        rules.add(Rule.WORD_ADDED)
    if is_short_pair(pair, limits, 4) and max(said[0], default=0) > 6 * limits.added_short:
        rules.add(Rule.WORD_ADDED)
    if (
        not plain_elsewhere.in_thai(pair)
        and is_short_pair(pair, limits, 2)
        and min(map(sum, said)) > limits.added_short
    ):
        rules.add(Rule.WORD_ADDED)
    if max(replaced) > 2 * limits.longest:
        rules.add(Rule.LONG_REPLACEMENT)
    if any(in_its_place(pair, run, limits) or named(pair, run, limits) for run in pair.runs):
        rules.add(Rule.IN_ITS_PLACE)
    ends = (plain_elsewhere.other_title, plain_elsewhere.other_last_words, plain_elsewhere.moved_name)
    if limits.in_place and any(rule(pair) for rule in ends):
        rules.add(Rule.IN_ITS_PLACE)
    if any(own_words(pair, run) > limits.own for run in pair.runs):
        rules.add(Rule.OWN_WORDS)
    own = sum(
        points(s)
        for run in pair.runs
        for s in pair.texts(run)[0]
        if says_something(s) and not any(one_word(s, t) for t in pair.b)
    )
    if own * 1000 > limits.own_share * (own + shared):
        rules.add(Rule.OWN_WORDS)
    for run, side in zip(pair.runs, sides, strict=True):
        if pair.is_inside(run) and 0 in map(len, pair.texts(run)) and max(side) > 2 * limits.inside:
            rules.add(Rule.ADDED_INSIDE)
        said = sum(points(t) for some in pair.texts(run) for t in some if says_something(t))
        if short and pair.is_inside(run) and 0 in map(len, pair.texts(run)) and said > 2 * limits.added_short:
            rules.add(Rule.WORD_ADDED)
    return first_of(rules)


def each_has_words(pair: Pair, limits: Differences) -> bool:
    """Whether each of two bodies has words that the other lacks, with that many letters."""
    shorter = min(sum(len(t.text) for t in some) for some in (pair.a, pair.b))
    if not limits.each or shorter >= 2 * limits.short or len(pair.runs) > limits.name_places:
        return False
    mine, other = (
        sum(
            len(s.text)
            for run in pair.runs
            for s in pair.texts(run)[side]
            if says_something(s) and not any(one_word(s, t) for t in others)
        )
        for side, others in ((0, pair.b), (1, pair.a))
    )
    return min(mine, other) >= limits.each


ITEM, BETWEEN, NAME_BETWEEN = 3, 6, 4
ITEM_TOKENS = 32


def another_item(pair: Pair, limits: Differences) -> bool:
    """Whether each body names something that the other lacks, before and behind what both have."""
    if not limits.in_place:
        return False
    if len(pair.runs) == 2 and is_short_pair(pair, limits) and asks_elsewhere(pair):
        return True
    return len(pair.runs) <= limits.places and any(
        items_differ(pair, number) for number in range(min(32, len(pair.runs) - 1))
    )


def is_short_pair(pair: Pair, limits: Differences, times: int = 1) -> bool:
    return min(sum(len(t.text) for t in some) for some in (pair.a, pair.b)) < times * limits.short


def asks_elsewhere(pair: Pair) -> bool:
    """Whether one body has a word before, and the other one behind, what both have."""
    run, then = pair.runs
    ends = min(run.a0, run.b0) == 0 and then.a1 == len(pair.a) and then.b1 == len(pair.b)
    return ends and pair.a[run.a1].kind == "H" and each_adds(pair, run, then, 0)


def items_differ(pair: Pair, number: int) -> bool:
    """Whether two neighbouring runs are two lists with one item in common: a, b / b, c."""
    run, then = pair.runs[number : number + 2]
    near = then.a0 - run.a1 <= BETWEEN and pair.is_inside(run) and pair.is_inside(then)
    return near and each_adds(pair, run, then, 1, least=1 if are_two_names(pair) else ITEM)


def are_two_names(pair: Pair) -> bool:
    """Whether all that differs are two runs, close together, without a light character in them or between."""
    if len(pair.runs) != 2:
        return False
    run, then = pair.runs
    near = then.a0 - run.a1 <= NAME_BETWEEN
    return near and not any(is_light(t) for t in (*pair.a[run.a0 : then.a1], *pair.b[run.b0 : then.b1]))


def in_another_script(pair: Pair) -> bool:
    """Whether all that differs is one place, a word of an alphabet in one body and Han characters in the other one."""
    if len(pair.runs) != 1 or not pair.is_inside(pair.runs[0]):
        return False
    return any(
        0 < len(some) <= 2
        and all(says_something(t) for t in some)
        and len(other) >= 3
        and all("\u4e00" <= t.text <= "\u9fff" for t in other)
        for some, other in itertools.permutations(pair.texts(pair.runs[0]))
    )


def each_adds(pair: Pair, run: Run, then: Run, characters: int, least: int = ITEM) -> bool:
    """Whether one of two runs is in one body alone, the other one in the other body, and both are new.

    characters: least number of new pairs of characters of unspaced scripts
    """
    (x, y), (z, w) = pair.texts(run), pair.texts(then)
    if not (x or z) or not (y or w) or (x and y) or (z and w):
        return False
    sides = (new_characters(x or z, pair.b), new_characters(y or w, pair.a))
    return all(pairs >= characters and pairs + letters >= least for pairs, letters in sides)


def new_characters(some: list[Token], others: list[Token]) -> tuple[int, int]:
    """Pairs of neighbouring characters of unspaced scripts, and letters of words, that the others lack."""
    some = some[:ITEM_TOKENS]
    known = {(s.word, t.word) for s, t in itertools.pairwise(others)}
    pairs = sum(
        s.kind == t.kind == "H" and (s.word, t.word) not in known for s, t in itertools.pairwise(some)
    )
    alone = {t.word for t in others}
    return pairs, sum(len(t.text) for t in some if t.kind != "H" and t.word not in alone)


def adds_institution(pair: Pair) -> bool:
    """Whether all that differs is one word of an institution in one body: 江西, 江西师范大学."""
    if len(pair.runs) != 1:
        return False
    x, y = pair.texts(pair.runs[0])
    added = "".join(t.text for t in x or y)
    return (not x or not y) and len(added) >= 3 and any(map(added.endswith, words().institutions))


def adds_words(pair: Pair, run: Run) -> bool:
    """Whether the later body adds three words or more inside, one of which says something."""
    x, y = pair.texts(run)
    return pair.is_inside(run) and not y and len(x) >= 3 and any(map(says_something, x))


def named(pair: Pair, run: Run, limits: Differences) -> bool:
    """Whether a run before the end replaces words of an alphabet that say something, where few places differ."""
    if not limits.in_place or len(pair.runs) > limits.name_places:
        return False
    x, y = pair.texts(run)
    then = pair.a[run.a1] if run.a1 < len(pair.a) else None
    short = plain_elsewhere.short_names(x, y, then)
    mine = sum(points(s) for s in x if says_something(s) and not any(one_word(s, t) for t in y))
    other = sum(points(t) for t in y if says_something(t) and not any(one_word(s, t) for s in x))
    return (
        run.a1 < len(pair.a)
        and run.b1 < len(pair.b)
        and min(paired(pair, run)) > 0
        and (short or min(mine, other) >= 2 * limits.in_place)
    )


def in_its_place(pair: Pair, run: Run, limits: Differences) -> bool:
    """Whether a run before the end replaces enough, where few places differ."""
    if not limits.in_place or len(pair.runs) > limits.places:
        return False
    replaced = min(plain_elsewhere.name_points(some) for some in pair.texts(run))
    replaced *= min(paired(pair, run)) > 0
    return run.a1 < len(pair.a) and run.b1 < len(pair.b) and replaced >= 2 * limits.in_place


def own_words(pair: Pair, run: Run) -> int:
    """New pairs of characters, and letters of new words, in the later body's side of a run."""
    earlier = "".join(t.text for t in pair.b)
    known_pairs = {earlier[k : k + 2] for k in range(len(earlier) - 1)}
    new, mine = 0, pair.texts(run)[0]
    for position, token in enumerate(mine):
        if token.kind == "W":
            new += 0 if any(token.word == t.word for t in pair.b) else len(token.text)
        else:
            spelled = token.text + "".join(t.text for t in mine[position + 1 : position + 2])[:1]
            new += sum(spelled[k : k + 2] not in known_pairs for k in range(len(spelled) - 1))
    return new
