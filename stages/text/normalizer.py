"""`Normalizer`: turns whole batches of raw strings into `Bodies`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Bodies
from twinsieve.stages.rows.strings import Strings
from twinsieve.stages.text.code_point_tables import GROWS, tables
from twinsieve.stages.text.compatibility import nfkc, pack, unpack
from twinsieve.stages.text.keys import BodyColumns, write_keys
from twinsieve.stages.text.profiles import apply_profile
from twinsieve.stages.text.references import MAX_REFERENCES, find_references, new_references
from twinsieve.stages.text.rules import DropRules, TextConfig
from twinsieve.stages.text.signs import sign_table

CHUNK_CHARS = 1 << 18
"""Number of characters that are processed at once. It limits the temporary memory, and keeps the data in the
processor's cache."""

_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]{1,31});")
_ENTITY_IN_UTF8 = re.compile(_ENTITY.pattern.encode())
_MAX_DIGITS = 9
"""Number of digits that are read of a numeric entity; a number with more digits is no character."""


def unescaped(texts: Sequence[str]) -> Sequence[str]:
    """The texts in which each HTML entity that ends with a semicolon is replaced by its characters, once.

    `html.unescape` does the same, but also replaces some names without a semicolon. Those stay here, because
    "&copy=2" is part of an address. The names are those of HTML 5; the list is final
    (tests/stages/text/test_entities.py checks it).

    >>> unescaped(["Tom &amp; Jerry don&#39;t &amp;lt;", "?a=1&copy=2 &nothing;"])
    ["Tom & Jerry don't &lt;", '?a=1&copy=2 &nothing;']
    """
    if isinstance(texts, Strings):
        if b"&" not in texts.content:
            return texts
        # An entity has no NUL, and stands for none, so the texts stay apart.
        return Strings(_ENTITY_IN_UTF8.sub(_utf8_of, texts.content), len(texts))
    # One search over all texts first: few streams contain entities, and those that do have them in few texts.
    if "&" not in "".join(texts):
        return texts
    return [
        _ENTITY.sub(lambda entity: _characters(entity[0]), text) if "&" in text else text for text in texts
    ]


def _utf8_of(entity: re.Match[bytes]) -> bytes:
    return _characters(entity[0].decode()).encode()


def _characters(spelling: str) -> str:
    """The characters for which an entity stands."""
    # Only now, because few streams have entities, and the list of all names takes a part of each start.
    from html import unescape
    from html.entities import html5

    if spelling[1] != "#":
        return html5.get(spelling[1:], spelling)
    digits, base = (spelling[3:-1], 16) if spelling[2] in "xX" else (spelling[2:-1], 10)
    return unescape(f"&#{int(digits.lstrip('0')[:_MAX_DIGITS] or '0', base)};")


class Normalizer:
    """Makes bodies, the normalised texts that are compared, by one configuration. The body of a text depends
    on no other text."""

    def __init__(self, config: TextConfig) -> None:
        self._microblog = config.profile == "microblog"
        self._product = config.body_rule == "product"
        self._compare = config.compare
        self._drop_rules = DropRules(config.drop, config.fold_variants)

    def bodies(self, texts: Sequence[str]) -> Bodies:
        """Body and key text of each text, in order. Every `str` has a result; none raises an error.

        The key text depends on the body rule:
        - `product`: it is the body. For a body below MIN_NEAR_LENGTH characters, it is the body with its
          symbols (emoji, skin tones, currency and other marks of Unicode category S; not variation selectors,
          joiners and punctuation), so that 👍 and 👎 differ. If that is empty, or if all letters were in
          dropped tags, links and names, it is the raw text.
        - `letters`: it is the body, or the raw text if the body is empty.

        In raw text, U+FFFD replaces lone surrogates. If `compare` selects references, they follow after the
        body, but not after raw text; `exact_only` does not depend on them. Under `product`, HTML entities are
        replaced first (`unescaped`), also in raw text.

        Time and memory for a row are linear in its length, and its result does not depend on its batch.

        >>> bodies = Normalizer(TextConfig()).bodies(["#战疫# １.5万例，加油！//@某人: 好", "👍", "#战疫#"])
        >>> [bodies.text(row) for row in range(3)], bodies.body_lengths.tolist()
        (['1.5万例加油好', '👍', '#战疫#'], [8, 0, 0])
        """
        chars, starts = pack(unescaped(texts) if self._product else texts)
        parts = [
            self._chunk(chars[starts[first] : starts[last]], starts[first : last + 1] - starts[first])
            for first, last in pairwise(_cuts(starts))
        ]
        return parts[0] if len(parts) == 1 else Bodies.concat(parts)

    def _chunk(self, raw: NDArray[np.uint32], raw_starts: NDArray[np.int64]) -> Bodies:
        lookups = tables()
        rows = len(raw_starts) - 1
        text = nfkc(raw, raw_starts)
        if self._drop_rules:
            text = nfkc(*pack(self._drop_rules.apply(unpack(text))))
        references = new_references(self._compare, text.starts)
        if references.kinds:
            find_references(text.chars, self._microblog, lookups.properties, references)
        ends = np.empty(rows, dtype=np.int64)
        apply_profile(text.chars, text.starts, text.bits, self._microblog, lookups.properties, ends)
        lengths = np.diff(text.starts)
        growing = text.bits & np.uint32(GROWS) != 0
        room = int(np.maximum(np.where(growing, 3 * lengths, lengths), np.diff(raw_starts)).sum())
        room += 2 * int(np.minimum(references.counts, MAX_REFERENCES).sum())
        scratch = np.empty(3 * int(lengths[growing].max(initial=0)), dtype=np.uint32)
        columns = BodyColumns(
            chars=np.empty(room, dtype=np.uint32),
            starts=np.empty(rows + 1, dtype=np.int64),
            word_starts=np.empty(room, dtype=np.uint8),
            body_lengths=np.empty(rows, dtype=np.int32),
            own_lengths=np.empty(rows, dtype=np.int32),
            exact_only=np.empty(rows, dtype=np.bool_),
            signs=np.empty(rows, dtype=np.uint32),
        )
        write_keys(
            text, ends, raw, raw_starts, self._product, lookups, sign_table(), references, scratch, columns
        )
        used = columns.starts[-1]
        bodies = Bodies(*columns)
        bodies.chars = bodies.chars[:used]
        bodies.word_starts = bodies.word_starts[:used]
        return bodies


def _cuts(starts: NDArray[np.int64]) -> list[int]:
    """The first row of each chunk of about CHUNK_CHARS characters; at the end the number of rows.

    starts: int64[n + 1], where each row begins
    """
    rows = len(starts) - 1
    cuts = [0]
    while cuts[-1] < rows:
        # A chunk has at least one row, however long the row is.
        full = int(np.searchsorted(starts, starts[cuts[-1]] + CHUNK_CHARS, side="right")) - 1
        cuts.append(max(cuts[-1] + 1, full))
    return cuts if rows else [0, 0]
