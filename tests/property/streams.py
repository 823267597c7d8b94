"""Small hostile streams for property tests, and how a sieve and the plain loop judge them."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from tests import twins
from tests.oracle import Judgement, Oracle, rows_of
from twinsieve.stages.contract import (
    FULL,
    GUARDS,
    NO_TIME,
    OFF,
    BandLayout,
    Batch,
    Differences,
    SieveConfig,
    Verdicts,
)
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig

_STEMS = (
    "新增确诊12例请大家注意防护",
    "新增确诊15例请大家注意防护",
    "今天天气很好我们一起出去玩吧",
    "今天天气很好我们一起出去玩啊哈",
    "你妈妈喊你回家吃饭哦回家罗回家罗",
    "the storm will hit the coast at night",
    "the storm will hit the coast tonight",
    "一二三四五六七八",
    "短文",
    "👍",
    "12345678",
    "",
    "长 O新冠病毒疫苗可能在18个月内完成，你觉得这个时间是长还是短？",
    "短 O新冠病毒疫苗可能在18个月内完成，你觉得这个时间是长还是短？",
    "国𠮷𠮷𠮷家" * 3,
    "很长的正文" * 60,
    "本报讯" + "改造工程涉及多个城区" * 60 + "共12处",
    "the court has found the former minister not guilty of fraud",
    "the court has found the former minister guilty of fraud",
    "终场比分3比1主队球迷沸腾了",
    "终场比分1比3主队球迷沸腾了",
    "热烈祝贺北京大学荣获一等奖",
    "热烈祝贺清华大学荣获三等奖",
)

_TEXTS = st.one_of(
    st.sampled_from(_STEMS),
    st.tuples(st.sampled_from(_STEMS), st.sampled_from("吧啊12好x")).map("".join),
    st.text("一二三四五六七八九十甲乙丙丁", min_size=8, max_size=12),
)

DIFFERENCES = st.sampled_from(
    [
        Differences(OFF),
        Differences(GUARDS),
        Differences(FULL),
        Differences(FULL, 20, 200, 250, 1000, 10, 0, 0, own=40),
        Differences(FULL, places=512, inside=3),
    ]
)

Rows = list[tuple[str, int | None, int, int]]
"""(text, time in s or None, id or 0, scope) of each row."""

ROWS = st.lists(
    st.tuples(
        _TEXTS,
        st.one_of(st.none(), st.integers(0, 100)),
        st.integers(0, 2),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=60,
)


PARTS = 4
"""Part hashes of a row: its commonest characters and pairs, so that many rows share some."""


@cache
def scheme(layout: BandLayout = BandLayout()) -> Scheme:  # noqa: B008 (frozen)
    """One scheme for all property tests."""
    signature = SignatureConfig("top_features", PARTS, joined=False)
    return Scheme(SchemeConfig(layout=layout, signature=signature))


def batch_of(rows: Rows, *, scoped: bool = False, layout: BandLayout = BandLayout()) -> Batch:  # noqa: B008
    """The rows as a batch; positions count from 100, arrival bounds times above 80 s."""
    batch = twins.batch_of(
        *scheme(layout).read([text for text, *_ in rows]),
        times=[NO_TIME if time is None else time * 1000 for _, time, _, _ in rows],
        ids=[number for _, _, number, _ in rows],
        scopes=[(scope * 0x9E3779B97F4A7C15 if scoped else 0) for *_, scope in rows],
    )
    batch.positions += 100
    batch.arrivals_ms[:] = 80_000 - 300_000
    return batch


Row = tuple[int, ...]
"""(kind, flags, leader, matched, compared, distance, shared, reason, kept apart from)"""


def table(verdicts: Verdicts) -> list[Row]:
    """Verdicts as plain rows."""
    names = (
        "kinds",
        "flags",
        "leaders",
        "matched",
        "compared",
        "distances",
        "shared",
        "reasons",
        "apart_from",
    )
    columns = [getattr(verdicts, name).tolist() for name in names]
    return list(zip(*columns, strict=True))


def judged(config: SieveConfig, batch: Batch, size: int) -> list[Row]:
    """What a new sieve says of the batch, given to it in batches of `size`."""
    sieve = BatchSieve(config)
    rows: list[Row] = []
    for low in range(0, len(batch), size):
        rows += table(sieve.judge(batch.slice(low, min(low + size, len(batch)))))
    return rows


def told_by_oracle(config: SieveConfig, batch: Batch) -> list[Row]:
    """What the plain loop says of the batch."""
    oracle = Oracle(config)
    return [as_row(oracle.judge(row)) for row in rows_of(batch)]


def as_row(said: Judgement) -> Row:
    """What the plain loop says of one message."""
    kind, flags, reason = int(said.kind), int(said.flags), int(said.reason)
    likeness = (said.matched, said.compared, said.distance, said.shared)
    return kind, flags, said.leader, *likeness, reason, said.apart_from
