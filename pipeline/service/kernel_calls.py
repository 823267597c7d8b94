"""Calls with a few short texts that together use every kernel, so that all are compiled."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from twinsieve.pipeline.messages.reader import load_kernels
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.frozen import Frozen
from twinsieve.stages.judge.inspect import inspect_pair
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig
from twinsieve.stages.pairs.all_pairs import all_pairs
from twinsieve.stages.rows.record_batch import encode_batches
from twinsieve.stages.text.rules import TextConfig
from twinsieve.stages.window.segments import SealedSegment

_TEXTS = [
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
    encode_batches([0], [b"k"], [b"v"], [()], 1)


def _read_texts() -> None:
    for config in (
        SchemeConfig(text=TextConfig(compare=("links", "mentions", "tags"))),
        SchemeConfig(features=FeatureConfig("shingles", weights="tfidf", idf=(("a", 1.0),))),
    ):
        Scheme(config).read(_TEXTS)
    Scheme(SchemeConfig()).seen(_TEXTS[0])
    Scheme(SchemeConfig(), near=False).read(_TEXTS, _TEXTS)


def _judge_texts() -> None:
    _judge(SieveConfig())
    _judge(SieveConfig(near=NearConfig(segment=32, details=True)))


def _judge_hamming() -> None:
    _judge(SieveConfig(ExactConfig("trie"), NearConfig("hamming")))


def _judge_signatures() -> None:
    _judge(SieveConfig(ExactConfig("none"), NearConfig("signatures", parts=2)))


def _search_pairs() -> None:
    all_pairs(np.array([3, 3, 2], np.uint64), 1, 9)


CALLS = (_read_rows, _read_texts, _judge_texts, _judge_hamming, _judge_signatures, _search_pairs)


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
    sieve.pushed_out(9)
    BatchSieve(config).apply(batch, verdicts)
    frozen, stream = sieve.freeze((), sieve.stats().kept), io.BytesIO()
    frozen.write(stream)
    stream.seek(0)
    BatchSieve.load(stream, config, parts=_Parts(frozen)).judge(batch)
    inspect_pair(bodies, prints, config, 0, 1)
