"""Generates made-up sentences in batches, from the word lists and sentence patterns in `data/`."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_DATA = files("twinsieve.pipeline.tools.generate") / "data"
_SPACED = frozenset({"en", "es", "ru"})


class Grammar:
    """The word lists ("slots") and sentence patterns of one language, as arrays to choose from.

    A pattern is a list of slot names and literal words; each slot name is replaced by a word of the slot.
    The slot NUM (numbers from 2 to 399) exists in every language. Words at the beginning of a slot are chosen
    more often.

    form: `generate` (sentences of posts) or another one, as `tweet`, which also uses the slots of `generate`
    folder: where the file of another form is
    slots: words by name of the slot; glue: what is put between two words
    """

    def __init__(self, language: str, form: str = "generate", folder: Traversable = _DATA) -> None:
        slots = {"NUM": [str(number) for number in range(2, 400)]}
        patterns: list[list[str]] = []
        for name in dict.fromkeys(("generate", form)):
            place = _DATA if name == "generate" else folder
            more_slots, patterns = _read(place.joinpath(f"{name}_{language}.txt"))
            slots |= more_slots
        self.slots = slots
        self.glue = " " if language in _SPACED else ""
        literals = {token for pattern in patterns for token in pattern} - slots.keys()
        lists = slots | {token: [token] for token in sorted(literals)}
        starts: dict[str, int] = {}
        words: list[str] = []
        for name, choices in lists.items():
            starts[name] = len(words)
            words += choices
        self._words = np.array(words, dtype=object)
        tokens = [token for pattern in patterns for token in pattern]
        self._first_word = np.array([starts[token] for token in tokens], dtype=np.int64)
        self._choices = np.array([len(lists[token]) for token in tokens], dtype=np.int64)
        self._lengths = np.array([len(pattern) for pattern in patterns], dtype=np.int64)
        self._begins = np.cumsum(self._lengths) - self._lengths
        means = [sum(map(len, lists[token])) / len(lists[token]) + len(self.glue) for token in tokens]
        self.mean_length = sum(means) / len(patterns)
        """Average number of characters of a sentence."""

    def texts(self, sentences: NDArray[np.int64], random: np.random.Generator) -> list[str]:
        """n texts with the given numbers of sentences.

        sentences: int64[n], each at least 1
        random: only its method `random` is used, which gives the same numbers with every version of NumPy
        """
        chosen = (random.random(int(sentences.sum())) * len(self._lengths)).astype(np.int64)
        lengths = self._lengths[chosen]
        ends = np.cumsum(lengths)
        tokens = np.arange(int(lengths.sum())) + np.repeat(self._begins[chosen] - (ends - lengths), lengths)
        luck = random.random(len(tokens))
        # The factor luck^1.5 makes words at the beginning of a slot more frequent. It is computed with a
        # square root, because powers are not rounded the same on every machine.
        rank = luck * np.sqrt(luck) * self._choices[tokens]
        words = self._words[self._first_word[tokens] + rank.astype(np.int64)].tolist()
        bounds = [0, *ends[np.cumsum(sentences) - 1].tolist()]
        glue = self.glue
        texts = [glue.join(words[a:b]) for a, b in pairwise(bounds)]
        return [_closed_up(text) for text in texts] if glue else texts


def _read(file: Traversable) -> tuple[dict[str, list[str]], list[list[str]]]:
    """Slots and patterns of one data file."""
    source = file.read_text(encoding="utf-8")
    slots: dict[str, list[str]] = {}
    patterns: list[list[str]] = []
    for line in source.splitlines():
        if line.startswith("= "):
            patterns.append(line[2:].split())
        elif line and not line.startswith("#"):
            slot, _, listed = line.partition(":")
            slots[slot] = [word.replace("_", " ") for word in listed.split()]
    return slots, patterns


def _closed_up(text: str) -> str:
    """The text without the blank before each punctuation mark.

    >>> _closed_up("a cat , really .")
    'a cat, really.'
    """
    for mark in ",.!?":
        text = text.replace(f" {mark}", mark)
    return text
