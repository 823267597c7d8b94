"""What an ideal filter would drop, from a file of true pairs."""

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
    """Two rows of one file that are alike; `later` stands after `earlier`.

    similarity: out of SIMILARITY_SCALE
    equal: the texts are byte-identical, or their bodies are equal
    """

    later: str
    earlier: str
    similarity: int
    equal: bool


@dataclass(frozen=True, slots=True)
class Truth:
    """The result of an ideal leader pass for each row of a file, in file order.

    leaders: row number of the kept row it is dropped for (most similar, then oldest), or -1: to be kept
    similarities: out of SIMILARITY_SCALE, to that leader; -1 where kept
    seen_before: an earlier row, kept or not, has an equal body (plain exact removal would find it)
    """

    leaders: list[int]
    similarities: list[int]
    seen_before: list[bool]


def read_pairs(path: Path) -> list[Pair]:
    """Every pair of a pairs file: `later earlier similarity kind` by tabs, with that header; plain or packed.

    raises: UsageError naming path and line, for anything but that format; FileError if it cannot be read
    """
    lines = read_lines(path)
    if not lines or lines[0] != HEADER:
        names = ", ".join(HEADER.split())
        labels = "; labels of readers are given with --judged FILE" if lines and "label" in lines[0] else ""
        raise UsageError(
            f"{path}:1: is not a file of pairs; its first line must name the columns {names}, "
            f"with tabs between{labels}"
        )
    return [_pair(line, f"{path}:{number}") for number, line in enumerate(lines[1:], start=2)]


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, plain, .gz or .zst, without their ends.

    raises: FileError if it cannot be read to its end; UsageError naming the line that is not UTF-8
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
    """The ideal leader pass: a row is to be dropped iff an earlier *kept* row matches it.

    ids: unique, in file order; pairs that name other rows are left out, so a prefix of a file may be judged
    similarity: out of SIMILARITY_SCALE; near pairs match from there on, equal ones always
    raises: UsageError if an id stands twice, or a pair's `later` does not come after its `earlier`

    >>> pairs = [Pair("b", "a", 9000, False), Pair("c", "b", 9000, False), Pair("c", "a", 8000, False)]
    >>> ideal_pass(["a", "b", "c"], pairs, 8500).leaders
    [-1, 0, -1]
    >>> ideal_pass(["a", "b", "c"], pairs, 8000).leaders
    [-1, 0, 0]
    """
    numbers = {name: number for number, name in enumerate(ids)}
    if len(numbers) != len(ids):
        twice = next(name for number, name in enumerate(ids) if numbers[name] != number)
        raise UsageError(f"id {twice!r} stands twice in the input; pairs need unique ids")
    matches: list[list[tuple[int, int]]] = [[] for _ in ids]
    seen_before = [False] * len(ids)
    for pair in pairs:
        later, earlier = numbers.get(pair.later), numbers.get(pair.earlier)
        if later is None or earlier is None:
            continue
        if earlier >= later:
            raise UsageError(
                f"pair {pair.later!r} {pair.earlier!r}: the later row stands first in the input; swap them"
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
    """How many first rows of a file the pairs cover: up to the last row they name.

    >>> covered_rows(["a", "b", "c", "d"], [Pair("c", "a", 9000, False)])
    3
    """
    named = {name for pair in pairs for name in (pair.later, pair.earlier)}
    return max((number for number, name in enumerate(ids, start=1) if name in named), default=0)
