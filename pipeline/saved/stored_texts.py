"""`stored_texts`: kept messages without the ends of long bodies, which no file holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twinsieve.stages.columns import starts_of
from twinsieve.stages.contract import STORED_LENGTH
from twinsieve.stages.judge.kept_messages import KeptMessages


def stored_texts(messages: KeptMessages) -> KeptMessages:
    """The messages with at most the first STORED_LENGTH characters of each body, as a record has them.

    They wait in memory to be written, and a body may have millions of characters.
    returns: the same object if no body is longer
    """
    starts = messages.starts
    lengths = np.diff(starts)
    if not len(lengths) or lengths.max() <= STORED_LENGTH:
        return messages
    end = int(starts[-1])
    is_stored = np.arange(end) - np.repeat(starts[:-1], lengths) < STORED_LENGTH
    return replace(
        messages,
        starts=starts_of(np.minimum(lengths, STORED_LENGTH)),
        chars=messages.chars[:end][is_stored],
        word_starts=messages.word_starts[:end][is_stored],
    )
