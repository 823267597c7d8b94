"""Shows step by step how one pair of messages is judged, for `explain` and for errors in an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from twinsieve.stages.contract import (
    FULL,
    OFF,
    STORED_LENGTH,
    Batch,
    Bodies,
    Differences,
    ExactConfig,
    Fingerprints,
    Kind,
    NearConfig,
    SieveConfig,
    Window,
)
from twinsieve.stages.differ.difference import difference
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tokens import CHARACTER, Tokens, find_tokens
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.differ.workspace import new_differing
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.near.hamming import distances_of
from twinsieve.stages.near.verify import bag_bound
from twinsieve.stages.text.references import without_references
from twinsieve.stages.window.bucket_table import BucketTable
from twinsieve.stages.window.buckets import SIGNATURE_MASK, bucket_of, is_keyed
from twinsieve.stages.window.chunk import Chunk, whole_batch
from twinsieve.stages.window.lengths import signature_limits
from twinsieve.stages.window.record import RECORD

_MANY_BUCKETS = 2**24
"""With this many buckets, two different keys are nearly never in the same bucket."""


@dataclass(frozen=True, slots=True)
class PairReport:
    """How one pair is judged under one configuration, if the earlier message was kept.

    same_key: whether the exact keys are equal; eligible: whether the near stage compares both bodies
    matched, compared, similarity: of the bodies (0 if not eligible); estimated: a body is not stored whole
    length_ratio_ok, bag_bound_ok, signature_ok: whether the pair passes these filters, which come before the
        comparison of texts
    bands_shared, tables_shared: numbers of the MinHash bands and SimHash tables in which the later message
        finds the earlier one; if both are empty, the index does not find the pair
    simhash_distance: differing bits of 64, None without a SimHash; distance_limit: k for this pair (hamming)
    second_distance: differing bits of the second field's SimHash, None without one
    reason: rule that would keep the pair apart under `near.differences: full`; in_force: rule that keeps it
        apart under the configured level
    parts: the bodies side by side, in parts: (earlier, later, whether this part decides)
    verdict: verdict on the later message: unique, exact or near
    """

    same_key: bool
    eligible: bool
    matched: int
    compared: int
    similarity: float
    estimated: bool
    length_ratio_ok: bool
    bag_bound_ok: bool
    signature_ok: bool
    bands_shared: list[int]
    tables_shared: list[int]
    simhash_distance: int | None
    distance_limit: int
    second_distance: int | None
    reason: Rule
    in_force: Rule
    parts: list[tuple[str, str, bool]]
    verdict: str


def inspect_pair(
    bodies: Bodies, fingerprints: Fingerprints, config: SieveConfig, earlier: int, later: int
) -> PairReport:
    """The report on rows `earlier` and `later` of a batch. No state is changed."""
    pair = _pair(bodies, fingerprints, earlier, later)
    chunk = whole_batch(pair, config.layout, scoped=False)
    eligible = not bool(pair.bodies.exact_only.any())
    lengths = [int(length) for length in pair.bodies.body_lengths]
    matched = compared = 0
    full = in_force = Rule.NONE
    if eligible:
        everything = BatchSieve(_alone(config, similarity=1, differences=Differences(OFF))).judge(pair)
        matched, compared = int(everything.matched[1]), int(everything.compared[1])
        if matched:
            in_force = _reason(config, config.near.differences, pair)
            full = _reason(config, config.near.differences._replace(level=FULL), pair)
    similarity = matched / compared if compared else 0.0
    bands, tables = _shared(chunk, config) if eligible else ([], [])
    has_prints = bool(pair.fingerprints.has_simhash.all())
    distance = int(np.bitwise_count(chunk.simhashes[0, 0] ^ chunk.simhashes[1, 0])) if has_prints else None
    second = None
    if has_prints and len(config.near.distances_by_field) > 1:
        second = int(np.bitwise_count(chunk.simhashes[0, 1] ^ chunk.simhashes[1, 1]))
    steps = distances_of(config.near)
    judged = BatchSieve(_small(config)).judge(pair)
    return PairReport(
        same_key=bool((pair.fingerprints.digests[0] == pair.fingerprints.digests[1]).all()),
        eligible=eligible,
        matched=matched,
        compared=compared,
        similarity=similarity,
        estimated=eligible and max(lengths) > STORED_LENGTH,
        length_ratio_ok=2 * min(lengths) * 10_000 >= config.near.similarity * sum(lengths),
        bag_bound_ok=eligible and _bag_passes(chunk, lengths, config.near.similarity),
        signature_ok=eligible and _signature_passes(chunk, config.near, len(bands + tables)),
        bands_shared=bands,
        tables_shared=tables,
        simhash_distance=distance,
        distance_limit=int(steps[min(*lengths, len(steps) - 1)]),
        second_distance=second,
        reason=full,
        in_force=in_force,
        parts=aligned(pair.bodies, config.near) if eligible else [],
        verdict=Kind(int(judged.kinds[1])).name.lower(),
    )


def _reason(config: SieveConfig, differences: Differences, pair: Batch) -> Rule:
    judged = BatchSieve(_alone(config, differences=differences)).judge(pair)
    return Rule(int(judged.reasons[1]))


def aligned(bodies: Bodies, near: NearConfig) -> list[tuple[str, str, bool]]:
    """The bodies of row 0 (earlier) and row 1 (later) in parts: (earlier, later, whether this part decides).

    Parts that both bodies have alternate with parts in which they differ. Text that one body lacks is ""
    there.
    """
    phrases = phrases_of(near.words)
    work = new_differing()
    for tokens, row in ((work.earlier, 0), (work.later, 1)):
        start, length = int(bodies.starts[row]), int(bodies.body_lengths[row])
        head = min(length, STORED_LENGTH)
        tokens.chars[:head] = bodies.chars[start : start + head]
        tokens.word_starts[:head] = bodies.word_starts[start : start + head]
        find_tokens(tokens, head, length > head, phrases)
    _, deciding = difference(phrases, near.differences._replace(level=FULL), work)
    parts = []
    later_start = earlier_start = 0
    for number, run in enumerate(work.alignment.runs[: int(work.alignment.count[0])].tolist()):
        parts.append(
            (_shown(work.earlier, earlier_start, run[2]), _shown(work.later, later_start, run[0]), False)
        )
        parts.append(
            (_shown(work.earlier, run[2], run[3]), _shown(work.later, run[0], run[1]), number == deciding)
        )
        later_start, earlier_start = run[1], run[3]
    parts.append(
        (
            _shown(work.earlier, earlier_start, int(work.earlier.counts[0])),
            _shown(work.later, later_start, int(work.later.counts[0])),
            False,
        )
    )
    return parts


def readable_body(bodies: Bodies, row: int) -> str:
    """The body of a row; tokens of links, mentions and tags are shown as `[link]` and so on."""
    return without_references(bodies.text(row))


def _shown(tokens: Tokens, first: int, end: int) -> str:
    """Tokens as text that people can read: with blanks between words."""
    words: list[str] = []
    for number in range(first, end):
        text = "".join(map(chr, tokens.chars[tokens.starts[number] : tokens.starts[number + 1]].tolist()))
        if words and tokens.kinds[number] != CHARACTER and tokens.kinds[number - 1] != CHARACTER:
            words.append(" ")
        words.append(text)
    return "".join(words)


def _pair(bodies: Bodies, fingerprints: Fingerprints, earlier: int, later: int) -> Batch:
    rows = np.array([earlier, later])
    return replace(
        Batch.blank(2), positions=np.arange(2), bodies=bodies.take(rows), fingerprints=fingerprints.take(rows)
    )


def _small(config: SieveConfig) -> SieveConfig:
    """The same configuration with windows of two messages, which are enough for a pair."""
    window = Window(2)
    return replace(
        config,
        scoped=False,
        exact=replace(config.exact, window=window),
        near=replace(config.near, window=window, same_id="drop", threads=1),
    )


def _alone(config: SieveConfig, **near: object) -> SieveConfig:
    """A configuration that always compares the texts of the pair: without exact stage and candidate index."""
    rules: NearConfig = replace(
        _small(config).near,
        method="text",
        candidates="scan",
        **near,
    )
    return replace(_small(config), exact=ExactConfig(method="none"), near=rules)


def _shared(chunk: Chunk, config: SieveConfig) -> tuple[list[int], list[int]]:
    """(bands, tables) in which a look-up of the later row (1) reads the bucket of the earlier row (0)."""
    layout = config.layout
    empty = BucketTable(layout, 1, 1.0).buckets
    buckets = empty._replace(band_buckets=_MANY_BUCKETS, table_buckets=_MANY_BUCKETS)
    bands = [
        band
        for band in range(layout.bands)
        if bucket_of(chunk, 0, band, buckets) == bucket_of(chunk, 1, band, buckets)
    ]
    tables = []
    if min(chunk.probes) > layout.bands:
        for table in range(layout.tables):
            first = layout.bands + (table << layout.weak)
            own = bucket_of(chunk, 0, first, buckets)
            if any(bucket_of(chunk, 1, first + look, buckets) == own for look in range(1 << layout.weak)):
                tables.append(table)
    return bands, tables


def _bag_passes(chunk: Chunk, lengths: list[int], similarity: int) -> bool:
    if max(lengths) > STORED_LENGTH:
        return True
    # Kernels are compiled for bags in records.
    records = np.zeros(2, RECORD)
    records["bag"] = chunk.bags
    bound = bag_bound(chunk.bags, 0, lengths[0], records["bag"], 1, lengths[1])
    return 2 * int(bound) * 10_000 >= similarity * sum(lengths)


def _signature_passes(chunk: Chunk, near: NearConfig, look_ups: int) -> bool:
    """look_ups: how many find the earlier row"""
    keyed = is_keyed(min(near.window.messages, near.segment))
    limits = signature_limits(near.similarity, keyed=keyed)
    limit = int(limits[int(look_ups > 1), chunk.codes[1], chunk.codes[0]])
    differing = chunk.signatures[0] ^ chunk.signatures[1]
    if keyed:
        differing &= np.uint32(SIGNATURE_MASK)
    return int(np.bitwise_count(differing)) <= limit
