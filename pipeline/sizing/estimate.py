"""The cost model: bytes in memory and on disk, bytes written an hour, µs a message and hours covered.

Amounts are those of full windows, which is the most. Files of a segment and pieces with its messages exist at
once until a snapshot names the segment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from twinsieve.pipeline.saved.piece_bytes import (
    WINDOW_PARTS,
    largest_piece_bytes,
    piece_bytes,
    piece_messages,
    times_merged,
)
from twinsieve.pipeline.settings.segment_bytes import Texts, hot_bytes, segment_messages, segment_parts
from twinsieve.stages.contract import SieveConfig, Window
from twinsieve.stages.exact.bloom import notes_limit
from twinsieve.stages.exact.bloom_sizing import bloom_sizing
from twinsieve.stages.exact.key_notes import NOTE_BYTES
from twinsieve.stages.exact.trie import tier_sizes
from twinsieve.stages.exact.trie_head import TrieHead
from twinsieve.stages.judge.batch_sieve import worst_case_bytes
from twinsieve.stages.judge.near_window import segment_count

SMALL_BYTES = 1 << 16
"""Bytes of a snapshot beside kept messages and filters: its manifest, counters, what is open."""

OPEN_US = ((100_000, 3.0), (1_000_000, 4.4), (10_000_000, 7.3))
"""µs of one thread to judge a message, by kept messages of the only segment
(`python -m bench.near_scale`)."""

SEALED_US = ((10_000, 0.7), (100_000, 0.9), (16_000_000, 3.6))
"""µs more for each sealed segment, by its kept messages (`python -m bench.cost_model`; the last one:
`python -m bench.large_window`, time of both processors)."""

OPEN_CHARACTER_US = 0.027
SEALED_CHARACTER_US = 0.012
"""µs more for each character of the mean length above CHARACTERS, in the open segment and in each sealed one
(`python -m bench.cost_model`, 58 to 216 characters)."""

CHARACTERS = 55.0
"""Mean characters of the posts with which times were measured."""

LOOK_UPS = 32
"""Look-ups of a long body in the default layout, with which times were measured."""

FIXED_SHARE = 0.15
"""Share of the time that does not depend on the number of look-ups (`python -m bench.cost_model`: 28, 32 and
42 look-ups take 5.1, 5.6 and 7.2 µs)."""


REPEATS = (0.0, 0.4)
"""Shares of dropped messages for which amounts are shown: none, and what microblogs have at least."""

_HOUR_S = 3600
_EXACT_PARTS = ("bloom", "trie")
_TRIE_WRITES = 3
"""How often an entry of a trie is written: with a head that is sealed, and in two merges (`tier_sizes`)."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a sieve gets and how it is saved.

    rate: messages a second; repeats: share of them that is dropped, 0 to less than 1
    texts: of the kept messages
    memory: `state.memory` in bytes; None: sealed segments are mapped as soon as they are written
    snapshot_s: time between two snapshots; snapshots: how many are kept
    """

    rate: float
    repeats: float = 0.0
    texts: Texts = field(default_factory=Texts)
    memory: int | None = None
    snapshot_s: float = 300.0
    snapshots: int = 2

    @property
    def kept_a_second(self) -> float:
        """Messages kept a second."""
        return self.rate * (1 - self.repeats)


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the bytes of a sieve lie, by full windows.

    anonymous: bytes of the process by part
    hot, cold: bytes of sealed segments that are mapped from files: what each look-up reads, so that the page
        cache should hold it, and what is read for candidates alone
    """

    anonymous: dict[str, int]
    hot: int
    cold: int

    @property
    def total(self) -> int:
        """Bytes of the process."""
        return sum(self.anonymous.values())

    @property
    def needed(self) -> int:
        """Bytes of a machine's memory without which look-ups wait for its disk."""
        return self.total + self.hot


@dataclass(frozen=True, slots=True)
class Estimate:
    """What settings cost under some load; bytes of the longest texts have `worst` in their name.

    repeats: share of messages that is dropped
    memory, worst_memory: of the sieve
    disk, worst_disk: bytes of the saved sieve by part. Only what the folder of the state holds; without a
        state, segments alone
    written: bytes written an hour by part
    us: of one thread to judge a message; busy: cores that judging takes
    hours: how far the near window reaches back
    """

    repeats: float
    memory: Memory
    worst_memory: Memory
    disk: dict[str, int]
    worst_disk: dict[str, int]
    written: dict[str, int]
    us: float
    busy: float
    hours: float


def estimate(config: SieveConfig, load: Load) -> Estimate:
    """The costs of a configuration with `near.method: text`. raises: UsageError if no sieve can have it"""
    exact = exact_bytes(config)
    parts, longest = segment_parts(config, load.texts), segment_parts(config, None)
    us = judging_us(config, load.texts)
    return Estimate(
        repeats=load.repeats,
        memory=memory_of(config, load.memory, parts, exact),
        worst_memory=memory_of(config, load.memory, longest, exact),
        disk=_disk(config, load, parts, piece_bytes(config, load.texts), exact),
        worst_disk=_disk(config, load, longest, largest_piece_bytes(config), exact),
        written=_written(config, load, parts, exact),
        us=us,
        busy=us * load.rate / 1e6,
        hours=covered_hours(config.near.window, load),
    )


def exact_bytes(config: SieveConfig) -> int:
    """The most bytes of the exact stage."""
    parts = worst_case_bytes(config)
    return sum(parts.get(name, 0) for name in _EXACT_PARTS)


def memory_of(config: SieveConfig, memory: int | None, parts: dict[str, int], exact: int) -> Memory:
    """Where the bytes lie. parts: of one full segment; exact: of the exact stage

    Above the open segment and the one that is written, `memory` has room for what look-ups read of the newest
    sealed segments.
    """
    segment, hot, sealed = sum(parts.values()), hot_bytes(parts), segment_count(config) - 1
    anonymous = {"open segment": segment}
    if not sealed:
        return Memory(anonymous | {"exact stage": exact}, 0, 0)
    room = 0 if memory is None or not hot else max(0, memory - 2 * segment) // hot
    in_memory = min(sealed - 1, room)
    anonymous |= {
        "segment that is being written": segment,
        "index of sealed segments": in_memory * hot,
        "exact stage": exact,
    }
    # The one that is written is mapped later, and then none is written.
    return Memory(anonymous, (sealed - 1 - in_memory) * hot, (sealed - 1) * (segment - hot))


def covered_hours(window: Window, load: Load) -> float:
    """Hours for which a window reaches back, by its messages or by its age."""
    hours = window.messages / load.kept_a_second / _HOUR_S
    return hours if window.age_ms is None else min(hours, window.age_ms / 1000 / _HOUR_S)


def _disk(config: SieveConfig, load: Load, parts: dict[str, int], piece: float, exact: int) -> dict[str, int]:
    window, segments = config.near.window.messages, segment_count(config)
    disk = {"pieces": round(piece * _in_pieces(config, load) * (1 + 1 / WINDOW_PARTS))}
    if segments > 1:
        # The window has passed one more, which the oldest snapshot still names.
        disk["segments"] = segments * sum(parts.values())
    elif times_merged(window, piece_messages(window, load.kept_a_second * load.snapshot_s)):
        disk["merge, while it runs"] = round(piece * window)
    return disk | {"exact stage": exact + load.snapshots * (_small_bytes(config, load) + SMALL_BYTES)}


def _in_pieces(config: SieveConfig, load: Load) -> int:
    """Kept messages that pieces hold at most: the window; if it is cut, the open segment, and those of sealed
    ones as long as a snapshot that is kept does not name their files."""
    window = config.near.window.messages
    if segment_count(config) == 1:
        return window
    unnamed = load.kept_a_second * load.snapshot_s * (load.snapshots + 1)
    return min(window, segment_messages(config) + math.ceil(unnamed))


def _written(config: SieveConfig, load: Load, parts: dict[str, int], exact: int) -> dict[str, int]:
    kept = load.kept_a_second * _HOUR_S
    new = piece_messages(config.near.window.messages, load.kept_a_second * load.snapshot_s)
    piece = piece_bytes(config, load.texts)
    written = {
        "pieces": kept * piece,
        "merges": kept * piece * times_merged(_in_pieces(config, load), new),
    }
    if segment_count(config) > 1:
        written["segments"] = kept * sum(parts.values()) / segment_messages(config)
    per_key = exact / config.exact.window.messages if exact else 0
    times = _TRIE_WRITES if config.exact.method == "trie" else 1
    written["exact stage"] = kept * per_key * times
    written["snapshots"] = _HOUR_S / load.snapshot_s * (_small_bytes(config, load) + SMALL_BYTES)
    return {name: round(size) for name, size in written.items()}


def _small_bytes(config: SieveConfig, load: Load) -> int:
    """Bytes of the exact stage that each snapshot writes: the new keys of the newest generation or of the
    head, or all of it where they take more."""
    exact, keys = config.exact, math.ceil(load.kept_a_second * load.snapshot_s)
    if exact.method == "trie":
        head = tier_sizes(exact.window).head
        return TrieHead.bytes_for(head) * min(keys, head) // head
    if exact.method == "none":
        return 0
    sizing = bloom_sizing(exact.window, exact.error_rate)
    noted = NOTE_BYTES * keys
    return noted if keys <= notes_limit(sizing) and noted < sizing.stride else sizing.stride


def judging_us(config: SieveConfig, texts: Texts) -> float:
    """µs of one thread to judge a message when the near window is full, for `near.method: text`.

    Reading the message and computing its fingerprint are not in it.
    """
    return open_us(config, texts) + (segment_count(config) - 1) * sealed_us(config, texts)


def open_us(config: SieveConfig, texts: Texts) -> float:
    """That part of `judging_us` that the open segment takes."""
    longer = (texts.characters - CHARACTERS) * OPEN_CHARACTER_US
    return max(_at(OPEN_US, segment_messages(config)) * _by_look_ups(config) + longer, 0.0)


def sealed_us(config: SieveConfig, texts: Texts) -> float:
    """That part of `judging_us` that each sealed segment takes."""
    longer = (texts.characters - CHARACTERS) * SEALED_CHARACTER_US
    return max(_at(SEALED_US, segment_messages(config)) * _by_look_ups(config) + longer, 0.0)


def look_ups(config: SieveConfig) -> int:
    """Look-ups of a long body in the buckets of a segment."""
    layout = config.layout
    return layout.bands + (layout.tables << layout.weak)


def _by_look_ups(config: SieveConfig) -> float:
    return FIXED_SHARE + (1 - FIXED_SHARE) * look_ups(config) / LOOK_UPS


def _at(measured: Sequence[tuple[int, float]], kept: int) -> float:
    """The value between two measured ones, on the logarithm of kept messages; beyond the last the same slope
    for a tenfold number, and before the first its value.

    >>> [round(_at(((100, 2.0), (1_000, 3.0)), kept), 2) for kept in (10, 100, 316, 1_000, 10_000)]
    [2.0, 2.0, 2.5, 3.0, 4.0]
    """
    if kept <= measured[0][0]:
        return measured[0][1]
    pairs = list(pairwise(measured))
    (low, below), (high, above) = next((pair for pair in pairs if kept <= pair[1][0]), pairs[-1])
    share = math.log(kept / low) / math.log(high / low)
    return below + (above - below) * share
