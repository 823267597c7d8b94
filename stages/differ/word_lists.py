"""Reads the built-in lists of words and a user's lists, and makes the tables of `phrases.py` from them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from twinsieve.stages.differ.phrases import (
    AGENCY,
    ASKS,
    BASES,
    BEGINS_DENIED,
    BELOW_ZERO,
    BLAND,
    CONCORD,
    CORRECTS,
    COUNTER,
    CURRENCY,
    DENIED,
    DIGIT,
    EMOTICON,
    EVERY_LANGUAGE,
    EXCLUDES,
    FIRST_OPPOSITE,
    GREETINGS,
    HELD,
    HELD_NEGATION,
    IDIOM,
    INFINITIVES,
    INSIDE,
    INSTITUTIONS,
    LAST_PART,
    LENGTHS_SHIFT,
    LIGHT,
    MAX_PHRASE,
    MEASURE,
    MORE,
    NAME,
    NEGATES,
    NUMBER_MARK,
    NUMBERED,
    NUMERAL,
    ONE,
    ORDINALS,
    OUTLETS,
    PART,
    POWER,
    STAGES,
    UNITS,
    UNSPACED,
    Phrases,
    key_of,
)
from twinsieve.stages.errors import UsageError
from twinsieve.stages.intrinsics import FNV_OFFSET, FNV_PRIME, GOLDEN
from twinsieve.stages.text.code_point_tables import (
    IN_NUMBER_DIGIT,
    IN_NUMBER_PREFIX,
    IN_NUMBER_SEPARATOR,
    SPECIAL_PLANES,
    combining_classes,
    number_parts,
)
from twinsieve.stages.text.scripts import unspaced_table
from twinsieve.stages.text.unicode import database

_OWN = files("twinsieve.stages.differ") / "data" / "words"
_ROLES = {
    "negation": NEGATES,
    "concord": NEGATES | CONCORD,
    "questions": ASKS,
    "inside": INSIDE,
    "idioms": IDIOM,
    "corrections": CORRECTS,
    "agency": AGENCY,
    "ones": ONE,
    "below_zero": BELOW_ZERO,
    "more": MORE,
    "counters": COUNTER,
    "numbered": NUMBERED,
    "measures": MEASURE,
    "parts": PART,
    "last_parts": LAST_PART,
    "names": NAME,
    "bland": BLAND,
    "emoticons": EMOTICON,
}
_SOUGHT = BELOW_ZERO | MORE | COUNTER | NUMBERED | MEASURE | PART | LAST_PART | BLAND | EMOTICON
"""Roles of phrases that are looked up in few places, beside numbers, in what short bodies add, and between
marks: no character need say where they begin."""
_CALENDAR = ("weekdays", "months", "days")
_KINDS = {
    INFINITIVES: "infinitives",
    OUTLETS: "outlets",
    INSTITUTIONS: "institutions",
    GREETINGS: "greetings",
    UNITS: "units",
    ORDINALS: "ordinals",
}
_MAX_NUMBER = 10**12
_MAX_POWER = 18
_MAX_FORMS = 1000
_UNACCENTED_FROM = 4
"""A word of at least this many letters is also known without its accents; shorter ones turn into other words
(sûr, sur)."""
_NO_ENDING = "-"
_BETWEEN_WORDS = "_"
"""Joins the two words of an idiom, which stand without a blank in a body."""
_MAX_LANGUAGES = 32
_ENGLISH = "en"
_BRACES = re.compile(r"\{([^{}]*)\}")


_unspaced = cache(unspaced_table)


_HELD_AS = tuple(role | DENIED if number == HELD_NEGATION else role for number, role in enumerate(HELD))
"""The roles whose languages are held in each column of `Phrases.held`."""
_HELD_ROLES = sum(_HELD_AS)
_NOWHERE = (0,) * len(HELD)


@dataclass(slots=True)
class _Entry:
    roles: int = 0
    number: int = -1
    senses: tuple[int, ...] = ()
    word: str = ""
    held: tuple[int, ...] = _NOWHERE

    def give(self, roles: int, languages: int) -> None:
        """Add roles, in these languages."""
        self.roles |= roles
        if roles & _HELD_ROLES:
            self.held = tuple(
                held | languages if roles & held_as else held
                for held, held_as in zip(self.held, _HELD_AS, strict=True)
            )

    def mean(self, senses: tuple[int, ...]) -> None:
        """Add senses."""
        if self.senses:
            self.senses += tuple(sense for sense in senses if sense not in self.senses)
        else:
            self.senses = senses


@dataclass
class _Lists:
    entries: defaultdict[str, _Entry] = field(default_factory=lambda: defaultdict(_Entry))
    numerals: dict[str, int] = field(default_factory=dict)
    light: set[str] = field(default_factory=set)
    endings: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    kinds: int = FIRST_OPPOSITE
    languages: dict[str, int] = field(default_factory=lambda: {_ENGLISH: 0})
    beside: list[int] = field(default_factory=lambda: [1 << bit for bit in range(_MAX_LANGUAGES)])

    def bit(self, language: str) -> int:
        """The bit of a language; all bits for lists that belong to none."""
        if not language:
            return EVERY_LANGUAGE
        number = self.languages.setdefault(language, len(self.languages))
        if number >= _MAX_LANGUAGES:
            raise UsageError(f"names more than {_MAX_LANGUAGES} languages")
        return 1 << number

    def add(self, lists: Mapping[str, Any]) -> None:
        """Add the lists of one language."""
        here = self.bit(lists.get("language", ""))
        for language in lists.get("beside", "").split():
            self.beside[here.bit_length() - 1] |= self.bit(language)
        for phrase in _phrases(lists.get("light", "")):
            if len(phrase) == 1 and _unspaced()[ord(phrase)]:
                self.light.add(phrase)
            else:
                self.entries[phrase].give(LIGHT, here)
        for name, role in _ROLES.items():
            for phrase in _phrases(lists.get(name, "")):
                self.entries[phrase.replace(_BETWEEN_WORDS, "")].give(role, here)
        for phrase in _phrases(lists.get("denied", "")):
            self.entries[unaccented(phrase)].give(DENIED, here)
        for name, role in (("numbers", NUMERAL), ("powers", POWER)):
            for text, value in lists.get(name, {}).items():
                for phrase in _phrases(text):
                    self.entries[phrase].number = value
                    self.entries[phrase].give(role, here)
        for sign, text in lists.get("currencies", {}).items():
            for phrase in (sign, *_phrases(text)):
                self.entries[phrase].number = ord(sign)
                self.entries[phrase].roles |= CURRENCY
        self.numerals |= lists.get("numerals", {})
        behind = [ending.replace(_NO_ENDING, "") for ending in lists.get("suffixes", _NO_ENDING).split()]
        for kind, name in enumerate(_CALENDAR):
            self._exclude(kind, lists.get(name, []), behind)
        self._exclude(STAGES, lists.get("stages", []), [""])
        for kind, name in _KINDS.items():
            self._exclude(kind, [lists.get(name, "")], [""])
        for pair in lists.get("opposites", []):
            self._exclude(self.kinds, pair.split("/"), behind)
            self.kinds += 1
        for group in lists.get("same", []):
            self._unite(_phrases(group))
        for ending in lists.get("endings", "").split():
            self.endings[unaccented(ending).replace(_NO_ENDING, "")] |= here

    def _exclude(self, kind: int, sides: Iterable[str], behind: list[str]) -> None:
        for number, side in enumerate(sides):
            sense = (kind << 8 | number,)
            for word in _phrases(side):
                for ending in behind:
                    entry = self.entries[word + ending]
                    entry.mean(sense)
                    entry.roles |= EXCLUDES

    def _unite(self, words: list[str]) -> None:
        """Make words spellings of one word. A word that is in several groups stays in the first one."""
        first = self.entries[words[0]].word or words[0]
        for word in words:
            self.entries[word].word = self.entries[word].word or first

    def share_spellings(self) -> None:
        """Give all spellings of one word the same roles, numbers and senses."""
        for entry in self.entries.values():
            if entry.word:
                first = self.entries[entry.word]
                first.roles |= entry.roles
                first.held = tuple(one | other for one, other in zip(first.held, entry.held, strict=True))
                first.number = max(first.number, entry.number)
                first.mean(entry.senses)
        for entry in self.entries.values():
            if entry.word:
                first = self.entries[entry.word]
                entry.roles, entry.number, entry.senses = first.roles, first.number, first.senses
                entry.held = first.held


def unaccented(text: str) -> str:
    """A text without accents: each letter without the marks that Unicode composes it with.

    >>> unaccented("corrección ёлка")
    'correccion елка'
    """
    return text if text.isascii() else text.translate(_base_letters())


def _phrases(text: str) -> list[str]:
    """The words of a text, with all forms that braces stand for, each also without its accents.

    >>> _phrases("den{y,ies} cerró")
    ['deny', 'denies', 'cerró', 'cerro']
    """
    if text.isascii() and "{" not in text:
        return list(dict.fromkeys(text.split()))
    words: dict[str, None] = {}
    for written in text.split():
        for form in _forms(written):
            words[form] = None
            if not form.isascii() and len(form) >= _UNACCENTED_FROM and not _unspaced()[ord(form[0])]:
                words[unaccented(form)] = None
    return list(words)


def _forms(written: str) -> list[str]:
    """What braces stand for: a{b,c} is ab and ac. A word may have several pairs of them, none in another."""
    if "{" not in written:
        return [written]
    forms = [""]
    for number, part in enumerate(_BRACES.split(written)):
        endings = part.split(",") if number % 2 else [part]
        if len(forms) * len(endings) > _MAX_FORMS:
            raise UsageError(f"{written!r:.60} stands for more than {_MAX_FORMS} words; write fewer braces")
        forms = [form + ending for form in forms for ending in endings]
    return [form for form in forms if form]


def phrases_of(words: str = "") -> Phrases:
    """The tables of the built-in lists and a user's lists together, made once.

    words: YAML in the form of a file of `data/words/`: the lists of one language, or of several languages by
        name
    raises: UsageError for a list that cannot be used; the message names the list
    """
    return _with_lists_of_user(words) if words else _built_in()


@cache
def _with_lists_of_user(words: str) -> Phrases:
    # Who reads a message makes its tally, and has the built-in lists alone.
    return phrases_from([*_own_lists(), *_of_user(words)])._replace(version=_built_in().version)


@cache
def _built_in() -> Phrases:
    return phrases_from(_own_lists())


def _own_lists() -> list[Mapping[str, Any]]:
    """The lists of `data/words/`, by name of the file."""
    files_ = sorted(_OWN.iterdir(), key=lambda file: file.name)
    return [_read(file.read_text(encoding="utf-8")) for file in files_]


def _read(words: str) -> Any:
    """What a text of YAML says. raises: UsageError"""
    try:
        # Bodies have no ı: case folding makes it an i (`case_folds`).
        return yaml.load(words.replace("ı", "i"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise UsageError(f"is not YAML: {' '.join(str(error).split())}") from error


def phrases_from(languages: Iterable[Mapping[str, Any]]) -> Phrases:
    """The tables of these lists alone; each of `languages` in the form of a file of `data/words/`."""
    lists = _Lists()
    for language in languages:
        lists.add(language)
    lists.share_spellings()
    return _tables(lists)


_TEXTS = frozenset(
    {"language", "beside", "suffixes", "light", "endings", "denied", *_KINDS.values(), *_ROLES}
)
_SIDES = frozenset({*_CALENDAR, "stages", "opposites", "same"})
_NUMBERS = frozenset({"numbers", "numerals", "powers"})
_KNOWN = _TEXTS | _SIDES | _NUMBERS | {"currencies"}


def _of_user(words: str) -> list[Mapping[str, Any]]:
    read = _read(words)
    if read is None:
        return []
    if not isinstance(read, dict):
        raise UsageError(f"holds no lists by name; known are {', '.join(sorted(_KNOWN))}")
    languages = [read] if _KNOWN & read.keys() else list(read.values())
    for language in languages:
        if not isinstance(language, dict):
            raise UsageError(f"holds {language!r:.40} where lists by name belong")
        for name, entries in language.items():
            _check(name, entries)
    return languages


def _check(name: object, entries: object) -> None:
    """Check that a list has the form of those in `data/words/`. raises: UsageError"""
    if name not in _KNOWN:
        raise UsageError(f"holds {name!r:.40}; known are {', '.join(sorted(_KNOWN))}")
    if name in _TEXTS:
        fits, wanted = isinstance(entries, str), "words with blanks between"
    elif name == "currencies":
        fits = isinstance(entries, dict) and all(
            isinstance(sign, str) and len(sign) == 1 and isinstance(text, str)
            for sign, text in entries.items()
        )
        wanted = "single signs with the words that mean them"
    elif name in _SIDES:
        fits = isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)
        wanted = "a list of texts"
    else:
        fits = isinstance(entries, dict) and all(
            isinstance(word, str) and isinstance(value, int) and 0 <= value <= _MAX_NUMBER
            for word, value in entries.items()
        )
        wanted = "words with their whole numbers"
    if fits and name == "powers" and isinstance(entries, dict):
        fits = all(value <= _MAX_POWER for value in entries.values())
        wanted = f"words with powers of ten up to {_MAX_POWER}"
    if fits and name == "numerals" and isinstance(entries, dict):
        fits, wanted = all(len(word) == 1 for word in entries), "single characters with their values"
    if not fits:
        raise UsageError(f"{name} is {entries!r:.40}; it takes {wanted}")


def _tables(lists: _Lists) -> Phrases:
    classes = np.zeros(SPECIAL_PLANES, np.uint16)
    classes[_unspaced()[:SPECIAL_PLANES]] |= UNSPACED
    parts = number_parts()
    classes[parts & IN_NUMBER_DIGIT != 0] |= DIGIT
    classes[parts & (IN_NUMBER_PREFIX | IN_NUMBER_SEPARATOR) != 0] |= NUMBER_MARK
    worth = np.zeros(SPECIAL_PLANES, np.int64)
    # In Unicode, the decimal digits of each script stand together, from 0 to 9.
    decimal = np.flatnonzero(parts & IN_NUMBER_DIGIT)
    worth[decimal] = np.arange(len(decimal)) % 10
    for text, value in lists.numerals.items():
        worth[ord(text)] = value
        classes[ord(text)] |= NUMERAL
    for text in lists.light:
        classes[ord(text)] |= LIGHT
    names = sorted(lists.entries)
    entries = [lists.entries[name] for name in names]
    unspaced = _unspaced()[[ord(name[0]) for name in names]].tolist()
    for name, entry, is_unspaced in zip(names, entries, unspaced, strict=True):
        if is_unspaced:
            if len(name) > MAX_PHRASE:
                raise UsageError(f"{name!r} has more than {MAX_PHRASE} characters")
            if entry == _Entry(NAME):
                continue  # Looked up where a run holds a light character, and nowhere else.
            roles = entry.roles
            if roles & ~_SOUGHT:
                begins = roles & (NEGATES | EXCLUDES | CORRECTS)
                classes[ord(name[0])] |= begins | 1 << (LENGTHS_SHIFT + len(name) - 1)
        elif entry.roles & INSIDE:
            classes[ord(name[0])] |= NEGATES
        elif entry.roles & DENIED:
            classes[ord(name[0])] |= BEGINS_DENIED
    keys = _keys_of(names)
    rows = {name: row for row, name in enumerate(names)}
    ids = keys.copy()
    spelled = [row for row, entry in enumerate(entries) if entry.word]
    ids[spelled] = keys[[rows[entries[row].word] for row in spelled]]
    held = np.zeros((len(entries), len(HELD)), np.uint32)
    for row, entry in enumerate(entries):
        if entry.held is not _NOWHERE:
            held[row] = entry.held
    endings = sorted((key_of(ending), languages) for ending, languages in lists.endings.items())
    return Phrases(
        classes,
        worth,
        _cells(keys),
        keys,
        ids,
        np.array([entry.roles for entry in entries], np.uint32),
        np.array([entry.number for entry in entries], np.int64),
        np.array([sense for entry in entries for sense in entry.senses], np.int64),
        np.concatenate(([0], np.cumsum([len(entry.senses) for entry in entries]))).astype(np.int64),
        np.array([key for key, _ in endings], np.uint64),
        np.array([languages for _, languages in endings], np.uint32),
        _bases(),
        held,
        _common([entry.roles for entry in entries], held),
        np.array(lists.beside, np.uint32),
        _version(keys, entries, worth),
    )


def _version(keys: NDArray[np.uint64], entries: list[_Entry], worth: NDArray[np.int64]) -> NDArray[np.uint64]:
    """uint64[1]: `Phrases.version`"""
    counted = np.array([entry.roles & (NEGATES | IDIOM) for entry in entries], np.uint32)
    parts = (keys[counted != 0], counted[counted != 0], worth)
    told = blake2b(b"".join(part.tobytes() for part in parts), digest_size=1)
    return np.array([told.digest()[0]], np.uint64)


def _common(roles: list[int], held: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """uint32[n]: the languages in which a phrase has all the roles that it has, as in `Phrases`."""
    common = np.full(len(roles), EVERY_LANGUAGE, np.uint32)
    for number, role in enumerate(HELD):
        has = np.array(roles, np.uint32) & np.uint32(role) != 0
        common[has] &= held[has, number]
    return common


def _keys_of(names: list[str]) -> NDArray[np.uint64]:
    """`key_of` each name, all names at once."""
    longest = max(map(len, names), default=1)
    chars = np.array(names, f"U{longest}").view(np.uint32).reshape(len(names), longest)
    values = np.full(len(names), FNV_OFFSET, np.uint64)
    for column in chars.T.astype(np.uint64):
        values = np.where(column != 0, (values ^ column) * FNV_PRIME, values)
    return (values ^ (values >> np.uint64(29))) | np.uint64(1 << 63)


@cache
def _base_letters() -> dict[int, int]:
    """Code points of letters with accents, each with that of the letter without them."""
    classes = combining_classes()
    composed = {
        composite: first
        for first, second, composite in database()["pairs"].tolist()
        if composite < BASES and classes[second]
    }

    def base(code: int) -> int:
        return base(composed[code]) if code in composed else code

    return {code: base(code) for code in composed}


@cache
def _bases() -> NDArray[np.uint32]:
    """uint32[BASES]: each character without its accents."""
    bases = np.arange(BASES, dtype=np.uint32)
    letters = _base_letters()
    bases[list(letters)] = list(letters.values())
    return bases


def _cells(keys: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The hash table (open addressing) in which `find` looks keys up: row + 1, or 0 for an empty cell."""
    size = 1 << (2 * len(keys)).bit_length()
    cells = np.zeros(size, np.int32)
    rows = np.arange(len(keys))
    wanted = ((keys * GOLDEN) >> np.uint64(32)).astype(np.int64) % size
    while len(rows):
        # Of all that want one empty cell, the first one gets it; the others go on to the next cell.
        _, first = np.unique(wanted, return_index=True)
        placed = first[cells[wanted[first]] == 0]
        cells[wanted[placed]] = rows[placed] + 1
        rows, wanted = np.delete(rows, placed), (np.delete(wanted, placed) + 1) % size
    return cells
