"""The drawn pairs as a reader sees them: names, differences marked, and what each curve would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from twinsieve.pipeline.pages.differing import alike_at_ends, parts_of
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair, batch_of_pairs, verdicts_of
from twinsieve.pipeline.tools.tune.label_pairs import Candidate
from twinsieve.pipeline.tools.tune.sample import Sample
from twinsieve.pipeline.tools.tune.sweep import Curve, by_scheme, config_at

_SHARED_PAIRS = 6
"""How many pairs name a set of pairs: the first ones, which a longer draw of the same sample has too."""
_MAX_COMPARED = 800
"""The most characters of each side that are shown between what both begin and end with."""
_LONGEST_ALIKE = 240
_AROUND = 80


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of two texts, or a gap.

    left, right: the part in each text; same: whether it has the same words in both
    hidden_left, hidden_right: for a gap, how many characters of each text are not shown; the rest is ""
    """

    left: str
    right: str
    same: bool
    hidden_left: int = 0
    hidden_right: int = 0


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair for a reader.

    later, earlier: names of both rows in a file of labels
    similarity: out of SIMILARITY_SCALE
    fates: what each curve does with the later message, if the earlier one was kept: (curve, words)
    label: the label that it has already, or ""
    """

    later: str
    earlier: str
    similarity: int
    pieces: list[Piece]
    fates: list[tuple[str, str]]
    label: str


def shown_pairs(
    sample: Sample,
    drawn: Sequence[Candidate],
    curves: Sequence[Curve],
    similarity: int,
    labels: Mapping[frozenset[str], str],
) -> list[ShownPair]:
    """The drawn pairs, in their order.

    similarity: at which the curves judge, out of SIMILARITY_SCALE
    labels: known labels, by the names of both rows
    """
    names = sample.label_names(row for pair in drawn for row in (pair.later, pair.earlier))
    pairs = [JudgedPair("", names[pair.later], names[pair.earlier], "unsure") for pair in drawn]
    texts = {name: sample.text(position) for position, name in names.items()}
    fates: list[list[tuple[str, str]]] = [[] for _ in pairs]
    for configured, using in by_scheme(curves).items() if pairs else ():
        both = batch_of_pairs(pairs, texts, configured)
        for curve in using:
            verdicts = verdicts_of(pairs, both, config_at(curve, similarity))
            for of_pair, verdict in zip(fates, verdicts, strict=True):
                why = f" ({verdict.reason.words})" if verdict.reason else ""
                of_pair.append((curve.name, "dropped" if verdict.dropped else f"kept{why}"))
    return [
        ShownPair(
            pair.later,
            pair.earlier,
            candidate.similarity,
            excerpt(texts[pair.earlier], texts[pair.later]),
            of_pair,
            labels.get(frozenset((pair.later, pair.earlier)), ""),
        )
        for pair, candidate, of_pair in zip(pairs, drawn, fates, strict=True)
    ]


def name_of_draw(sample: Sample, drawn: Sequence[Candidate]) -> str:
    """16 hex digits, the same for a shorter and a longer draw of one sample: a browser keeps labels by it."""
    digest = sha256()
    for pair in drawn[:_SHARED_PAIRS]:
        for position in (pair.later, pair.earlier):
            digest.update(f"{position}\n{sample.text(position)}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def excerpt(left: str, right: str) -> list[Piece]:
    """Both texts as pieces, in order. What both begin and end with is found in texts of any length; between
    that, only the first _MAX_COMPARED characters of each are shown.

    >>> [(piece.left, piece.right) for piece in excerpt("12 dead", "13 dead")]
    [('12', '13'), (' dead', ' dead')]
    >>> [(len(piece.left), piece.hidden_left) for piece in excerpt("so " * 400, "so " * 400 + "b")]
    [(80, 0), (0, 1040), (80, 0), (0, 0)]
    """
    begin, end = alike_at_ends(left, right)
    middle_left, middle_right = left[begin : len(left) - end], right[begin : len(right) - end]
    pieces = list(_shortened(left[:begin], left[:begin]))
    for part in parts_of(middle_left, middle_right, _MAX_COMPARED):
        pieces += _shortened(part.left, part.right) if part.same else [Piece(*part)]
    hidden_left = max(0, len(middle_left) - _MAX_COMPARED)
    hidden_right = max(0, len(middle_right) - _MAX_COMPARED)
    if hidden_left or hidden_right:
        pieces.append(Piece("", "", same=False, hidden_left=hidden_left, hidden_right=hidden_right))
    same = left[len(left) - end :]
    return [*pieces, *_shortened(same, same)]


def _shortened(left: str, right: str) -> Iterator[Piece]:
    """A part with the same words in both texts: whole, or its beginning and its end."""
    if min(len(left), len(right)) > _LONGEST_ALIKE:
        yield Piece(left[:_AROUND], right[:_AROUND], same=True)
        yield Piece("", "", True, len(left) - 2 * _AROUND, len(right) - 2 * _AROUND)
        left, right = left[-_AROUND:], right[-_AROUND:]
    if left or right:
        yield Piece(left, right, same=True)
