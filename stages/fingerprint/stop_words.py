"""Learns stop words from texts: the words that occur in many of the texts."""

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
    """The words that occur in at least this share of the texts, most frequent first, then by code points.

    Only rows of the near stage count as texts (not exact-only rows). A word counts if it may be a keyword by
    `config`; the stop words in `config` are ignored, so these words count too.
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
    # Compute with the decimal number as it is written, so that 0.1 × 30 is exactly 3. The float 0.1 is a
    # little more than 0.1, and as a fraction would give a little more than 3.
    least = Fraction(str(share)) * total
    return sorted((word for word in texts if texts[word] >= least), key=lambda word: (-texts[word], word))
