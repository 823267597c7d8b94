"""Writes the file `zh_names.yaml` of the lists of words: Chinese nouns and names that hold a light character.

    python -m scripts.chinese_names

source: dict.txt of jieba 0.42.1 (MIT licence), which gives each word its frequency and part of speech
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import jieba
import yaml

from twinsieve.stages import differ

_WORDS = Path(differ.__path__[0]) / "data" / "words"
_NAMES = frozenset({"nr", "ns", "nt", "nz", "nrt", "nrfg"})
"""Parts of speech: names of persons, places, organisations, foreigners, and others; n is a noun."""
_PARTICLES = frozenset("们我你您他她它咱俺这那哪些就都也还又很更最再只便则于之其此该何谁怎如啥什以而却且及")
"""A noun with one of these is mostly an adverb with a wrong label (全都, 于今)."""
_LEAST, _MOST = 20, 6000
"""Rarer words are mostly fragments of names; more frequent ones are words of any text (社会, 时候)."""
_HEAD = """\
# Nouns and names of two or three characters of which one alone is not light. Written by
# `python -m scripts.chinese_names` from dict.txt of jieba 0.42.1 (MIT licence): frequency {} to {}.
names: >-
"""


def names(light: frozenset[str]) -> list[str]:
    """The words of jieba's dictionary that are names, sorted. light: the light characters"""
    lines = (Path(jieba.__file__).parent / "dict.txt").read_text(encoding="utf-8").splitlines()
    found = set()
    for word, frequency, kind in map(str.split, lines):
        heavy = sum(char not in light for char in word)
        is_name = kind in _NAMES or (kind == "n" and not _PARTICLES & set(word))
        if is_name and len(word) in (2, 3) and heavy == 1 and _LEAST <= int(frequency) <= _MOST:
            found.add(word)
    return sorted(found)


def main() -> None:
    """Write the file."""
    lists = yaml.safe_load((_WORDS / "zh.yaml").read_text(encoding="utf-8"))
    text = fill(
        " ".join(names(frozenset(lists["light"].split()))), 58, initial_indent="  ", subsequent_indent="  "
    )
    (_WORDS / "zh_names.yaml").write_text(_HEAD.format(_LEAST, _MOST) + text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
