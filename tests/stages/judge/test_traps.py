"""Traps that real posts and hostile ones set, each through the whole way from text to verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.twins import batch_of
from twinsieve.stages.contract import (
    MAX_SEGMENT,
    MAX_WINDOW,
    NO_TIME,
    OFF,
    Batch,
    Differences,
    ExactConfig,
    Flag,
    Kind,
    NearConfig,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.window.ring import KEPT

_SCHEME = Scheme(SchemeConfig())
_CONFIG = SieveConfig(ExactConfig(window=Window(1000)), NearConfig(window=Window(1000)))


def _batch(texts: list[str], times_ms: object = NO_TIME) -> Batch:
    return batch_of(*_SCHEME.read(texts), times=times_ms)


def _judge(texts: list[str], config: SieveConfig = _CONFIG) -> Verdicts:
    return BatchSieve(config).judge(_batch(texts))


def _kinds(texts: list[str], config: SieveConfig = _CONFIG) -> list[str]:
    return [Kind(kind).name.lower() for kind in _judge(texts, config).kinds.tolist()]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1380013800", "1380013801"),
        ("2020 02 12 10 30 55", "2020 02 12 10 30 56"),
        ("新增病例1.5万例左右", "新增病例15万例左右"),
        ("比分最后定格在2:11", "比分最后定格在21:1"),
        ("👍", "👎"),
        ("👍👍", "👍"),
        ("की", "का"),
        ("क्या आप कल आ रहे हैं", "क्या आप कल आ रही हूँ"),
        ("新增确诊12例，请大家注意防护", "新增确诊15例，请大家注意防护"),
        ("欢乐大本营精彩回顾第12期", "欢乐大本营精彩回顾第13期"),
        ("长 O新冠病毒疫苗可能在18个月内完成，你觉得这个时间是长还是短？", "短 O新冠病毒疫苗可能在18个月内完成，你觉得这个时间是长还是短？"),
        ("#武汉加油#", "#中国加油#"),
        ("", " "),
    ],
)  # fmt: skip
def test_what_says_different_things_is_kept(first: str, second: str) -> None:
    assert _kinds([first, second]) == ["unique", "unique"]


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("你妈妈喊你回家吃饭哦,回家罗回家罗", "你妈妈叫你回家吃饭啦,回家罗回家罗", "near"),
        ("今天的武汉，加油！我们都在", "今天的武汉加油我们都在 http://t.cn/A6hNxyZ", "exact"),
        ("ＡＢＣ全角也是一样的内容", "abc全角也是一样的内容", "exact"),
        ("👍", "👍", "exact"),
        ("", "", "exact"),
        ("1380013800", "1380013800", "exact"),
        ("#武汉加油#", "#武汉加油#", "exact"),
    ],
)
def test_what_says_the_same_is_dropped(first: str, second: str, kind: str) -> None:
    assert _kinds([first, second]) == ["unique", kind]


def test_texts_without_features_never_match_by_a_zero_fingerprint() -> None:
    config = replace(_CONFIG, near=NearConfig(method="hamming", window=Window(100), distances=((0, 7),)))
    assert _kinds(["🙂🙂", "🙃", "...", "", "12345678", "87654321"], config) == ["unique"] * 6


def test_two_texts_forged_to_one_digest_are_not_exact_copies() -> None:
    batch = _batch(["昨天我们去了山里看日出", "完全不同的另外一段文字", "昨天我们去了山里看日出"])
    batch.fingerprints.digests[:] = 7
    verdicts = BatchSieve(_CONFIG).judge(batch)
    assert verdicts.kinds.tolist() == [Kind.UNIQUE, Kind.UNIQUE, Kind.NEAR]
    assert verdicts.similarity(2) == 1.0


@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_a_stamp_from_2099_expires_nothing(method: str) -> None:
    day, year_2099 = 86_400_000, 4_070_908_800_000
    window = Window(1000, day)
    config = SieveConfig(ExactConfig(method, window=window), NearConfig(window=window))  # type: ignore[arg-type]
    text, other = "今天天气很好我们出去玩", "这是一条来自未来的消息呀"
    batch = _batch([text, other, text], [1_600_000_000_000, year_2099, 1_600_000_001_000])
    batch.arrivals_ms[:] = 1_600_000_000_000
    assert BatchSieve(config).judge(batch).kinds.tolist() == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]


@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_what_was_kept_before_any_time_counts_as_kept_at_the_first_one(method: str) -> None:
    window = Window(1000, 1000)
    config = SieveConfig(ExactConfig(method, window=window), NearConfig(window=Window(1), method="none"))  # type: ignore[arg-type]
    start = 1_600_000_000_000
    story = "甲的故事从这里开始"
    texts = [story, "乙的故事", "乙的故事", story, "丁的故事", story]
    batch = _batch(texts, [NO_TIME, NO_TIME, start, start + 1000, start + 1000, start + 1001])
    verdicts = BatchSieve(config).judge(batch)
    assert np.flatnonzero(verdicts.kinds == Kind.EXACT).tolist() == [2, 3]


def test_a_prefix_of_a_kept_text_is_near_only_when_long_enough() -> None:
    whole = "武汉市民王先生今天上午在医院门口接受采访时说情况正在好转"
    assert _kinds([whole, whole[:22]]) == ["unique", "near"]
    assert _kinds([whole, whole[:14]]) == ["unique", "unique"]


def test_five_thousand_equal_hashtags_on_unlike_posts_drop_none_of_them() -> None:
    rng = np.random.default_rng(5)
    posts = [
        "#武汉加油#" * 3 + "".join(chr(c) for c in rng.integers(0x4E00, 0x9FA0, 20)) for _ in range(5000)
    ]
    assert set(_kinds(posts, replace(_CONFIG, near=NearConfig(window=Window(10_000))))) == {"unique"}


def test_an_ngram_repeated_a_hundred_thousand_times_is_judged() -> None:
    # With two 4-grams in all, one more halves the share in common: in doubt, the message is kept.
    long = "哈哈" * 100_000
    assert _kinds([long, long, long + "嘿", "哈哈" * 30]) == ["unique", "exact", "unique", "unique"]


def test_long_bodies_that_differ_only_behind_the_stored_text_are_kept() -> None:
    rng = np.random.default_rng(3)
    head, tail, other = ("".join(chr(c) for c in rng.integers(0x4E00, 0x9FA0, 900)) for _ in range(3))
    verdicts = _judge([head + tail, head + other, head + tail[:880] + other[:20]])
    assert verdicts.kinds.tolist() == [Kind.UNIQUE, Kind.UNIQUE, Kind.NEAR]
    assert verdicts.flags[2] == Flag.ESTIMATED


def test_leaders_only_so_that_nobody_is_dropped_along_a_chain() -> None:
    steps = ["一二三四五六七八九十甲乙丙丁戊己庚辛壬癸"]
    for i in range(8):
        steps.append(steps[-1][:i] + chr(0x5000 + i) + steps[-1][i + 1 :])
    verdicts = _judge(steps)
    kept = np.flatnonzero(verdicts.kinds == Kind.UNIQUE).tolist()
    assert kept[0] == 0
    assert len(kept) > 1
    assert set(verdicts.leaders[verdicts.kinds == Kind.NEAR].tolist()) <= set(kept)


def test_an_old_bloom_hit_is_taken_at_its_word_and_said_so() -> None:
    config = SieveConfig(ExactConfig(window=Window(5000)), NearConfig(method="none", window=Window(10)))
    texts = [f"第{i}个完全不同的故事" for i in range(100)]
    verdicts = _judge([*texts, texts[0], texts[99]], config)
    assert verdicts.kinds.tolist()[-2:] == [Kind.EXACT, Kind.EXACT]
    assert verdicts.flags.tolist()[-2:] == [Flag.UNCONFIRMED, Flag.NONE]
    assert verdicts.leaders[-1] == 99


def test_a_wide_text_that_wraps_around_the_arena_is_compared_whole() -> None:
    rng = np.random.default_rng(9)
    config = replace(_CONFIG, near=NearConfig(window=Window(20), differences=Differences(OFF)))
    sieve = BatchSieve(config)
    for _ in range(60):
        size = int(rng.integers(30, 500))
        first = 0x20000 if rng.random() < 0.5 else 0x4E00
        text = "".join(chr(c) for c in rng.integers(first, first + 0x4000, size))
        said = sieve.judge(_batch([text, text[:-1]]))
        assert said.kinds.tolist() == [Kind.UNIQUE, Kind.NEAR]
        assert said.similarity(1) == 2 * (size - 1) / (2 * size - 1)


def test_an_entry_of_2_to_the_24_messages_ago_is_not_one_of_this_chunk() -> None:
    asked = "春夏秋冬东南西北金木水火土天地玄黄宇宙洪"
    first, other = "甲乙丙" + asked[3:], asked[:17] + "丁戊己"
    texts = [first, *(f"不相干的第{i}个长句子{i}" for i in range(1, 100))]
    texts[2**24 % 100] = other
    config = replace(_CONFIG, near=NearConfig(window=Window(100), differences=Differences(OFF)))
    assert _judge([first, other, asked], config).leaders[2] == 0
    sieve = BatchSieve(replace(config, exact=ExactConfig(method="none")))
    sieve.apply(_batch(texts), _judge([f"第{i}个" for i in range(100)]))
    # As if 2 ** 24 messages had passed: the next one's number is that of the first, in 24 bits.
    sieve.near.ring.columns.counters[KEPT] = 2**24
    verdicts = sieve.judge(_batch(["另外的一句话在这里说完了", asked]))
    assert verdicts.kinds.tolist() == [Kind.UNIQUE, Kind.UNIQUE]


@pytest.mark.parametrize("method", ["none", "text"])
def test_a_window_beyond_what_buckets_can_number_has_segments_or_needs_none(method: str) -> None:
    near = NearConfig(method=method, window=Window(MAX_SEGMENT + 1))  # type: ignore[arg-type]
    assert BatchSieve(SieveConfig(near=near)).stats().capacity == MAX_SEGMENT + 1


@pytest.mark.parametrize(
    ("method", "window", "largest"),
    [("text", MAX_WINDOW + 1, MAX_WINDOW), ("signatures", MAX_SEGMENT + 1, MAX_SEGMENT)],
)
def test_a_window_that_is_too_large_is_refused(method: str, window: int, largest: int) -> None:
    near = NearConfig(method=method, window=Window(window), parts=1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"near\.window\.messages is {window}; use 1\.\.{largest}$"):
        BatchSieve(SieveConfig(near=near))


@pytest.mark.parametrize("segment", [0, MAX_SEGMENT + 1])
def test_a_segment_that_buckets_cannot_number_is_refused(segment: int) -> None:
    with pytest.raises(UsageError, match=rf"near\.segment is {segment}; use 1\.\.{MAX_SEGMENT}$"):
        BatchSieve(SieveConfig(near=NearConfig(segment=segment)))
