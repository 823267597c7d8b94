"""Which rows of a sample an ideal filter drops, from a file of true pairs: the standard for a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.tools.evaluate.judged import Share
from twinsieve.pipeline.tools.evaluate.truth import Pair, covered_rows, ideal_pass
from twinsieve.pipeline.tools.tune.sample import Sample
from twinsieve.stages.errors import UsageError


@dataclass(frozen=True, slots=True)
class Scored:
    """How well a point drops what the ideal filter drops, over the messages that the pairs cover."""

    precision: Share
    recall: Share

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 if both drop nothing."""
        both = self.precision.of + self.recall.of
        return 2 * self.precision.hits / both if both else 1.0


class IdealDrops:
    """The drops of the ideal filter (`ideal_pass`) at each similarity.

    messages: number of messages that the pairs cover, from the first message of the sample
    raises: UsageError if the pairs name no message of the sample, or if an id of the sample occurs twice
    """

    def __init__(
        self, sample: Sample, pairs: Sequence[Pair], similarities: Iterable[int], pairs_name: str
    ) -> None:
        ids = [name for _, name in sample.ids()]
        self.messages = covered_rows(ids, pairs)
        if not self.messages:
            raise UsageError(
                f"{pairs_name}: none of its ids is among the rows that are tried; give the pairs of this "
                "input, or name the field of its ids with --id-field"
            )
        covered = ids[: self.messages]
        inside = set(covered)
        pairs = [pair for pair in pairs if pair.later in inside and pair.earlier in inside]
        self._drops: dict[int, NDArray[np.bool_]] = {
            similarity: np.array(ideal_pass(covered, pairs, similarity).leaders) >= 0
            for similarity in similarities
        }

    def score(self, dropped: NDArray[np.bool_], similarity: int) -> Scored:
        """The score of drops at a similarity. dropped: bool[n], for each message of the sample"""
        own, ideal = dropped[: self.messages], self._drops[similarity]
        hits = int(np.count_nonzero(own & ideal))
        return Scored(
            Share(hits, int(np.count_nonzero(own))),
            Share(hits, int(np.count_nonzero(ideal))),
        )
