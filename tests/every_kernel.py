"""Runs everything that calls a kernel: `python -m tests.every_kernel` says what was compiled, and how often.

Prints one JSON object: of each kernel that is kept on disk, `module.name`, how many specialisations this process had to compile.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator

import numpy as np
from numba.core.dispatcher import Dispatcher

from tests.golden.make import SCHEME, golden_answers
from tests.stages.exact.filters import add, contains
from tests.whole_state import from_bytes, to_bytes
from twinsieve.pipeline.broker.records import Copies, Partition, Records
from twinsieve.pipeline.messages.reader import hash_ids, hash_scopes
from twinsieve.pipeline.wire.segment_answers import decode_answers, encode_answers
from twinsieve.stages.contract import (
    NO_TIME,
    Batch,
    Bodies,
    ExactConfig,
    Fingerprints,
    NearConfig,
    SieveConfig,
    Window,
)
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.bloom_kernel import bloom_expire
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.hashing import Hash
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.inspect import inspect_pair
from twinsieve.stages.judge.near_window import NearWindow
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig
from twinsieve.stages.kernel.kept import KeptKernel
from twinsieve.stages.pairs.all_pairs import all_pairs
from twinsieve.stages.rows.byte_column import ByteColumn
from twinsieve.stages.rows.key_partitions import partitions_of
from twinsieve.stages.rows.record_copies import AddedHeaders, copy_records
from twinsieve.stages.rows.times import read_times
from twinsieve.stages.text.rules import TextConfig
from twinsieve.stages.window.chunk import whole_batch

TEXTS = [
    "武汉加油，中国加油！" * 8,
    "武汉加油，中国加油！" * 8 + "。",
    "加油",
    "",
    "一个普通的句子12" * 99,
    "一个普通的句子13" * 99,
    "新增确诊12例，今天新增出院的病人不少 http://t.cn/A6 @某人 #战疫#",
    "新增确诊15例，今天新增出院的病人不少 网页链接 L某某的微博视频 2北京·朝阳",
    "RT @someone: ＴＨＥ ferry of the café is ﬁnally late, 1,500 people wait",
    "The bridge over the straße is closed until Friday e\u0301\u0302, take the ferry",
]

SCHEMES = [
    SchemeConfig(),
    SchemeConfig(text=TextConfig(profile="plain"), digest=DigestConfig("blake2b", Secret.of_seed(1))),
    SchemeConfig(digest=DigestConfig(secret=Secret.of_seed(1))),
    SchemeConfig(text=TextConfig(body_rule="letters", drop=("加油",))),
    SchemeConfig(text=TextConfig(compare=("links", "mentions", "tags"))),
    SchemeConfig(features=FeatureConfig(features="keywords")),
    SchemeConfig(
        features=FeatureConfig(features="shingles", unit="words", width=3, min_features=2, weights="position")
    ),
    SchemeConfig(features=FeatureConfig(weights="tfidf", idf=(("武汉", 1.0),))),
    SchemeConfig(features=FeatureConfig(weights="none")),
    SchemeConfig(signature=SignatureConfig()),
]

_SMALL, _LARGE = Window(64, 1_000), Window(640, 1_000)


def main() -> None:
    """Run everything, then print what was compiled."""
    every_scheme()
    every_row()
    every_sieve()
    filters()
    all_pairs(np.array([3, 3, 2], np.uint64), 1, 9)
    print(json.dumps(dict(_compiled())))


def every_row() -> None:
    """Read times, hash ids and scopes, read and write record batches."""
    hash_ids(["a"], Hash.of("id"))
    hash_scopes([["a"]], Hash.of("scope", b"1"))
    read_times(["2024-02-29T08:00:00.004+08:00", "soon"])
    headers = [[("n", b"t"), ("n", None)], []]
    records = Records.of(Partition("in", 0), [7, 8], [1, 2], [None, b"k"], [b"v", b""], headers)
    assert records.columns.epochs.tolist() == [-1, -1]
    for added in (AddedHeaders.none(2), _added()):
        copy_records([Copies(records, np.arange(2), added).copied(3)], 1)
    partitions_of(records.keys.joined(records.values[:1]), 3)
    partitions_of(ByteColumn.of([b"key", None]), 3)
    ByteColumn.of([b"key"]).joined(records.keys.joined())


def _added() -> AddedHeaders:
    numbers = np.zeros((2, 1), np.int32)
    return AddedHeaders.of([b"name"], numbers, numbers, numbers.astype(np.int64), [2])


def every_scheme() -> None:
    """Read the texts in every way."""
    for config in SCHEMES:
        Scheme(config).read(TEXTS)
    Scheme(SchemeConfig()).seen(TEXTS[0])
    Scheme(SchemeConfig(), near=False).read(TEXTS, TEXTS)


def every_sieve() -> None:
    """Judge, apply, save, load and freeze with every method; explain pairs."""
    bodies, prints = Scheme(SchemeConfig(signature=SignatureConfig("sentences", 2, joined=False))).read(TEXTS)
    for near in ("text", "hamming", "signatures", "none"):
        for exact in ("bloom", "trie", "none"):
            config = SieveConfig(
                exact=ExactConfig(method=exact, window=_SMALL),
                near=NearConfig(method=near, window=_SMALL, parts=2),
            )
            _use(config, _batch(bodies, prints))
    _use(SieveConfig(near=NearConfig(window=_SMALL, candidates="scan"), scoped=True), _batch(bodies, prints))
    _use(SieveConfig(near=NearConfig("hamming", window=_SMALL, candidates="scan")), _batch(bodies, prints))
    _use(SieveConfig(near=NearConfig(window=_SMALL, threads=2, same_id="pass")), _batch(bodies, prints))
    _use(SieveConfig(near=NearConfig(window=_SMALL, segment=3, details=True)), _batch(bodies, prints))
    for earlier, later in ((0, 1), (4, 5), (6, 7)):
        for near in ("text", "hamming", "signatures"):
            inspect_pair(bodies, prints, SieveConfig(near=NearConfig(method=near, parts=2)), earlier, later)


def _restored(generations: BloomGenerations) -> BloomGenerations:
    return BloomGenerations.from_sections(generations.freeze().whole(), _SMALL, 1e-6)


def filters() -> None:
    """Use the small parts that have entries of their own."""
    generations = BloomGenerations(_SMALL, 1e-6)
    add(generations, np.zeros((3, 2), np.uint64))
    assert contains(generations, np.zeros((3, 2), np.uint64)).all()
    generations.note(0, np.zeros((3, 2), np.uint64))
    assert contains(_restored(generations), np.zeros((3, 2), np.uint64)).all()
    bloom_expire(generations.bloom, 3, 5)
    (record,) = encode_answers(SCHEME, golden_answers(), 1 << 20)
    decode_answers(SCHEME, record, "here")


def _use(config: SieveConfig, batch: Batch) -> None:
    sieve = BatchSieve(config)
    verdicts = sieve.judge(batch)
    # Each row alone: messages in sealed segments are like it, and some of them give other numbers.
    for row in reversed(range(len(batch))):
        sieve.judge(batch.slice(row, row + 1))
    sieve.forget(batch.positions[:1], batch.fingerprints.digests[:1, 0])
    NearWindow(config).keep_again([whole_batch(batch, config.layout, scoped=config.scoped)])
    sieve.freeze()
    sieve.pushed_out(99)
    BatchSieve(config).apply(batch, verdicts)
    from_bytes(to_bytes(sieve), config).judge(batch)


def _batch(bodies: Bodies, prints: Fingerprints) -> Batch:
    n = len(bodies)
    times = np.full(n, NO_TIME, np.int64)
    times[n // 2 :] = 5
    zeros = np.zeros(n, np.uint64)
    return Batch(np.arange(n, dtype=np.int64), times, times, times, zeros, zeros, bodies, prints)


def _compiled() -> Iterator[tuple[str, int]]:
    for each in gc.get_objects():
        if isinstance(each, Dispatcher) and isinstance(each._cache, KeptKernel):
            function = each.py_func
            yield f"{function.__module__}.{function.__qualname__}", sum(each.stats.cache_misses.values())


if __name__ == "__main__":
    main()
