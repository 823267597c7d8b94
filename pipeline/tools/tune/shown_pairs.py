"""The drawn pairs as a reader sees them: names, differences marked, and what each curve would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from twinsieve.pipeline.pages.excerpt import Piece, excerpt
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair, batch_of_pairs, verdicts_of
from twinsieve.pipeline.tools.tune.label_pairs import Candidate
from twinsieve.pipeline.tools.tune.sample import Sample
from twinsieve.pipeline.tools.tune.sweep import Curve, by_scheme, config_at

_SHARED_PAIRS = 6
"""How many pairs name a set of pairs: the first ones, which a longer draw of the same sample has too."""


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
            verdicts = verdicts_of(pairs, both, config_at(curve, similarity, ""))
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
