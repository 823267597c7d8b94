"""All kernels in parts that may be compiled at the same time, each in a process of its own.

A part compiles kernels that Python calls, and so what these call, for the types they are called with. Parts
that read texts run on a few; the others are compiled for arguments of the right types without content.
tests/stages/test_kernels.py holds that nothing is left to compile then, and nothing was compiled in vain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import typeof as _typeof

from twinsieve.stages.contract import BandLayout, Batch, Bodies, Fingerprints, SieveConfig
from twinsieve.stages.exact.bloom_kernel import (
    Bloom,
    add_batch,
    bloom_expire,
    bloom_insert,
    bloom_prefetch,
    contains_batch,
)
from twinsieve.stages.exact.trie_head import TrieHead
from twinsieve.stages.fingerprint.digest import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.simhash import fill_packed_simhashes
from twinsieve.stages.fingerprint.tokens import term_hashes
from twinsieve.stages.judge.all_pairs import all_pairs
from twinsieve.stages.judge.decide import decide
from twinsieve.stages.judge.decide_exact import judge_exact
from twinsieve.stages.judge.engine import no_bloom, nothing_sealed, ring_use
from twinsieve.stages.judge.local import Local, add_kept, clear, new_local
from twinsieve.stages.judge.policy import Outcome, Policy, Sealed
from twinsieve.stages.near.bucket_table import BucketTable
from twinsieve.stages.near.buckets import Buckets, bucket_of, insert_kept
from twinsieve.stages.near.hamming import Chains, link_kept, no_chains, propose_bits
from twinsieve.stages.near.propose import Matches, Search, new_matches, propose, propose_row
from twinsieve.stages.near.resize import _resize
from twinsieve.stages.near.verify import Rules, Scratch, bag_bound, new_scratch
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig
from twinsieve.stages.window.chunk import Chunk, whole_batch
from twinsieve.stages.window.ring import Ring, RingColumns, keep
from twinsieve.stages.window.tags import _insert_ring

typeof: Any = _typeof  # untyped in Numba

_TEXT = "一个普通的句子：ＡＢ１２，e\u0301 ß https://t.cn/a @某人 #标签#"


class Part(NamedTuple):
    """name: for people; after: parts that compile what this one calls and then loads; compile: does it."""

    name: str
    after: tuple[str, ...]
    compile: Callable[[], None]


class _Arguments(NamedTuple):
    """One argument of each type that the kernels of the near stage take."""

    chunk: Chunk
    ring: RingColumns
    bloom: Bloom
    sealed: Sealed
    buckets: Buckets
    chains: Chains
    search: Search
    rules: Rules
    policy: Policy
    matches: Matches
    scratch: Scratch
    local: Local
    outcome: Outcome


def _compile(function: Any, *arguments: Any) -> None:
    """Compile a kernel for arguments of these types, or load it. With NUMBA_DISABLE_JIT: nothing to do."""
    if hasattr(function, "compile"):
        function.compile(tuple(typeof(one) for one in arguments))


def _arguments() -> _Arguments:
    config = SieveConfig()
    return _Arguments(
        chunk=whole_batch(_batch(), config.layout, scoped=False),
        ring=Ring(1, ring_use(config)).columns,
        bloom=no_bloom(),
        sealed=nothing_sealed(),
        buckets=BucketTable(config.layout, 1, 1.0).buckets,
        chains=no_chains(),
        search=Search(np.zeros((256, 256), np.int8), 0, 0),
        rules=Rules(*[0] * len(Rules._fields)),
        policy=Policy(*[0] * len(Policy._fields)),
        matches=new_matches(1, 1),
        scratch=new_scratch(),
        local=new_local(1, 1),
        outcome=Outcome(
            np.zeros(1, np.uint8),
            np.zeros(1, np.uint8),
            np.zeros(1, np.int64),
            np.zeros(1, np.int32),
            np.zeros(1, np.int32),
        ),
    )


def _batch() -> Batch:
    """Two rows; what they hold plays no part."""
    none, zeros = np.zeros(2, np.int64), np.zeros(2, np.uint64)
    return Batch(none, none, none, zeros, zeros, _bodies(), _prints())


def _bodies() -> Bodies:
    chars = np.full(600, ord("字"), np.uint32)
    lengths = np.full(2, 300, np.int32)
    return Bodies(
        chars, np.array([0, 300, 600]), np.zeros(600, np.uint8), lengths, lengths, np.zeros(2, np.bool_)
    )


def _prints() -> Fingerprints:
    layout = BandLayout()
    return Fingerprints(
        digests=np.zeros((2, 2), np.uint64),
        simhashes=np.zeros((2, 2), np.uint64),
        has_simhash=np.zeros(2, np.bool_),
        weak_bits=np.zeros((2, layout.tables, layout.weak), np.uint8),
        band_keys=np.zeros((2, layout.bands), np.uint32),
        bags=np.zeros((2, 32), np.uint8),
        signatures=np.zeros(2, np.uint32),
        sketches=np.zeros((2, 64), np.uint8),
        sketch_rows=np.zeros(2, np.int32),
    )


def _compile_text() -> None:
    Normalizer(TextConfig()).bodies([_TEXT])


def _compile_fingerprints() -> None:
    Fingerprinter(FeatureConfig(), BandLayout(), DigestConfig()).fingerprints(_bodies())
    bodies, prints = _bodies(), _prints()
    seeds, counts = np.zeros(3, np.uint64), np.zeros(2, np.int64)
    _compile(
        fill_packed_simhashes,
        seeds,
        counts,
        counts,
        seeds,
        0,
        prints.simhashes,
        prints.has_simhash,
        prints.weak_bits,
    )
    _compile(term_hashes, bodies.chars, bodies.starts, bodies.word_starts, True, seeds[0], seeds, counts)


def _compile_candidates() -> None:
    it = _arguments()
    _compile(
        propose_row, it.chunk, 0, 0, it.ring, it.buckets, it.search, it.rules, it.scratch, it.matches, 0, 0
    )


def _compile_index() -> None:
    it = _arguments()
    rows, kept = it.local.kept_rows, it.local.kept_indices
    _compile(propose, 0, 0, it.chunk, it.ring, it.buckets, it.search, it.rules, it.scratch, it.matches, 0, 0)
    _compile(insert_kept, it.chunk, rows, kept, 0, 0, 0, it.buckets)
    _compile(clear, it.local)
    _compile(bucket_of, it.chunk, 0, 0, it.buckets)
    _compile(bag_bound, it.chunk.bags, 0, 0, it.chunk.bags, 0, 0)
    entries = it.buckets.entries
    _compile(_resize, entries, 0, entries, 0, 0, 0, 0, kept)


def _compile_hamming() -> None:
    it = _arguments()
    seen = it.scratch.seen
    _compile(propose_bits, 0, 0, it.chunk, it.ring, it.chains, 0, it.rules, seen, it.matches, 0, 0)
    _compile(link_kept, it.chunk, it.local.kept_rows, it.local.kept_indices, 0, 0, 0, it.chains)
    all_pairs(np.zeros(2, np.uint64), 1, 1)


def _compile_exact() -> None:
    it = _arguments()
    digest = it.chunk.digests[0, 0]
    _compile(judge_exact, it.chunk, 0, it.ring, it.bloom, it.sealed, it.policy, it.outcome)
    _compile(keep, it.ring, it.chunk, 0)
    _compile(add_kept, it.local, it.chunk, 0, 0, it.buckets, True)
    _compile(bloom_prefetch, it.bloom, digest, digest)
    _compile(bloom_insert, it.bloom, digest, digest, 0, 0)
    _compile(bloom_expire, it.bloom, 0, 0)
    found, times = it.chunk.has_simhash, it.chunk.times
    _compile(contains_batch, it.bloom, it.chunk.digests, found)
    _compile(add_batch, it.bloom, it.chunk.digests, times, times)
    _compile(_insert_ring, it.ring.tag_slots, 0, it.ring.tags, 0, 0)
    head = TrieHead(1)
    head.add(head.entries)
    head.find(it.chunk.digests)


def _compile_verdicts() -> None:
    it = _arguments()
    _compile(
        decide,
        it.chunk,
        it.ring,
        it.bloom,
        it.sealed,
        it.buckets,
        it.chains,
        it.search,
        it.rules,
        it.policy,
        it.matches,
        it.matches,
        it.scratch,
        it.local,
        it.outcome,
    )


PARTS = (
    Part("candidates", (), _compile_candidates),
    Part("exact", (), _compile_exact),
    Part("hamming", (), _compile_hamming),
    Part("verdicts", ("candidates", "exact", "hamming"), _compile_verdicts),
    Part("fingerprints", (), _compile_fingerprints),
    Part("text", (), _compile_text),
    Part("index", ("candidates",), _compile_index),
)
"""In the order in which processes take them: first what others wait for, then the long ones."""
