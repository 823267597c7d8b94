"""Compute which rows an ideal filter would drop, from a file of true pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from twinsieve.pipeline.files.source import InputSource
from twinsieve.stages.contract import SIMILARITY_SCALE
from twinsieve.stages.errors import UsageError

HEADER = "later\tearlier\tsimilarity\tkind"
_KINDS = ("raw", "body", "near")


@dataclass(frozen=True, slots=True)
class Pair:
    """The ids of two similar rows of one file; `later` comes after `earlier`.

    similarity: out of SIMILARITY_SCALE
    equal: whether the texts are byte-identical or their bodies are equal
    """

    later: str
    earlier: str
    similarity: int
    equal: bool


@dataclass(frozen=True, slots=True)
class Truth:
    """The result of an ideal leader pass for each row of a file, in file order.

    leaders: number of the kept row that the row repeats (the most similar one, then the oldest); -1: kept
    similarities: similarity to that leader, out of SIMILARITY_SCALE; -1 for a kept row
    seen_before: whether an earlier row, kept or not, has an equal body: exact comparison would find it
    """

    leaders: list[int]
    similarities: list[int]
    seen_before: list[bool]


def read_pairs(path: Path) -> list[Pair]:
    """All pairs of a tab-separated file, plain or packed, with the header `later earlier similarity kind`.

    raises: UsageError, which names path and line, for another format; FileError if the file cannot be read
    """
    lines = read_lines(path)
    if not lines or lines[0] != HEADER:
        names = ", ".join(HEADER.split())
        labels = "; give labels with --judged FILE" if lines and "label" in lines[0] else ""
        raise UsageError(
            f"{path}:1: is not a file of pairs; its first line must name the columns {names}, "
            f"with tabs between{labels}"
        )
    return [_pair(line, f"{path}:{number}") for number, line in enumerate(lines[1:], start=2)]


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, plain or packed (as .gz or .zst), without line ends.

    raises: FileError if the file cannot be read to its end; UsageError, which names a line that is not UTF-8
    """
    with InputSource(str(path)) as source:
        lines = b"".join(source.blocks()).split(b"\n")
    if not lines[-1]:
        lines.pop()
    try:
        return [line.removesuffix(b"\r").decode() for line in lines]
    except UnicodeDecodeError as error:
        number = lines.index(next(line for line in lines if error.object in (line, line.removesuffix(b"\r"))))
        raise UsageError(f"{path}:{number + 1}: is not UTF-8 ({error.reason}); convert the file") from error


def _pair(line: str, place: str) -> Pair:
    cells = line.split("\t")
    if len(cells) != 4:
        raise UsageError(f"{place}: {len(cells)} columns, expected 4 (later, earlier, similarity, kind)")
    later, earlier, similarity, kind = cells
    if kind not in _KINDS:
        raise UsageError(f"{place}: kind {kind!r} is not one of {', '.join(_KINDS)}")
    value = -1
    with suppress(ValueError, OverflowError):
        value = round(float(similarity) * SIMILARITY_SCALE)
    if not 0 <= value <= SIMILARITY_SCALE:
        raise UsageError(f"{place}: similarity {similarity!r} is not a number from 0 to 1")
    return Pair(later, earlier, value, kind != "near")


def ideal_pass(ids: Sequence[str], pairs: Iterable[Pair], similarity: int) -> Truth:
    """The ideal leader pass: a row is dropped if and only if an earlier *kept* row matches it.

    ids: unique, in file order. Pairs with other ids are ignored, so `ids` may be the start of a file
    similarity: out of SIMILARITY_SCALE; near pairs match from this similarity on, equal pairs always
    raises: UsageError if an id is not unique, or if `later` of a pair does not come after `earlier`

    >>> pairs = [Pair("b", "a", 9000, False), Pair("c", "b", 9000, False), Pair("c", "a", 8000, False)]
    >>> ideal_pass(["a", "b", "c"], pairs, 8500).leaders
    [-1, 0, -1]
    >>> ideal_pass(["a", "b", "c"], pairs, 8000).leaders
    [-1, 0, 0]
    """
    numbers = {name: number for number, name in enumerate(ids)}
    if len(numbers) != len(ids):
        twice = next(name for number, name in enumerate(ids) if numbers[name] != number)
        raise UsageError(f"id {twice!r} occurs twice in the input; pairs need unique ids")
    matches: list[list[tuple[int, int]]] = [[] for _ in ids]
    seen_before = [False] * len(ids)
    for pair in pairs:
        later, earlier = numbers.get(pair.later), numbers.get(pair.earlier)
        if later is None or earlier is None:
            continue
        if earlier >= later:
            raise UsageError(
                f"pair {pair.later!r} {pair.earlier!r}: the later row comes first in the input; swap them"
            )
        if pair.equal:
            seen_before[later] = True
        if pair.equal or pair.similarity >= similarity:
            matches[later].append((-pair.similarity, earlier))
    leaders, similarities = [-1] * len(ids), [-1] * len(ids)
    for row, row_matches in enumerate(matches):
        kept = [match for match in row_matches if leaders[match[1]] < 0]
        if kept:
            negative, leaders[row] = min(kept)
            similarities[row] = -negative
    return Truth(leaders, similarities, seen_before)


def covered_rows(ids: Sequence[str], pairs: Iterable[Pair]) -> int:
    """Number of rows that the pairs cover: from the first row of the file to the last row that a pair names.

    >>> covered_rows(["a", "b", "c", "d"], [Pair("c", "a", 9000, False)])
    3
    """
    named = {name for pair in pairs for name in (pair.later, pair.earlier)}
    return max((number for number, name in enumerate(ids, start=1) if name in named), default=0)
