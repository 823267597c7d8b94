"""Pairs in which one word, number or sign is the message, and pairs that only look so.

`kinds/` has a file a kind, written blind, before the rules that it examines: half of its pairs are `same`, half
are not in English (contractions are English alone). Two pairs of four were looked at while the rules were
written; the other two were only counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.accuracy.labels import configured
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair, judge_pairs

_FOLDER = Path(__file__).with_name("kinds")
KINDS = tuple(sorted(file.stem for file in _FOLDER.glob("*.tsv")))


class WrittenPair(NamedTuple):
    """A pair of a kind. number: from 0 on, in its file; dropped: what this version does"""

    number: int
    same: bool
    language: str
    earlier: str
    later: str
    dropped: bool

    @property
    def as_wanted(self) -> bool:
        """Whether it is dropped because it is the same, or kept because it is not."""
        return self.same == self.dropped

    @property
    def counted_only(self) -> bool:
        """Whether nobody looked at the pair while the rules were written."""
        return self.number % 4 > 1


def written_pairs(kind: str, profile: str = "default") -> list[WrittenPair]:
    """The pairs of a kind, each judged in a scope of its own."""
    lines = (_FOLDER / f"{kind}.tsv").read_text("utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    texts = {f"{n}{side}": row[k] for n, row in enumerate(rows) for k, side in ((2, "a"), (3, "b"))}
    pairs = [JudgedPair(kind, f"{n}b", f"{n}a", "unsure") for n in range(len(rows))]
    verdicts = judge_pairs(pairs, texts, *configured(profile))
    return [
        WrittenPair(n, want == "same", language, earlier, later, verdict.dropped)
        for n, ((want, language, earlier, later), verdict) in enumerate(zip(rows, verdicts, strict=True))
    ]
