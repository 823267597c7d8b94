"""Stop words learnt from texts: the words that stand in many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from twinsieve.stages.contract import Bodies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.dropped import without
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.segmenter import Segmenter


def train_stop_words(
    batches: Iterable[Bodies], config: FeatureConfig, share: float = 0.5, min_texts: int = 100
) -> list[str]:
    """The words that stand in at least this share of the texts, most frequent first, then by code points.

    Texts are the rows of the near stage. Words are those that may be keywords by `config`, but without stop
    words.
    raises: UsageError if there are fewer texts than min_texts
    """
    segmenter = Segmenter(replace(config, stop_words="none", own_stop_words=()))
    texts: Counter[str] = Counter()
    total = 0
    for batch in batches:
        bodies = without(batch, config.drop)
        for row in np.flatnonzero(~bodies.exact_only):
            total += 1
            texts.update(set(segmenter.words(bodies, int(row))))
    if total < min_texts:
        raise UsageError(
            f"{total:,} texts to learn stop words from, but {min_texts:,} are needed (--min-texts); "
            "give more texts, each of 8 characters or more"
        )
    # As it is written: 0.1 × 30 is 3.
    least = Fraction(str(share)) * total
    return sorted((word for word in texts if texts[word] >= least), key=lambda word: (-texts[word], word))
