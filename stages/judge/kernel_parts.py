"""All kernels, grouped into parts that several processes can compile at the same time.

A part compiles kernels that Python calls, and with them the kernels that these call, for the argument types
of the program. Parts that read texts run on a short text; the other kernels are compiled for placeholder
arguments of the right types. tests/stages/test_kernels.py checks that afterwards no kernel is left to
compile, and that no kernel was compiled without need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, get_args

import numpy as np

from twinsieve.stages.contract import BandLayout, Batch, Bodies, Differences, Fingerprints, SieveConfig
from twinsieve.stages.differ.difference import difference
from twinsieve.stages.differ.tails import fill_tallies
from twinsieve.stages.differ.tokens import find_tokens
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.exact.bloom_kernel import (
    add_batch,
    bloom_expire,
    bloom_fill,
    bloom_insert,
    bloom_prefetch,
    contains_batch,
    find_places,
)
from twinsieve.stages.exact.trie_head import TrieHead
from twinsieve.stages.fingerprint.config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.simhash import SimhashColumns, add_bits, bits_of, fill_packed_simhashes
from twinsieve.stages.fingerprint.tokens import term_hashes
from twinsieve.stages.judge.chunk_judge import no_bloom, no_trie_hits, ring_use
from twinsieve.stages.judge.decide import Workspace, decide
from twinsieve.stages.judge.decide_exact import judge_exact
from twinsieve.stages.judge.kept_rows import new_kept_rows
from twinsieve.stages.judge.params import ExactIndex, JudgeParams, Outcome, new_sealed_copies
from twinsieve.stages.judge.sealed_copies import find_copies, mark_copies
from twinsieve.stages.judge.sealed_details import write_sealed_detail
from twinsieve.stages.kernel import Kernel
from twinsieve.stages.near.hamming import link_kept, no_chains, propose_bits
from twinsieve.stages.near.matches import new_matches
from twinsieve.stages.near.propose import CandidateParams, NearIndex, propose, propose_row
from twinsieve.stages.near.signatures import link_all, new_part_chains
from twinsieve.stages.near.verify import VerifyParams, bag_bound, new_scratch
from twinsieve.stages.pairs.all_pairs import Search, all_pairs
from twinsieve.stages.rows.members import find_members, strings_of
from twinsieve.stages.rows.record_batch import encode_batches
from twinsieve.stages.rows.strings import Strings
from twinsieve.stages.rows.times import read_times
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig
from twinsieve.stages.window.bucket_table import BucketTable
from twinsieve.stages.window.buckets import bucket_of, insert_kept, write_lists, write_table
from twinsieve.stages.window.chunk import Chunk, whole_batch
from twinsieve.stages.window.pushed_out import PushedOut
from twinsieve.stages.window.ring import Ring, keep, keep_all, new_counters
from twinsieve.stages.window.tags import _insert_ring, tag_find_all

_TEXT = "一个普通的句子：ＡＢ１２，e\u0301 ß https://t.cn/a @某人 #标签#"


class Part(NamedTuple):
    """A group of kernels.

    name: shown to people; after: parts to compile before, because this part loads the kernels of those
    compile: compiles the group
    """

    name: str
    after: tuple[str, ...]
    compile: Callable[[], None]


class _Arguments(NamedTuple):
    """A placeholder for each argument type of the sieve's kernels."""

    chunk: Chunk
    index: NearIndex
    exact: ExactIndex
    params: JudgeParams
    work: Workspace
    outcome: Outcome


def _compile(function: Any, *arguments: Any) -> None:
    """Compile or load a kernel for the types of these arguments. With NUMBA_DISABLE_JIT it does nothing."""
    if isinstance(function, Kernel):
        function.compile_for(*arguments)


def _arguments() -> _Arguments:
    config = SieveConfig()
    index = NearIndex(
        first=0,
        before=0,
        ring=Ring(1, 1, ring_use(config), new_counters()).columns,
        buckets=BucketTable(config.layout, 1, 1.0).buckets,
        chains=no_chains(),
        part_chains=new_part_chains(1, 1),
        candidates=CandidateParams(np.zeros((2, 256, 256), np.int8), np.zeros((256, 3), np.uint64), 0, 0, 0),
        verify=VerifyParams(0, Differences(), 0, 0, 1),
    )
    matches = new_matches(1, 1)
    times = np.zeros(1, np.int64)
    bytes_, counts = np.zeros(1, np.uint8), np.zeros(1, np.int32)
    return _Arguments(
        chunk=whole_batch(_batch(), config.layout, scoped=False),
        index=index,
        exact=ExactIndex(no_bloom(), no_trie_hits(), new_sealed_copies(0)),
        params=JudgeParams(*[0] * len(JudgeParams._fields)),
        work=Workspace(matches, 0, 0, times, new_scratch(phrases_of(), 0), new_kept_rows(1)),
        outcome=Outcome(bytes_, bytes_, times, counts, counts, bytes_, times, np.zeros((1, 2, 0), np.uint32)),
    )


def _batch() -> Batch:
    """A batch of two rows with any content."""
    return replace(Batch.blank(2), bodies=_bodies(), fingerprints=_prints())


def _bodies() -> Bodies:
    chars = np.full(600, ord("字"), np.uint32)
    lengths = np.full(2, 300, np.int32)
    return Bodies(
        chars, np.array([0, 300, 600]), np.zeros(600, np.uint8), lengths, lengths, np.zeros(2, np.bool_)
    )


def _prints() -> Fingerprints:
    layout = BandLayout()
    return Fingerprints.blank(2, dims={"tables": layout.tables, "weak": layout.weak, "bands": layout.bands})


def _compile_rows() -> None:
    row = b'{"a":"b"}'
    Strings(strings_of(row, find_members(row, np.array([len(row)]), ["a"]), 0), 1).code_points()
    read_times([""])
    encode_batches([0], [row], [row], [()], len(row))


def _compile_text() -> None:
    Normalizer(TextConfig(compare=("links", "mentions", "tags"))).bodies([_TEXT])


def _compile_fingerprints() -> None:
    maker = Fingerprinter(FeatureConfig(), BandLayout(), DigestConfig())
    maker.fingerprints(_bodies())
    maker.packed_features(_bodies())
    marks = Fingerprinter(FeatureConfig("punctuation"), BandLayout(), DigestConfig())
    marks.packed_features(_bodies(), [_TEXT] * 2)
    maker.digests_alone(_bodies(), [_TEXT, _TEXT])
    bodies, prints = _bodies(), _prints()
    seeds, counts = np.zeros(3, np.uint64), np.zeros(2, np.int64)
    columns = SimhashColumns(prints.simhashes, prints.has_simhash, prints.weak_bits)
    _compile(fill_packed_simhashes, seeds, counts, counts, seeds, 0, columns)
    _compile(add_bits, seeds[0], 0, counts, 0)
    _compile(bits_of, counts, 0)
    _compile(term_hashes, bodies.chars, bodies.starts, bodies.word_starts, True, seeds[0], seeds, counts)


def _compile_differences() -> None:
    given = _arguments()
    scratch = given.work.scratch
    _compile(difference, scratch.phrases, given.index.verify.limits, scratch.differing)
    _compile(find_tokens, scratch.differing.later, 0, False, scratch.phrases)
    _compile(
        write_sealed_detail,
        given.chunk, 0, given.index.ring, 0, given.index.verify, scratch, given.outcome,
    )  # fmt: skip
    long = _bodies()
    long.body_lengths[0] = len(long.chars)
    fill_tallies(long, np.zeros(2, np.uint64))


def _compile_candidates() -> None:
    given = _arguments()
    _compile(propose_row, given.chunk, 0, given.index, given.work.scratch, given.work.matches, 0, 0)


def _compile_index() -> None:
    given = _arguments()
    rows, times, buckets = given.work.kept.rows, given.chunk.times, given.index.buckets
    _compile(propose, 0, 0, given.chunk, given.index, given.work.scratch, given.work.matches, 0, 0)
    _compile(insert_kept, given.chunk, rows, times, 0, 0, 0, buckets, given.work.scratch.look_ups)
    _compile(write_table, buckets, buckets.entries)
    _compile(write_lists, buckets.entries, times, buckets)
    _compile(bucket_of, given.chunk, 0, 0, buckets)
    _compile(find_copies, 0, 0, given.chunk, given.index.ring, 0, 0, given.exact.sealed)
    _compile(
        mark_copies, 0, 0, given.chunk, given.index.ring, given.params, given.exact.sealed, given.work.matches
    )
    _compile(bag_bound, given.chunk.bags, 0, 0, given.index.ring.bags, 0, 0)
    PushedOut().count(given.index.ring, buckets, buckets.bands, 0, 0)


def _compile_hamming() -> None:
    given = _arguments()
    rows, times = given.work.kept.rows, given.chunk.times
    _compile(propose_bits, 0, 0, given.chunk, given.index, given.work.scratch, given.work.matches, 0, 0)
    _compile(link_kept, given.chunk, rows, times, 0, 0, 0, given.index.chains)
    _compile(link_all, given.index.part_chains, given.index.ring)


def _compile_pairs() -> None:
    two = np.array([0, 1], np.uint64)
    for search in get_args(Search):
        all_pairs(two, 1, 1, search)


def _compile_exact() -> None:
    given = _arguments()
    ring, bloom, digests = given.index.ring, given.exact.bloom, given.chunk.digests
    digest = digests[0, 0]
    _compile(judge_exact, given.chunk, 0, ring, given.exact, given.params, given.outcome)
    _compile(keep, ring, given.chunk, 0)
    _compile(keep_all, ring, given.chunk)
    _compile(find_places, bloom, digest, digest, 0)
    _compile(bloom_prefetch, bloom, 0)
    _compile(bloom_insert, bloom, 0, 0, 0)
    _compile(bloom_expire, bloom, 0, 0)
    _compile(contains_batch, bloom, digests, given.chunk.has_simhash)
    _compile(add_batch, bloom, digests, given.chunk.times, given.chunk.times)
    _compile(bloom_fill, bloom, 0, np.zeros(1, np.uint64), np.zeros(1, np.uint16))
    _compile(_insert_ring, ring.tag_slots, 0, ring.tags, 0, 0)
    _compile(tag_find_all, ring.tag_slots, ring.tags, ring.tags, given.chunk.positions)
    head = TrieHead(1)
    head.add(head.entries)
    head.find(digests)


def _compile_verdicts() -> None:
    _compile(decide, *_arguments(), 0)


PARTS = (
    Part("differences", (), _compile_differences),
    Part("candidates", ("differences",), _compile_candidates),
    Part("exact", (), _compile_exact),
    Part("hamming", (), _compile_hamming),
    Part("verdicts", ("candidates", "exact", "hamming"), _compile_verdicts),
    Part("fingerprints", (), _compile_fingerprints),
    Part("pairs", ("hamming",), _compile_pairs),
    Part("text", (), _compile_text),
    Part("rows", (), _compile_rows),
    Part("index", ("candidates",), _compile_index),
)
"""In the order in which processes start them: first parts that others wait for, then parts that take long."""
