"""`saving_bytes`: what a process holds beside its sieve while it saves it."""

from __future__ import annotations

from twinsieve.pipeline.saved.journal import RECORD_MESSAGES
from twinsieve.pipeline.saved.patience import WAITING
from twinsieve.pipeline.saved.piece_bytes import largest_piece_bytes
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.exact.bloom import notes_limit
from twinsieve.stages.exact.bloom_sizing import bloom_sizing
from twinsieve.stages.exact.key_notes import NOTE_BYTES
from twinsieve.stages.exact.trie import tier_sizes
from twinsieve.stages.exact.trie_head import TrieHead
from twinsieve.stages.judge.near_window import chunk_rows

_COPIES = 3
"""Of the record that is being written: its parts as one, their columns side by side, and compressed."""
_FRAME_BYTES = 2 << 21
"""A frame of a section, plain and compressed (`stages/judge/state_bytes.py`)."""


def saving_bytes(config: SieveConfig) -> int:
    """The most bytes that saving a sieve takes beside the sieve.

    These are the records that wait, one that gathers, copies of the one that is written, and a frame that is
    compressed; the noted keys of a Bloom filter and a copy of its newest generation, which is made where more
    keys came than are noted; or the head of the trie. raises: UsageError
    """
    rows = RECORD_MESSAGES + chunk_rows(config)
    records = (WAITING + 1 + _COPIES) * rows * largest_piece_bytes(config)
    small = 0
    if config.exact.method == "bloom":
        sizing = bloom_sizing(config.exact.window, config.exact.error_rate)
        small = sizing.stride + notes_limit(sizing) * NOTE_BYTES
    if config.exact.method == "trie":
        small = TrieHead.bytes_for(tier_sizes(config.exact.window).head)
    return records + small + _FRAME_BYTES
