"""The nouns that stages hand to each other: columns of n messages, in log order.

A batch flows `list[str]` → `Bodies` → `Fingerprints` → `Batch` → `Verdicts`. The annotation of each column
gives its dtype and the shape of one entry, the text below it its meaning (stages/columns.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import Columns, Dim, Packed, PerRow, Places, Pooled, Sent, Starts

MIN_NEAR_LENGTH = 8
"""Bodies with fewer characters are compared exactly only (near_quality: short text moves too many bits)."""

STORED_LENGTH = 512
"""Characters of a body that the ring keeps and exact verification reads."""

PARITY_BELOW = 40
"""Bodies with fewer characters carry parities in their signature, others one-bit MinHash."""

SKETCH_FROM = 256
"""Bodies of this many characters or more have a sketch."""

DETAIL_LENGTH = 24
"""Characters of either body that a verdict holds of the place in which they differ."""

SIMILARITY_SCALE = 10_000
"""`similarity` settings are integers out of this, so that integer arithmetic decides."""

MAX_WINDOW = 16_000_000
"""Bucket entries hold a kept index modulo 2 ** 24; the rest of that range tells stale entries apart."""

MAX_RING = 2**30
"""Where there are no buckets: slots of the ring are 32-bit."""

MAX_DISTANCE = 7
MAX_TABLES = 128
"""Of hamming mode."""


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
    UNCONFIRMED = 1
    """exact by a Bloom hit older than the ring: taken at the filter's word, no leader is known"""
    ESTIMATED = 2
    """near by whole-body estimate, as a body exceeds STORED_LENGTH characters"""
    LATE = 16
    """unique, but too late to become a leader (`late: judge`)"""


NO_TIME = -(2**63)
"""In a time column: the message has none."""

NO_LEADER = -(2**63)
"""In a leader column: no kept message is named."""


@dataclass(slots=True)
class Bodies(Columns):
    """Normalised texts of n messages.

    The key text of a row of the near stage is its body, behind which stand the references that `text.compare`
    asks for; of an `exact_only` row it is the body with symbols and references, or the raw text.
    """

    chars: Annotated[NDArray[np.uint32], Packed("<u4", by="starts")]
    """code points of the key text"""
    starts: Annotated[NDArray[np.int64], Starts("<u2", max_sent=STORED_LENGTH)]
    """row i is chars[starts[i]:starts[i + 1]]"""
    word_starts: Annotated[NDArray[np.uint8], Packed("u1", by="starts")]
    """for each character 1 where a word of a space-separated script, or a run of characters of an unspaced
    script, begins in the source text"""
    body_lengths: Annotated[NDArray[np.int32], PerRow("<i4")]
    """characters of the body; of exact-only rows perhaps fewer than the key's"""
    own_lengths: Annotated[NDArray[np.int32], PerRow("<i4")]
    """body characters before a shared card (poll, article); = body_lengths without one"""
    exact_only: Annotated[NDArray[np.bool_], PerRow("?")]
    """body shorter than MIN_NEAR_LENGTH, or made of digits (and their separators) alone"""

    def text(self, row: int) -> str:
        """The key text of one row, for messages and tests."""
        part = self.chars[self.starts[row] : self.starts[row + 1]]
        return part.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


@dataclass(slots=True)
class Fingerprints(Columns):
    """What the two stages compare, for n messages."""

    digests: Annotated[NDArray[np.uint64], PerRow("<u8", (2,), sent=Sent.PLAIN)]
    """128-bit digest of the key text (or of the exact fields)"""
    simhashes: Annotated[NDArray[np.uint64], PerRow("<u8", (2,), sent=Sent.PLAIN)]
    """128-bit SimHash; [:, 0] alone is the 64-bit one; see `has_simhash`"""
    has_simhash: Annotated[NDArray[np.bool_], PerRow("?")]
    """False where no feature was found: no fingerprint, never fingerprint 0"""
    weak_bits: Annotated[
        NDArray[np.uint8], PerRow("u1", (Dim("tables", "B"), Dim("weak", "B")), sent=Sent.PLAIN)
    ]
    """for each SimHash table its least certain bits, weakest first (ties to the lowest bit), as bit numbers
    inside the table's key"""
    band_keys: Annotated[NDArray[np.uint32], PerRow("<u4", (Dim("bands", "H"),), sent=Sent.PLAIN)]
    """MinHash bands; meaningless for exact-only rows"""
    bags: Annotated[NDArray[np.uint8], PerRow("u1", (Dim("bag", "B", usual=32),), sent=Sent.PLAIN)]
    """char bag: 64 bins of 4 bits, bin 2b in the low half of byte b, saturating at 15"""
    signatures: Annotated[NDArray[np.uint32], PerRow("<u4", sent=Sent.PLAIN)]
    """parity of hashed character counts below PARITY_BELOW characters, one-bit MinHash from there on"""
    sketches: Annotated[NDArray[np.uint8], Pooled("u1", (64,), by="sketch_rows", sent=Sent.PLAIN)]
    """whole-body MinHash values, 8 bits each, of long bodies"""
    sketch_rows: Annotated[NDArray[np.int32], Places("<i4", of="sketches")]
    """row in `sketches`, or -1 for bodies that need none"""
    tallies: Annotated[NDArray[np.uint64], PerRow("<u8")]
    """what the numbers and negations of a body beyond STORED_LENGTH characters come to
    (`stages.differ.tails`); 0 for shorter ones"""


@dataclass(slots=True)
class Batch(Columns):
    """n readable messages in log order, ready to be judged."""

    positions: Annotated[NDArray[np.int64], PerRow("<i8", sent=Sent.NOT)]
    """the caller's name for each message: a line number; a packed partition and offset"""
    times_ms: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_TIME)]
    """message time in ms since 1970, or NO_TIME"""
    arrivals_ms: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_TIME, sent=Sent.NOT)]
    """clock of arrival, which bounds a message's time; NO_TIME for no bound"""
    ids: Annotated[NDArray[np.uint64], PerRow("<u8", sent=Sent.PLAIN)]
    """hash of the message's id, 0 for none"""
    scopes: Annotated[NDArray[np.uint64], PerRow("<u8")]
    """hash of the scope fields, 0 for none"""
    bodies: Bodies
    fingerprints: Fingerprints


@dataclass(slots=True)
class Verdicts(Columns):
    """What the sieve says of n messages."""

    leaders: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_LEADER)]
    """position of the leader, or NO_LEADER"""
    matched: Annotated[NDArray[np.int32], PerRow("<i4")]
    """twice the length of the longest common subsequence (near, text); else 0"""
    compared: Annotated[NDArray[np.int32], PerRow("<i4")]
    """summed length of both bodies; similarity = matched / compared"""
    distances: Annotated[NDArray[np.int16], PerRow("<i2", fill=-1)]
    """bits of SimHash distance (near, hamming); else -1"""
    kinds: Annotated[NDArray[np.uint8], PerRow("u1")]
    """`Kind`"""
    flags: Annotated[NDArray[np.uint8], PerRow("u1")]
    """`Flag`"""
    reasons: Annotated[NDArray[np.uint8], PerRow("u1")]
    """number of the `Rule` (`stages/differ/rules.py`) that kept a unique message apart from the most alike
    one that would have led it; else 0"""
    apart_from: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_LEADER)]
    """position of that one, or NO_LEADER"""
    details: Annotated[NDArray[np.uint32], Pooled("<u4", (2, DETAIL_LENGTH), by="detail_rows")]
    """code points of the earlier and of the later body in the one place that keeps them apart, then 0"""
    detail_rows: Annotated[NDArray[np.int32], Places("<i4", of="details")]
    """row in `details`; -1 where no single place decides, or `NearConfig.details` is off"""

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

    bands × rows MinHash values of `grams`: `chars` are all characters and pairs; `by_script` are these of
    unspaced scripts, pairs and triples of the others, of which any two texts share most letters.
    `tables` SimHash keys of `key_bits` out of 128 bits, probed at the
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
    grams: Literal["chars", "by_script"] = "chars"


@dataclass(frozen=True, slots=True)
class ExactConfig:
    """Settings of the exact stage; `trie` is exact, `bloom` has `error_rate` over all its generations."""

    method: Literal["bloom", "trie", "none"] = "bloom"
    error_rate: float = 1e-6
    window: Window = Window(10_000_000, 7 * 86_400_000)


class Range(NamedTuple):
    """A limit that settings may name: what it does, and the whole numbers that it may be."""

    line: str
    low: int = 0
    high: int = STORED_LENGTH


class PerMille(NamedTuple):
    """A limit that settings may name, there as a share from 0 to 1: what it does."""

    line: str


OFF, GUARDS, FULL = 0, 1, 2
LEVELS = ("off", "guards", "full")
"""Of `near.differences`, by number."""


class Differences(NamedTuple):
    """What keeps two bodies apart that are alike enough (docs/DIFFERENCES.md); kernels take it as it is.

    level: OFF; GUARDS, all rules but amounts; FULL, all rules

    The rest are limits of amounts: the keys of `near.limits`, with their bounds and defaults. Shares are out
    of 1000. A word of a spaced script counts as up to four characters.
    """

    level: int = GUARDS
    short: Annotated[int, Range("bodies with fewer characters are short")] = 32
    replaced_short: Annotated[
        int, PerMille("share of what is paired that may be replaced in short bodies")
    ] = 80
    replaced: Annotated[int, PerMille("and in others")] = 250
    only_short: Annotated[
        int, PerMille("share that each of two short bodies may have to itself; 1: no limit")
    ] = 250
    longest: Annotated[int, Range("characters of the longest replacement")] = 7
    in_place: Annotated[
        int, Range("a replacement before the end of this many characters keeps two apart, 0: never")
    ] = 2
    places: Annotated[int, Range("where they differ in no more places than these", low=1)] = 2
    inside: Annotated[
        int, Range("characters that one of two may have more in one place between what both have")
    ] = 512
    own: Annotated[
        int, Range("new pairs of characters, or letters of new words, of the later one in one place")
    ] = 35


@dataclass(frozen=True, slots=True)
class NearConfig:
    """Settings of the near stage.

    similarity: out of SIMILARITY_SCALE
    words: YAML text of a user's own lists of words, beside ours
    details: verdicts hold what differs (`Verdicts.details`)
    candidates: `index` finds through bands and tables with measured recall, `scan` compares with all
    bucket_load: expected entries per 8-entry bucket when the window is full
    distances: hamming mode, ascending (from_length, k ≤ 7) steps; shorter bodies are exact-only
    blocks: hamming mode, parts a 64-bit fingerprint is cut into, 0 for k + 2; tables = C(blocks, k)
    """

    method: Literal["text", "hamming", "none"] = "text"
    similarity: int = 8_500
    window: Window = Window(1_000_000, 86_400_000)
    differences: Differences = Differences()  # noqa: RUF009 (a tuple)
    words: str = ""
    details: bool = False
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


@dataclass(frozen=True, slots=True)
class SieveStats:
    """How full the sieve is.

    kept: messages kept since the beginning; held: entries in the ring; capacity: of the ring
    stream_time_ms, oldest_time_ms: stream time, and the time of the ring's oldest entry; None without times
    bytes_used: of all arrays, growing only while the window fills
    """

    kept: int
    held: int
    capacity: int
    stream_time_ms: int | None
    oldest_time_ms: int | None
    bytes_used: int
