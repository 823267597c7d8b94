"""Freezes what the text stage knows of Unicode: `python -m scripts.unicode_tables`.

Reads the pinned package unicodedata2, whose version is Unicode's, and writes the file that
`stages.text.unicode` reads. Any Python from 3.11 on writes the same content, which a test checks:

category, decimal digits, combining classes, decompositions, NFKC: unicodedata2
letters and digits (`str.isalnum()`): category L*, or a numeric value
blanks (`str.isspace()`): category Zs, or bidirectional class WS, B or S
case folding: `str.casefold()` of this Python, for characters that its own database has. Unicode promises
    that the folding of an assigned character never changes. A letter that is newer than this Python's
    database folds, if its name says CAPITAL, to the letter of the same name that says SMALL.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import unicodedata2
from numpy.typing import NDArray

from twinsieve.stages.text.unicode import (
    CATEGORIES,
    DATA_FILE,
    IS_ALNUM,
    IS_DECIMAL,
    IS_SPACE,
    UNICODE_VERSION,
)

CODE_POINTS = 0x110000
_HANGUL = range(0xAC00, 0xD7A4)
_SURROGATES = range(0xD800, 0xE000)
DATA = Path(__file__).parents[1] / "stages" / "text" / DATA_FILE


def folded(char: str) -> str:
    """Full case folding of one character."""
    if unicodedata.category(char) != "Cn":
        return char.casefold()
    name = unicodedata2.name(char, "")
    if unicodedata2.category(char) != "Lu":
        return char
    return str(unicodedata2.lookup(name.replace("CAPITAL LETTER", "SMALL LETTER")))


def kind(char: str) -> int:
    """Category and bits of one character, as `stages.text.unicode` reads them."""
    category = unicodedata2.category(char)
    found: int = CATEGORIES.index(category)
    if category[0] == "L" or unicodedata2.numeric(char, None) is not None:
        found |= IS_ALNUM
    if unicodedata2.decimal(char, None) is not None:
        found |= IS_DECIMAL
    if category == "Zs" or unicodedata2.bidirectional(char) in ("WS", "B", "S"):
        found |= IS_SPACE
    return found


def _runs(name: str, values: list[int]) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Length and value of each run of equal values."""
    every = np.array(values)
    begins = np.flatnonzero(np.r_[True, every[1:] != every[:-1]])
    yield f"{name}_lengths", np.diff(begins, append=len(every)).astype(np.uint32)
    yield f"{name}_values", every[begins].astype(np.uint16)


def _changes(name: str, changes: dict[int, str]) -> Iterator[tuple[str, NDArray[np.generic]]]:
    """Code points that change, and into what."""
    texts = list(changes.values())
    yield f"{name}_codes", np.array(list(changes), dtype=np.uint32)
    yield f"{name}_lengths", np.array([len(text) for text in texts], dtype=np.uint8)
    yield f"{name}_texts", np.array([ord(char) for text in texts for char in text], dtype=np.uint32)


def tables() -> dict[str, NDArray[np.generic]]:
    """All arrays of the data file, by name."""
    assert unicodedata2.unidata_version == UNICODE_VERSION, unicodedata2.unidata_version
    every = [chr(code) for code in range(CODE_POINTS)]
    # Hangul syllables are composed and taken apart by rule.
    special = [char for char in every if ord(char) not in _HANGUL and ord(char) not in _SURROGATES]
    normal = {form: [unicodedata2.normalize(form, char) for char in special] for form in ("NFKC", "NFKD")}
    pairs = [
        (int(two[0], 16), int(two[1], 16), ord(char))
        for char in special
        for two in [unicodedata2.decomposition(char).split()]
        # NFC leaves alone what it composes; it takes apart what is excluded from composition.
        if len(two) == 2 and two[0][0] != "<" and unicodedata2.normalize("NFC", char) == char
    ]
    pairs.sort(key=lambda pair: (pair[1], pair[0]))
    return {
        **dict(_runs("kind", [kind(char) for char in every])),
        **dict(_runs("combining", [unicodedata2.combining(char) for char in every])),
        **dict(_changes("folding", {ord(c): folded(c) for c in special if folded(c) != c})),
        **dict(_changes("nfkc", {ord(c): n for c, n in zip(special, normal["NFKC"], strict=True) if n != c})),
        **dict(_changes("nfkd", {ord(c): n for c, n in zip(special, normal["NFKD"], strict=True) if n != c})),
        "pairs": np.array(pairs, dtype=np.uint32),
    }


def main() -> None:
    np.savez_compressed(DATA, **tables())
    print(f"{DATA}: Unicode {UNICODE_VERSION}, {DATA.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
