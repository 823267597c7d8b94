"""Bodies built by hand, for tests of fingerprints."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.contract import MIN_NEAR_LENGTH, Bodies


def bodies_of(texts: list[str], word_starts: list[str] | None = None) -> Bodies:
    """Bodies whose rows are these texts as they are; shorter ones than MIN_NEAR_LENGTH are exact-only.

    word_starts: per text a string of 0 and 1, one for each character; by default blanks are cut
        out of the text and words begin after them.
    """
    if word_starts is None:
        word_starts = []
        whole = texts
        texts = []
        for text in whole:
            texts.append(text.replace(" ", ""))
            marks = ["1" if i == 0 or text[i - 1] == " " else "0" for i, c in enumerate(text) if c != " "]
            word_starts.append("".join(marks))
    lengths = np.array([len(text) for text in texts], np.int32)
    points = [ord(c) for text in texts for c in text]
    return Bodies(
        chars=np.array(points, np.uint32),
        starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        word_starts=np.array([int(mark) for marks in word_starts for mark in marks], np.uint8),
        body_lengths=lengths,
        own_lengths=lengths.copy(),
        exact_only=lengths < MIN_NEAR_LENGTH,
        signs=np.zeros(len(lengths), np.uint32),
    )
