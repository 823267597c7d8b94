"""The nouns that stages hand to each other: columns of n messages, in log order.

A batch flows `list[str]` → `Bodies` → `Fingerprints` → `Batch` → `Verdicts`.
Every column is a NumPy array of the dtype and shape its docstring gives; packed columns
(`chars`, `starts`) keep row i in `chars[starts[i]:starts[i + 1]]`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MIN_NEAR_LENGTH = 8
"""Bodies with fewer characters are compared exactly only (near_quality: short text moves too many bits)."""

STORED_LENGTH = 512
"""Characters of a body that the ring keeps and exact verification reads."""

PARITY_BELOW = 40
"""Bodies with fewer characters carry parities in their signature, others one-bit MinHash."""

SKETCH_FROM = 256
"""Bodies of this many characters or more have a sketch."""

SIMILARITY_SCALE = 10_000
"""`similarity` settings are integers out of this, so that integer arithmetic decides."""


class Kind(IntEnum):
    """What became of a message."""

    UNIQUE = 0
    EXACT = 1
    NEAR = 2
    REPLAYED = 3
    UNREADABLE = 4


class Flag(IntFlag):
    """What a reader of a verdict should know beside its kind."""

    NONE = 0
    AT_WORD = 1
    """exact by a Bloom hit older than the ring: taken at the filter's word, no leader is known"""
    ESTIMATED = 2
    """near by whole-body estimate, as a body exceeds STORED_LENGTH characters"""
    NUMBER_GUARD = 4
    """unique, though a leader was similar enough: the number guard kept the two apart"""
    CARD_GUARD = 8
    """unique, though a leader was similar enough: own words under one shared card differ"""
    LATE = 16
    """unique, but too late to become a leader (`late: judge`)"""
    SAME_ID = 32
    """unique, though a leader was similar enough: it has the same id and `same_id: pass`"""


@dataclass(slots=True)
class Bodies:
    """Normalised texts of n messages, packed.

    chars: uint32[total], code points of the *key text* of each row. For rows of the near stage
        that is exactly the body; for `exact_only` rows it is the body with symbols, or the raw text.
    starts: int64[n + 1], row i is chars[starts[i]:starts[i + 1]]
    word_starts: uint8[total], 1 where a word of a space-separated script, or a run of
        characters of an unspaced script, begins in the source text
    body_lengths: int32[n], characters of the body (for exact-only rows possibly fewer than the key's)
    own_lengths: int32[n], body characters before a shared card (poll, article); = body_lengths without one
    exact_only: bool[n], body shorter than MIN_NEAR_LENGTH or made of digits (and their separators) alone
    """

    chars: NDArray[np.uint32]
    starts: NDArray[np.int64]
    word_starts: NDArray[np.uint8]
    body_lengths: NDArray[np.int32]
    own_lengths: NDArray[np.int32]
    exact_only: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def text(self, row: int) -> str:
        """The key text of one row, for messages and tests."""
        part = self.chars[self.starts[row] : self.starts[row + 1]]
        return part.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


@dataclass(slots=True)
class Fingerprints:
    """What the two stages compare, for n messages.

    digests: uint64[n, 2], 128-bit digest of the key text (or of the exact fields)
    simhashes: uint64[n, 2], 128-bit SimHash; [:, 0] alone is the 64-bit one; see `has_simhash`
    has_simhash: bool[n], False where no feature was found: no fingerprint, never fingerprint 0
    weak_bits: uint8[n, tables, weak], per SimHash table its least certain bits, weakest first
        (ties to the lowest bit), as bit numbers inside the table's key
    band_keys: uint32[n, bands], MinHash bands; meaningless for exact-only rows
    bags: uint8[n, 32], char bag: 64 bins × 4 bit, bin 2b in the low half of byte b, saturating at 15
    signatures: uint32[n], parity of hashed character counts below 40 characters, one-bit MinHash from 40
    sketches: uint8[m, 64], whole-body MinHash values, 8 bits each, for long bodies
    sketch_rows: int32[n], row in `sketches`, or -1 for bodies that need none
    """

    digests: NDArray[np.uint64]
    simhashes: NDArray[np.uint64]
    has_simhash: NDArray[np.bool_]
    weak_bits: NDArray[np.uint8]
    band_keys: NDArray[np.uint32]
    bags: NDArray[np.uint8]
    signatures: NDArray[np.uint32]
    sketches: NDArray[np.uint8]
    sketch_rows: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.digests)


@dataclass(slots=True)
class Batch:
    """n readable messages in log order, ready to be judged.

    positions: int64[n], the caller's name for each message (a line number; a packed partition and offset)
    times_ms: int64[n], message time in ms since 1970, or NO_TIME
    arrivals_ms: int64[n], clock of arrival, which bounds a message's time; NO_TIME for no bound
    ids: uint64[n], hash of the message's id, 0 for none
    scopes: uint64[n], hash of the scope fields, 0 for none
    """

    positions: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    arrivals_ms: NDArray[np.int64]
    ids: NDArray[np.uint64]
    scopes: NDArray[np.uint64]
    bodies: Bodies
    fingerprints: Fingerprints

    def __len__(self) -> int:
        return len(self.positions)


NO_TIME = -(2**63)
"""In a time column: the message has none."""

NO_LEADER = -(2**63)
"""In a leader column: no kept message is named."""


@dataclass(slots=True)
class Verdicts:
    """What the sieve says of n messages.

    kinds: uint8[n], `Kind`
    flags: uint8[n], `Flag`
    leaders: int64[n], position of the leader, or NO_LEADER
    matched: int32[n], twice the length of the longest common subsequence (near, text); else 0
    compared: int32[n], summed length of both bodies; similarity = matched / compared
    distances: int16[n], bits of SimHash distance (near, hamming); else -1
    """

    kinds: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    leaders: NDArray[np.int64]
    matched: NDArray[np.int32]
    compared: NDArray[np.int32]
    distances: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.kinds)

    def similarity(self, row: int) -> float:
        """0…1, or 0.0 where the row was not compared by text."""
        compared = int(self.compared[row])
        return int(self.matched[row]) / compared if compared else 0.0


@dataclass(frozen=True, slots=True)
class Window:
    """How much is remembered: at most `messages` kept ones, none older than `age_ms` (None: no age limit)."""

    messages: int
    age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BandLayout:
    """Shape of the candidate index; part of the fingerprint scheme.

    bands × rows MinHash values; `tables` SimHash keys of `key_bits` out of 128 bits, probed at the
    2 ** weak keys that differ in the `weak` least certain bits; bit j of table t is bit
    (t * 128 // tables + j) % 128 of the SimHash. SimHash keys serve bodies of at least
    `simhash_from` characters.
    """

    bands: int = 24
    rows: int = 4
    tables: int = 6
    key_bits: int = 24
    weak: int = 2
    simhash_from: int = 64


@dataclass(frozen=True, slots=True)
class ExactConfig:
    """Settings of the exact stage; `trie` is exact, `bloom` has `error_rate` over all its generations."""

    method: Literal["bloom", "trie", "none"] = "bloom"
    error_rate: float = 1e-6
    window: Window = Window(10_000_000, 7 * 86_400_000)


@dataclass(frozen=True, slots=True)
class NearConfig:
    """Settings of the near stage.

    similarity: out of SIMILARITY_SCALE
    candidates: `index` finds through bands and tables with measured recall, `scan` compares with all
    bucket_load: expected entries per 8-entry bucket when the window is full
    distances: hamming mode, ascending (from_length, k ≤ 7) steps; shorter bodies are exact-only
    blocks: hamming mode, parts a 64-bit fingerprint is cut into, 0 for k + 2; tables = C(blocks, k)
    """

    method: Literal["text", "hamming", "none"] = "text"
    similarity: int = 8_500
    window: Window = Window(1_000_000, 86_400_000)
    number_guard: bool = True
    card_guard: bool = True
    same_id: Literal["drop", "pass"] = "drop"
    candidates: Literal["index", "scan"] = "index"
    bucket_load: float = 8.4
    distances: tuple[tuple[int, int], ...] = ((8, 3),)
    blocks: int = 0
    shards: int = 1


@dataclass(frozen=True, slots=True)
class TimeConfig:
    """Stream time: `max_ahead_ms` clamps a message to its arrival; a message more than `late_after_ms`
    behind stream time is late, and under `late: judge` never becomes a leader."""

    max_ahead_ms: int = 300_000
    late: Literal["insert", "judge"] = "insert"
    late_after_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class SieveConfig:
    """Everything a verdict depends on beside the input.

    scheme_id: hash of all that shapes fingerprints (profile, features, seeds, tables of the Unicode version);
        state of another scheme is refused
    scoped: messages carry scopes; adds a column to the ring
    key_is_text: the exact key is the key text, so that a confirmed hit can compare text
    """

    exact: ExactConfig = field(default_factory=ExactConfig)
    near: NearConfig = field(default_factory=NearConfig)
    time: TimeConfig = field(default_factory=TimeConfig)
    layout: BandLayout = field(default_factory=BandLayout)
    scheme_id: str = ""
    scoped: bool = False
    key_is_text: bool = True
