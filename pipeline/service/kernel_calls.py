"""Calls with a few short texts that together use every kernel, so that all are compiled."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from twinsieve.pipeline.broker.records import Copies, Partition, Records
from twinsieve.pipeline.messages.reader import hash_scopes, load_kernels
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.bloom_kernel import add_batch, contains_batch
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.hashing import Hash
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.frozen import Frozen
from twinsieve.stages.judge.inspect import inspect_pair
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.near_window import NearWindow
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig
from twinsieve.stages.judge.segment_reader import SegmentReader
from twinsieve.stages.near.answers import GROUPS
from twinsieve.stages.near.sound_answers import STATUSES, is_sound
from twinsieve.stages.pairs.all_pairs import all_pairs
from twinsieve.stages.rows.key_partitions import partitions_of
from twinsieve.stages.rows.record_copies import copy_records
from twinsieve.stages.text.rules import TextConfig
from twinsieve.stages.window.chunk import whole_batch
from twinsieve.stages.window.segments import SealedSegment

_TEXTS = [
    "今日新增确诊12例，无新增死亡病例，请大家继续做好个人防护，不要聚集，勤洗手，多通风",
    "武汉加油，中国加油！" * 8,
    "武汉加油，中国加油！" * 8 + "。",
    "加油",
    "一个普通的句子12" * 99,
    "一个普通的句子13" * 99,
    "一个普通的句子：ＡＢ１２，e\u0301 ß https://t.cn/a @某人 #标签#",
]
_SMALL = Window(64)


def _read_rows() -> None:
    load_kernels()
    hash_scopes([("a",)] * 2, Hash.of("scope", b"a secret"))
    records = Records.of(Partition("", 0), [0, 1], keys=[b"k", None], headers=[(("a", b"b"),), ()])
    table = HeaderTable(2)
    table.add("name", texts=table.number_of(b"text"), numbers=7)
    copies = Copies(records, np.arange(2), table.headers())
    copy_records([copies.copied(0)], 1)
    partitions_of(records.values.joined(copies.keys), 2)


def _read_texts() -> None:
    for config in (
        SchemeConfig(text=TextConfig(compare=("links", "mentions", "tags"))),
        SchemeConfig(features=FeatureConfig("shingles", weights="tfidf", idf=(("a", 1.0),))),
        SchemeConfig(features=FeatureConfig("keywords")),
    ):
        Scheme(config).read(_TEXTS)
    Scheme(SchemeConfig()).seen(_TEXTS[0])
    Scheme(SchemeConfig(), near=False).read(_TEXTS, _TEXTS)


def _judge_texts() -> None:
    _judge(SieveConfig())
    _judge(SieveConfig(near=NearConfig(segment=3, details=True)))


def _judge_hamming() -> None:
    _judge(SieveConfig(ExactConfig("trie"), NearConfig("hamming")))


def _judge_signatures() -> None:
    _judge(SieveConfig(ExactConfig("none"), NearConfig("signatures", parts=2)))


def _fill_filters() -> None:
    generations, keys, rows = (
        BloomGenerations(_SMALL, 1e-6),
        np.zeros((3, 2), np.uint64),
        np.zeros(3, np.int64),
    )
    add_batch(generations.bloom, keys, rows, rows)
    contains_batch(generations.bloom, keys, np.zeros(3, np.bool_))
    generations.note(0, keys)
    BloomGenerations.from_sections(generations.freeze().whole(), _SMALL, 1e-6)


def _search_pairs() -> None:
    all_pairs(np.array([3, 3, 2], np.uint64), 1, 9)


CALLS = (
    _read_rows,
    _read_texts,
    _judge_texts,
    _judge_hamming,
    _judge_signatures,
    _fill_filters,
    _search_pairs,
)


class _Parts:
    """The parts of a state, taken from memory (`SavedParts`)."""

    def __init__(self, frozen: Frozen) -> None:
        self._frozen = frozen

    def sections(self, name: str) -> Sections:
        return self._frozen.parts[name]()

    def segments(self) -> Iterable[SealedSegment]:
        return ()

    def kept_messages(self) -> Iterable[tuple[int, KeptMessages]]:
        return ()


def _judge(config: SieveConfig) -> None:
    """Judge, apply, save and load the texts with small windows, and explain a pair."""
    signature = SignatureConfig("sentences", 2, joined=False) if config.near.method == "signatures" else None
    bodies, prints = Scheme(SchemeConfig(signature=signature)).read(_TEXTS * 16)
    batch = replace(Batch.blank(len(bodies)), bodies=bodies, fingerprints=prints)
    exact, near = replace(config.exact, window=_SMALL), replace(config.near, window=_SMALL)
    config = replace(config, exact=exact, near=near)
    sieve = BatchSieve(config)
    verdicts = sieve.judge(batch)
    # Similar to sealed messages, and kept apart from them.
    others, other_prints = Scheme(SchemeConfig(signature=signature)).read(
        [text.replace("1", "2") for text in _TEXTS]
    )
    sieve.judge(replace(Batch.blank(len(others)), bodies=others, fingerprints=other_prints))
    if sieve.near.segments.sealed:
        reader = SegmentReader(config)
        answers = {each.id: reader.answer(batch, each) for each in sieve.near.segments.sealed}
        sieve.judge(batch, answers=answers)
        for answer in answers.values():
            counts = [[len(getattr(answer, names[0]))] for names in GROUPS]
            rows, spans = np.full(1, len(batch), np.int64), np.zeros((2, 1), np.int64)
            is_sound(answer, np.array(counts, np.int64), rows, spans, STATUSES)
    sieve.pushed_out(config.layout.bands)
    sieve.forget(np.zeros(1, np.int64), np.zeros(1, np.uint64))
    NearWindow(config).keep_again([whole_batch(batch, config.layout, scoped=False)])
    BatchSieve(config).apply(batch, verdicts)
    frozen, stream = sieve.freeze((), sieve.stats().kept), io.BytesIO()
    frozen.write(stream)
    stream.seek(0)
    BatchSieve.load(stream, config, parts=_Parts(frozen)).judge(batch)
    inspect_pair(bodies, prints, config, 0, 1)
