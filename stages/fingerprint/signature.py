"""Signatures: a message as a set of at most 16 hashes of its parts, which duplicates have in common.

source: the recipes of docs/CLASSICS.md; I-Match: Chowdhury, Frieder, Grossman, McCabe 2002
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Bodies
from twinsieve.stages.fingerprint.digest_config import SignatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.idf import fixed_point
from twinsieve.stages.fingerprint.mixing import hash_64
from twinsieve.stages.fingerprint.packed_features import PackedFeatures

_SENTENCE_END = r"[。！？!?\n\r]|\.(?=[ \t\n\r\v\f\u3000]|\Z)"
_LINE_END = r"[\n\r]"


class Signer:
    """Makes the part hashes of messages; the same ones for the same settings, in any process and any batch.

    fingerprinter: knows the IDF of features; normalise: makes bodies of texts, for sentences
    """

    def __init__(
        self,
        config: SignatureConfig,
        fingerprinter: Fingerprinter,
        normalise: Callable[[list[str]], Bodies],
    ) -> None:
        self._config = config
        self._fingerprinter = fingerprinter
        self._normalise = normalise

    def part_hashes(
        self, bodies: Bodies, texts: Sequence[str], features: Callable[[], PackedFeatures]
    ) -> NDArray[np.uint64]:
        """uint64[n, parts]: distinct hashes of each row, ascending, then zeros.

        Exact-only rows have none, nor has a row without a feature or sentence that counts.
        features: gives `Fingerprinter.packed_features` of the rows
        """
        match self._config.kind:
            case "top_features":
                found = self._top_features(features())
            case "imatch":
                found = self._in_band(features())
            case "sentences":
                found = self._sentences(bodies, texts)
            case "segments":
                found = self._segments(bodies, texts)
        rows = np.zeros((len(bodies), self._config.parts), np.uint64)
        joined = self._config.joined or self._config.kind == "imatch"
        for row, hashes in enumerate(found):
            distinct = sorted(set(hashes))
            if distinct and not bodies.exact_only[row]:
                if joined:
                    distinct = [_hash(np.array(distinct, "<u8").tobytes())]
                rows[row, : len(distinct)] = distinct
        return rows

    def _top_features(self, packed: PackedFeatures) -> Iterator[list[int]]:
        for low, high in pairwise(packed.starts.tolist()):
            heaviest = np.argsort(-packed.weights[low:high], kind="stable")[: self._config.hashes]
            yield [feature or 1 for feature in packed.features[low:high][heaviest].tolist()]

    def _in_band(self, packed: PackedFeatures) -> Iterator[list[int]]:
        idf = self._fingerprinter.idf_of(packed.features)
        counts = idf >= fixed_point(self._config.commonest)
        if self._config.rarest is not None:
            counts &= idf <= fixed_point(self._config.rarest)
        for low, high in pairwise(packed.starts.tolist()):
            yield packed.features[low:high][counts[low:high]].tolist()

    def _sentences(self, bodies: Bodies, texts: Sequence[str]) -> Iterator[list[int]]:
        for sentences in self._cut(bodies, texts, _SENTENCE_END):
            longest = sorted(sentences, key=lambda sentence: -sentence[0])[: self._config.hashes]
            yield [_hash(content) for _, content in longest]

    def _segments(self, bodies: Bodies, texts: Sequence[str]) -> Iterator[list[int]]:
        count = self._config.hashes
        if self._config.cut == "length":
            for row in range(len(bodies)):
                start, length = int(bodies.starts[row]), int(bodies.body_lengths[row])
                ends = [start + -(-number * length // count) for number in range(count + 1)]
                yield [_hash(_content(bodies.chars[a:b])) for a, b in pairwise(ends) if a < b]
            return
        end = _SENTENCE_END if self._config.cut == "sentences" else _LINE_END
        for sentences in self._cut(bodies, texts, end):
            yield [_hash(content) for content in _grouped(sentences, count)]

    def _cut(self, bodies: Bodies, texts: Sequence[str], end: str) -> Iterator[list[tuple[int, bytes]]]:
        """The sentences of each row, each normalised by itself: (characters of its body, its key text)."""
        cut = [
            [] if exact_only else _pieces(text, end)
            for text, exact_only in zip(texts, bodies.exact_only.tolist(), strict=True)
        ]
        made = self._normalise([piece for pieces in cut for piece in pieces])
        lengths, starts = made.body_lengths.tolist(), made.starts.tolist()
        first = 0
        for pieces in cut:
            rows = range(first, first + len(pieces))
            first += len(pieces)
            yield [
                (lengths[row], _content(made.chars[starts[row] : starts[row + 1]]))
                for row in rows
                if lengths[row] > 0
            ]


def _hash(content: bytes) -> int:
    """64 bits, never 0."""
    return hash_64(content) or 1


def _pieces(text: str, end: str) -> list[str]:
    """The text between ends, without them and without pieces that are empty.

    >>> _pieces("一。二！！ It costs 3.50. Yes", _SENTENCE_END)
    ['一', '二', ' It costs 3.50', ' Yes']
    """
    return [piece for piece in re.split(end, text) if piece]


def _content(chars: NDArray[np.uint32]) -> bytes:
    return np.ascontiguousarray(chars, "<u4").tobytes()


def _grouped(sentences: list[tuple[int, bytes]], count: int) -> Iterator[bytes]:
    """Sentences end to end in at most `count` segments.

    Segment j of N ends with the first sentence that reaches j/N of all characters.

    >>> list(_grouped([(5, b"a"), (3, b"b"), (2, b"c")], 2))
    [b'a', b'bc']
    """
    total = sum(length for length, _ in sentences)
    reached, number, segment = 0, 1, b""
    for length, content in sentences:
        reached += length
        segment += content
        if reached * count >= number * total:
            yield segment
            segment = b""
            number = reached * count // total + 1
