"""The types that the stages pass to each other: columns of n messages, in log order.

A batch flows `list[str]` → `Bodies` → `Fingerprints` → `Batch` → `Verdicts`. The annotation of each column
gives its dtype and the shape of one entry; the text below gives its meaning (stages/columns.py).
"""

# No `from __future__ import annotations`: `Columns` reads annotations at each start, and Python takes long to
# make them of text.
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Annotated, Literal, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import Columns, Dim, Packed, PerRow, Places, Pooled, Sent, Starts

MIN_NEAR_LENGTH = 8
"""Bodies with fewer characters get the exact stage only: in a short text, one edit changes too many bits."""

STORED_LENGTH = 512
"""The ring stores this many first characters of a body, and the exact comparison of texts reads them."""

PARITY_BELOW = 20
"""The signature of a body with fewer characters holds parity bits; otherwise it holds one-bit MinHash."""

SKETCH_FROM = 256
"""Bodies of this many characters or more have a sketch (MinHash values of the whole body)."""

DETAIL_LENGTH = 24
"""Characters that a verdict holds of each body, from the place in which the two differ."""

SIMILARITY_SCALE = 10_000
"""Similarities in settings are integers from 0 to this scale, so that integer arithmetic decides."""

MAX_SEGMENT = 16_000_000
"""Most messages of a segment. An entry of its buckets holds a kept index modulo 2 ** 24; the values of that
range beyond the segment mark entries that are stale."""

MAX_WINDOW = 4_000_000_000
"""Largest window that is cut into segments, in messages."""

MAX_RING = 2**30
"""Largest window without buckets, in messages: slot numbers of the ring are 32-bit integers."""


def largest_window(method: str) -> int:
    """Most messages of the near window under a value of `near.method`.

    >>> largest_window("text"), largest_window("none")
    (4000000000, 1073741824)
    """
    return {"text": MAX_WINDOW, "signatures": MAX_SEGMENT}.get(method, MAX_RING)


MAX_DISTANCE = 7
MAX_SCAN_DISTANCE = 12
MAX_TABLES = 128
"""Limits of the method hamming: distance in bits with tables and with a scan, and number of tables."""

MAX_PARTS = 16
"""Most part hashes of a message under the method signatures."""


class Kind(IntEnum):
    """The verdict on a message.

    UNIQUE: no kept message is its leader; EXACT: it has the key of its leader; NEAR: it is alike to its
    leader; REPLAYED: its position was judged before; UNREADABLE: it cannot be processed
    """

    UNIQUE = 0
    EXACT = 1
    NEAR = 2
    REPLAYED = 3
    UNREADABLE = 4


class Flag(IntFlag):
    """Additional facts about a verdict, as bits."""

    NONE = 0
    UNCONFIRMED = 1
    """exact, but only the Bloom filter says so: the earlier message has left the ring, so nothing can
    confirm the hit, and the leader is unknown"""
    ESTIMATED = 2
    """near, but the similarity is an estimate, because a body has more than STORED_LENGTH characters"""
    NO_FEATURES = 4
    """unique, but compared with nothing: the method decides by features, and the text has none or too few"""
    CUT_SHORT = 8
    """under the method signatures, so many kept messages share the message's hashes that not all of them were
    looked at: it may be a duplicate of an older one"""
    LATE = 16
    """unique, but the message came too late to become a leader (`late: judge`)"""


NO_TIME = -(2**63)
"""Value of a time column if the message has no time."""

NO_LEADER = -(2**63)
"""Value of a leader column if there is no leader or it is unknown."""


@dataclass(slots=True)
class Bodies(Columns):
    """Normalised texts of n messages.

    The key text is what the exact stage compares. For a row of the near stage it is the body, followed by the
    references that `text.compare` selects (links, mentions, tags). For an `exact_only` row it is the body
    with its symbols, followed by the references, or the raw text.
    """

    chars: Annotated[NDArray[np.uint32], Packed("<u4", by="starts")]
    """code points of the key texts"""
    starts: Annotated[NDArray[np.int64], Starts("<u2", max_sent=STORED_LENGTH)]
    """the key text of row i is chars[starts[i]:starts[i + 1]]"""
    word_starts: Annotated[NDArray[np.uint8], Packed("u1", by="starts")]
    """1 for each character with which a word of a space-separated script, or a run of characters of an
    unspaced script, begins in the source text; else 0"""
    body_lengths: Annotated[NDArray[np.int32], PerRow("<i4")]
    """number of characters of the body; in exact-only rows the key text may be longer"""
    own_lengths: Annotated[NDArray[np.int32], PerRow("<i4")]
    """number of body characters before a shared card (poll, article); body_lengths if there is no card"""
    exact_only: Annotated[NDArray[np.bool_], PerRow("?")]
    """the row gets the exact stage only: its body is shorter than MIN_NEAR_LENGTH, or holds nothing but
    digits and their separators"""
    signs: Annotated[NDArray[np.uint32], PerRow("<u4", sent=Sent.NOT)]
    """signs of a near row that may say the opposite of others (`stages.text.signs`); sent as `tallies`"""

    def text(self, row: int) -> str:
        """The key text of one row, for messages and tests."""
        part = self.chars[self.starts[row] : self.starts[row + 1]]
        return part.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


@dataclass(slots=True)
class Fingerprints(Columns):
    """The fingerprints of n messages, by which the exact and the near stage find and compare messages."""

    digests: Annotated[NDArray[np.uint64], PerRow("<u8", (2,), sent=Sent.PLAIN)]
    """128-bit digest of the key text, or of the fields that the exact key is made of"""
    simhashes: Annotated[NDArray[np.uint64], PerRow("<u8", (2,), sent=Sent.PLAIN)]
    """128-bit SimHash; column [:, 0] is the 64-bit SimHash; valid only if `has_simhash`. Where fields have a
    SimHash of their own, the columns are those of the first and the second field"""
    has_simhash: Annotated[NDArray[np.bool_], PerRow("?")]
    """False if the text has no feature; the row then has no SimHash, and its zeros must not be compared"""
    weak_bits: Annotated[
        NDArray[np.uint8], PerRow("u1", (Dim("tables", "B"), Dim("weak", "B")), sent=Sent.PLAIN)
    ]
    """for each SimHash table the least certain bits of its key, as bit numbers inside the key, least certain
    first; of equally certain bits the lowest comes first"""
    band_keys: Annotated[NDArray[np.uint32], PerRow("<u4", (Dim("bands", "H"),), sent=Sent.PLAIN)]
    """keys of the MinHash bands; not used for exact-only rows"""
    bags: Annotated[NDArray[np.uint8], PerRow("u1", (Dim("bag", "B", usual=32),), sent=Sent.PLAIN)]
    """char bag: counts of hashed characters in 64 bins of 4 bits; bin 2b is the low half of byte b; a count
    stops at 15"""
    signatures: Annotated[NDArray[np.uint32], PerRow("<u4", sent=Sent.PLAIN)]
    """for a body below PARITY_BELOW characters, the parities of its hashed character counts; for a longer
    body, one-bit MinHash"""
    sketches: Annotated[NDArray[np.uint8], Pooled("u1", (64,), by="sketch_rows", sent=Sent.PLAIN)]
    """MinHash values of whole long bodies, 8 bits each"""
    sketch_rows: Annotated[NDArray[np.int32], Places("<i4", of="sketches")]
    """row in `sketches`, or -1 for a body that needs no sketch"""
    part_hashes: Annotated[NDArray[np.uint64], PerRow("<u8", (Dim("parts", "B"),), sent=Sent.PLAIN)]
    """under the method signatures, hashes of the parts that are compared: distinct, ascending, then zeros; a
    row of zeros has no signature"""
    tallies: Annotated[NDArray[np.uint64], PerRow("<u8")]
    """of a body with more than STORED_LENGTH characters: version of its lists, number of negations and sum of
    the number hashes (`stages.differ.tails`); of a shorter body its signs (`Bodies.signs`)"""


@dataclass(slots=True)
class Batch(Columns):
    """n readable messages in log order, ready to be judged."""

    positions: Annotated[NDArray[np.int64], PerRow("<i8", sent=Sent.NOT)]
    """the caller's identifier of each message, for example a line number, or partition and offset packed"""
    times_ms: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_TIME)]
    """message time in ms since 1970, or NO_TIME"""
    arrivals_ms: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_TIME, sent=Sent.NOT)]
    """time of arrival in ms; a message time may be at most `TimeConfig.max_ahead_ms` later; NO_TIME: no
    such bound"""
    stream_ms: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_TIME, sent=Sent.NOT)]
    """stream time in ms after the message, if the caller decides that; NO_TIME: the message's own time moves
    it. A message with a later time than this is late, and its own time decides what is in the windows"""
    ids: Annotated[NDArray[np.uint64], PerRow("<u8", sent=Sent.PLAIN)]
    """hash of the message's id, 0 for none"""
    scopes: Annotated[NDArray[np.uint64], PerRow("<u8")]
    """hash of the scope fields, 0 for none"""
    bodies: Bodies
    fingerprints: Fingerprints


@dataclass(slots=True)
class Verdicts(Columns):
    """The verdicts of the sieve on n messages."""

    leaders: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_LEADER)]
    """position of the leader, or NO_LEADER"""
    matched: Annotated[NDArray[np.int32], PerRow("<i4")]
    """near under the method text: twice the length of the longest common subsequence with the leader;
    else 0"""
    compared: Annotated[NDArray[np.int32], PerRow("<i4")]
    """near under the method text: sum of both body lengths, so similarity = matched / compared; else 0"""
    distances: Annotated[NDArray[np.int16], PerRow("<i2", fill=-1)]
    """near under the method hamming: differing bits of both SimHashes, of two fields their sum; else -1"""
    shared: Annotated[NDArray[np.int16], PerRow("<i2", fill=-1)]
    """near under the method signatures: number of hashes in common with the leader; else -1"""
    kinds: Annotated[NDArray[np.uint8], PerRow("u1")]
    """the verdict, a `Kind`"""
    flags: Annotated[NDArray[np.uint8], PerRow("u1")]
    """bits of `Flag`"""
    reasons: Annotated[NDArray[np.uint8], PerRow("u1")]
    """for a unique message that is alike to a kept one: number of the `Rule` (`stages/differ/rules.py`) that
    keeps the two apart, for the most similar kept message; else 0"""
    apart_from: Annotated[NDArray[np.int64], PerRow("<i8", fill=NO_LEADER)]
    """position of the kept message that `reasons` is about, or NO_LEADER"""
    details: Annotated[NDArray[np.uint32], Pooled("<u4", (2, DETAIL_LENGTH), by="detail_rows")]
    """code points of the earlier and the later body at the one place that keeps them apart, followed by
    zeros"""
    detail_rows: Annotated[NDArray[np.int32], Places("<i4", of="details")]
    """row in `details`; -1 if no single place decides, or if `NearConfig.details` is off"""

    def similarity(self, row: int) -> float:
        """Similarity of a row to its leader, 0…1; 0.0 if the row is not near by text."""
        compared = int(self.compared[row])
        return int(self.matched[row]) / compared if compared else 0.0


@dataclass(frozen=True, slots=True)
class Window:
    """How many kept messages are remembered, and how long.

    messages: greatest number; age_ms: greatest age, None for no limit
    """

    messages: int
    age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BandLayout:
    """Shape of the candidate index; part of the fingerprint scheme.

    bands, rows: each body has `bands` MinHash keys, each made of `rows` MinHash values of its grams
    grams: `chars`: all characters and all pairs of neighbours. `by_script`: the same for unspaced scripts,
        but pairs and triples for the others, and runs of four in some bands of long bodies, because any two
        texts in such a script share most letters; buckets of letters push out the older English posts
    tables, key_bits: each body has `tables` SimHash keys of `key_bits` bits; bit j of the key of table t is
        bit (t * 128 // tables + j) % 128 of the SimHash
    weak: a look-up in a table tries the 2 ** weak keys that differ in the `weak` least certain bits
    simhash_from: only bodies of at least this many characters use SimHash keys
    """

    bands: int = 28
    rows: int = 3
    tables: int = 1
    key_bits: int = 24
    weak: int = 2
    simhash_from: int = 64
    grams: Literal["chars", "by_script"] = "by_script"


@dataclass(frozen=True, slots=True)
class ExactConfig:
    """Settings of the exact stage.

    method: `trie` is exact; `bloom` has false hits; `none` switches the stage off
    error_rate: probability of a false hit in any generation of the Bloom filter
    """

    method: Literal["bloom", "trie", "none"] = "bloom"
    error_rate: float = 1e-6
    window: Window = Window(10_000_000, 7 * 86_400_000)


class Range(NamedTuple):
    """Annotation of a limit that is a whole number.

    line: what it limits; low, high: its bounds
    tried: the values that `tune` tries: those of the profiles, and values around them
    """

    line: str
    tried: tuple[int, ...]
    low: int = 0
    high: int = STORED_LENGTH


class PerMille(NamedTuple):
    """Annotation of a limit out of 1000; settings write it as a share from 0 to 1. Fields: as for `Range`"""

    line: str
    tried: tuple[int, ...]


OFF, GUARDS, FULL = 0, 1, 2
LEVELS = ("off", "guards", "full")
"""Values of the setting `near.differences`, by level number."""


class Differences(NamedTuple):
    """Which differences keep two bodies apart although they are similar enough (docs/DIFFERENCES.md).

    Kernels take this tuple as it is.
    level: OFF: no rule; GUARDS: all rules except those of the category amount; FULL: all rules

    The other fields are the limits of the amount rules: the keys of `near.limits`, with bounds and defaults.
    Shares are out of 1000. A word of a spaced script counts as up to four characters.
    """

    level: int = GUARDS
    short: Annotated[int, Range("bodies with fewer characters are short", ())] = 32
    replaced_short: Annotated[
        int, PerMille("share of what is paired that may be replaced in short bodies", (80, 140, 200))
    ] = 80
    replaced: Annotated[int, PerMille("and in others", (200, 250))] = 250
    only_short: Annotated[
        int, PerMille("share that each of two short bodies may have to itself; 1: no limit", (250, 1_000))
    ] = 250
    longest: Annotated[int, Range("characters of the longest replacement", (5, 7, 10))] = 7
    in_place: Annotated[
        int,
        Range("a replacement before the end of this many characters keeps two apart, 0: never", (1, 2)),
    ] = 2
    places: Annotated[int, Range("where they differ in no more places than these", (1, 2, 512), low=1)] = 2
    name_places: Annotated[
        int, Range("the same with words of an alphabet: in no more places than these, 0: never", (0, 1, 2))
    ] = 1
    added_short: Annotated[
        int,
        Range("characters of words that one of two short bodies may have more in one place inside", (3, 512)),
    ] = 3
    inside: Annotated[
        int,
        Range("characters that one of two may have more in one place between what both have", (18, 512)),
    ] = 512
    each: Annotated[
        int,
        Range(
            "letters of words that each of two bodies has and the other lacks keep two apart, 0: never",
            (0, 6),
        ),
    ] = 0
    own: Annotated[
        int,
        Range("new pairs of characters, or letters of new words, of the later one in one place", (30, 35)),
    ] = 35
    own_share: Annotated[
        int,
        PerMille("share that words of its own may make of the later body; 1: no limit", (300, 450, 1_000)),
    ] = 1000


LIMITS: dict[str, Range | PerMille] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Differences, include_extras=True).items()
    if name != "level"
}
"""What limits each limit of `Differences`, by its name."""


@dataclass(frozen=True, slots=True)
class NearConfig:
    """Settings of the near stage.

    method: `text` compares texts, `hamming` compares SimHashes, `signatures` counts part hashes in common,
        `none` switches the stage off
    similarity: least similarity of a duplicate, out of SIMILARITY_SCALE
    words: YAML text of a user's lists of words, which are added to the built-in lists
    details: whether verdicts show what differs (`Verdicts.details`)
    same_id: whether an alike message with the same id as the leader is dropped, or passes
    candidates: `index` looks candidates up: for text in bands and tables (its recall is measured), for
        hamming in tables (it finds all); `scan` compares each message with all kept ones
    bucket_load: expected number of entries of an 8-entry bucket when the window, or a segment of it, is full
    segment: for text: most kept messages of a segment; a larger window has several, each with buckets of its
        own (`window.segments`)
    memory: bytes up to which sealed segments that lie in files are held in memory too, as far as look-ups
        read them; no verdict depends on it
    distances: for hamming: steps (from_length, k), lengths ascending, k ≤ 7, or ≤ 12 with `scan`; from a body
        length of from_length on, k differing bits are allowed; shorter bodies than the first step are
        exact-only
    blocks: for hamming with `index`: number of parts into which a 64-bit fingerprint is cut, 0 for k + 2;
        there are C(blocks, k) tables
    distances_by_field: for hamming, in place of `distances`: k of the first and of the second SimHash of a
        message, both of which must hold; () if messages have one SimHash
    parts: for signatures: most part hashes of a message; share: hashes in common that make a duplicate
    threads: number of threads
    """

    method: Literal["text", "hamming", "signatures", "none"] = "text"
    similarity: int = 8_500
    window: Window = Window(1_000_000, 86_400_000)
    differences: Differences = Differences()  # noqa: RUF009 (a tuple)
    words: str = ""
    details: bool = False
    same_id: Literal["drop", "pass"] = "drop"
    candidates: Literal["index", "scan"] = "index"
    bucket_load: float = 8.4
    segment: int = MAX_SEGMENT
    memory: int = 0
    distances: tuple[tuple[int, int], ...] = ((8, 3),)
    blocks: int = 0
    distances_by_field: tuple[int, ...] = ()
    parts: int = 0
    share: int = 1
    threads: int = 1


@dataclass(frozen=True, slots=True)
class TimeConfig:
    """Settings of stream time, the latest message time so far.

    max_ahead_ms: a message time later than its arrival plus this is cut to that sum
    late: `insert`: late messages are treated like others; `judge`: late messages never become leaders
    late_after_ms: a message is late if its time is more than this behind stream time
    """

    max_ahead_ms: int = 300_000
    late: Literal["insert", "judge"] = "insert"
    late_after_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class SieveConfig:
    """Everything except the input that a verdict depends on.

    scheme_id: hash of everything that determines fingerprints (profile, features, seeds, Unicode tables); a
        saved state of another scheme is refused
    scoped: messages carry scopes, so the ring has a column for them
    key_is_text: the exact key is the key text; then a hit in the ring is confirmed by comparing texts
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

    kept: messages kept since the beginning; held: entries in the ring now; capacity: slots of the ring
    stream_time_ms, oldest_time_ms: stream time, and the time of the oldest entry in the ring; None if no
        message had a time
    bytes_used: bytes of all arrays in memory; they grow only until the window is full
    bytes_mapped: bytes of sealed segments that lie in files; the page cache holds what of them is in use
    segments: number of segments of the near window, the open one included
    """

    kept: int
    held: int
    capacity: int
    stream_time_ms: int | None
    oldest_time_ms: int | None
    bytes_used: int
    bytes_mapped: int = 0
    segments: int = 1
