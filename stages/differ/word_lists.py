"""Reads the built-in lists of words and a user's lists, and makes the tables of `phrases.py` from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import yaml

from twinsieve.stages.differ.phrases import (
    CALENDAR_KINDS,
    CORRECTS,
    DIGIT,
    EXCLUDES,
    IDIOM,
    LENGTHS_SHIFT,
    LIGHT,
    MAX_PHRASE,
    NEGATES,
    NUMBER_MARK,
    NUMERAL,
    UNSPACED,
    Phrases,
    key_of,
)
from twinsieve.stages.errors import UsageError
from twinsieve.stages.intrinsics import GOLDEN
from twinsieve.stages.text.scripts import unspaced_table
from twinsieve.stages.text.tables import (
    IN_NUMBER_DIGIT,
    IN_NUMBER_PREFIX,
    IN_NUMBER_SEPARATOR,
    SPECIAL_PLANES,
    number_parts,
)

_OWN = files("twinsieve.stages.differ") / "data" / "words.yaml"
_ROLES = {
    "negation": NEGATES,
    "idioms": IDIOM,
    "corrections": CORRECTS,
}
_CALENDAR = ("weekdays", "months", "days")
_MAX_NUMBER = 10**12
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_unspaced = cache(unspaced_table)


@dataclass
class _Entry:
    roles: int = 0
    number: int = -1
    senses: list[int] = field(default_factory=list)


@dataclass
class _Lists:
    entries: defaultdict[str, _Entry] = field(default_factory=lambda: defaultdict(_Entry))
    numerals: dict[str, int] = field(default_factory=dict)
    light: set[str] = field(default_factory=set)
    kinds: int = CALENDAR_KINDS

    def add(self, lists: Mapping[str, Any]) -> None:
        """Add the lists of one language."""
        for phrase in _phrases(lists.get("light", "")):
            if len(phrase) == 1 and _unspaced()[ord(phrase)]:
                self.light.add(phrase)
            else:
                self.entries[phrase].roles |= LIGHT
        for name, role in _ROLES.items():
            for phrase in _phrases(lists.get(name, "")):
                self.entries[phrase].roles |= role
        for phrase, value in lists.get("numbers", {}).items():
            self.entries[phrase].number = value
            self.entries[phrase].roles |= NUMERAL
        self.numerals |= lists.get("numerals", {})
        for kind, name in enumerate(_CALENDAR):
            self._exclude(kind, lists.get(name, []))
        for pair in lists.get("opposites", []):
            self._exclude(self.kinds, pair.split("/"))
            self.kinds += 1

    def _exclude(self, kind: int, sides: Iterable[str]) -> None:
        for number, side in enumerate(sides):
            for phrase in _phrases(side):
                self.entries[phrase].senses.append(kind << 8 | number)
                self.entries[phrase].roles |= EXCLUDES


def _phrases(text: str) -> list[str]:
    return text.split()


@cache
def phrases_of(words: str = "") -> Phrases:
    """The tables of the built-in lists and a user's lists together.

    words: YAML in the form of `data/words.yaml`: the lists of one language, or of several languages by name
    raises: UsageError for a list that cannot be used; the message names the list
    """
    lists = _Lists()
    for language in yaml.load(_OWN.read_text(encoding="utf-8"), _Loader).values():
        lists.add(language)
    for language in _of_user(words):
        lists.add(language)
    return _tables(lists)


_TEXTS = frozenset({"light", *_ROLES})
_SIDES = frozenset({*_CALENDAR, "opposites"})
_NUMBERS = frozenset({"numbers", "numerals"})
_KNOWN = _TEXTS | _SIDES | _NUMBERS


def _of_user(words: str) -> list[Mapping[str, Any]]:
    try:
        read = yaml.load(words, _Loader)
    except yaml.YAMLError as error:
        raise UsageError(f"is not YAML: {' '.join(str(error).split())}") from error
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
    """Check that a list has the form of those in `data/words.yaml`. raises: UsageError"""
    if name not in _KNOWN:
        raise UsageError(f"holds {name!r:.40}; known are {', '.join(sorted(_KNOWN))}")
    if name in _TEXTS:
        fits, wanted = isinstance(entries, str), "words with blanks between"
    elif name in _SIDES:
        fits = isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)
        wanted = "a list of texts"
    else:
        fits = isinstance(entries, dict) and all(
            isinstance(word, str) and isinstance(value, int) and 0 <= value <= _MAX_NUMBER
            for word, value in entries.items()
        )
        wanted = "words with their whole numbers"
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
    for name in names:
        if _unspaced()[ord(name[0])]:
            if len(name) > MAX_PHRASE:
                raise UsageError(f"{name!r} has more than {MAX_PHRASE} characters")
            begins = lists.entries[name].roles & (NEGATES | EXCLUDES | CORRECTS)
            classes[ord(name[0])] |= begins | 1 << (LENGTHS_SHIFT + len(name) - 1)
    entries = [lists.entries[name] for name in names]
    keys = np.array([key_of(name) for name in names], np.uint64)
    return Phrases(
        classes,
        worth,
        _cells(keys),
        keys,
        np.array([entry.roles for entry in entries], np.uint16),
        np.array([entry.number for entry in entries], np.int64),
        np.array([sense for entry in entries for sense in entry.senses], np.int64),
        np.concatenate(([0], np.cumsum([len(entry.senses) for entry in entries]))).astype(np.int64),
    )


def _cells(keys: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The hash table (open addressing) in which `find` looks keys up: row + 1, or 0 for an empty cell."""
    size = 1 << (4 * len(keys)).bit_length()
    cells = np.zeros(size, np.int64)
    for row, key in enumerate(keys.tolist()):
        cell = (key * int(GOLDEN) & (1 << 64) - 1) >> 32 & (size - 1)
        while cells[cell]:
            cell = (cell + 1) & (size - 1)
        cells[cell] = row + 1
    return cells
