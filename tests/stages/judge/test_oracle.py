"""Each rule of the plain loop on cases small enough to judge by eye."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracle import Judgement, Oracle, Row
from twinsieve.stages.contract import (
    OFF,
    Differences,
    ExactConfig,
    Flag,
    Kind,
    NearConfig,
    SieveConfig,
    TimeConfig,
    Window,
)
from twinsieve.stages.differ.rules import Rule

FOREVER = Window(1_000_000)
TEXT = "今天天气很好我们一起出去玩吧明天也是"
EDIT = "今天天气很好我们一起出去玩吧明日也是"
OTHER = "这一句话和上面那句没有任何关系啊真的"
TWENTY, CHANGED = "abcdefghijklmnopqrst", "abcdefghijklmnopqXYZ"
UPDATES = [
    Row("本市今日新增确诊病例12例均已收治", simhash=1),
    Row("本市今日新增确诊病例15例均已收治", simhash=1),
]
CARD = "你认为这一次的比赛谁会赢得最后的冠军呢参与投票"
YES, NO = Row("赞" + CARD, own_length=1), Row("踩" + CARD, own_length=1)
LONG_YES = [
    Row("我觉得今年肯定是主队会赢" + CARD, own_length=12),
    Row("我觉得今年肯定是主队会赢啊" + CARD, own_length=13),
]
CHAIN = [TEXT, TEXT[:-1] + "呀", TEXT[:-3] + "呀嘛啦哦"]
TAGS = [Row("x", exact_only=True), Row("y", exact_only=True)]
IN_2099 = 4_070_908_800
EAGER = SieveConfig(exact=ExactConfig(window=FOREVER), near=NearConfig(window=FOREVER))


def near(config: SieveConfig = EAGER, **changes: object) -> SieveConfig:
    return replace(config, near=replace(config.near, **changes))  # type: ignore[arg-type]


def exact(messages: int = 100, age_ms: int | None = None) -> SieveConfig:
    """The exact stage alone, with this window."""
    return near(replace(EAGER, exact=ExactConfig(window=Window(messages, age_ms))), method="none")


def late(policy: str) -> SieveConfig:
    return replace(EAGER, time=TimeConfig(late=policy, late_after_ms=1_000))  # type: ignore[arg-type]


def timed(text: str, second: float, **fields: object) -> Row:
    return Row(text, time_ms=int(second * 1000), **fields)  # type: ignore[arg-type]


def printed(length: int, simhash: int | None) -> Row:
    return Row(chr(0x4E00 + length) * length, key=(length, simhash), simhash=simhash)


def judgements(config: SieveConfig, rows: list[Row]) -> list[Judgement]:
    oracle = Oracle(config)
    return [oracle.judge(replace(row, position=i)) for i, row in enumerate(rows)]


AGED = near(exact(100, 10_000), method="text", window=Window(100, 5_000))
HAMMING = near(method="hamming", distances=((8, 1), (16, 3)))
PASSING = near(same_id="pass")
CASES = {
    "equal keys": (EAGER, [Row(TEXT)] * 3, "uee"),
    "keys decide, not bodies": (exact(), [Row(TEXT, key=1), Row(TEXT, key=2), Row(OTHER, key=1)], "uue"),
    "as alike as asked": (near(similarity=8_500), [Row(TWENTY), Row(CHANGED)], "un"),
    "less alike": (near(similarity=8_501), [Row(TWENTY), Row(CHANGED)], "uu"),
    "two links of a chain": (near(similarity=8_300), [Row(CHAIN[1]), Row(CHAIN[2])], "un"),
    "a dropped one leads nobody": (near(similarity=8_300), list(map(Row, CHAIN)), "unu"),
    "exact only, later": (EAGER, [Row(TEXT), *[Row(EDIT, exact_only=True)] * 2], "uue"),
    "exact only, earlier": (EAGER, [Row(TEXT, exact_only=True), Row(EDIT)], "uu"),
    "the exact window counts kept ones": (exact(2), list(map(Row, "abbba")), "uueee"),
    "beyond the exact window": (exact(2), list(map(Row, "abca")), "uuuu"),
    "inside the near window": (near(window=Window(3)), [Row(TEXT), *TAGS, Row(EDIT)], "uuun"),
    "exact only ones fill the near window": (near(window=Window(2)), [Row(TEXT), *TAGS, Row(EDIT)], "uuuu"),
    "as old as near may be": (AGED, [timed(TEXT, 0), timed(EDIT, 5)], "un"),
    "too old to be near": (AGED, [timed(TEXT, 0), timed(EDIT, 5.001)], "uu"),
    "as old as exact may be": (AGED, [timed(TEXT, 0), timed(TEXT, 10)], "ue"),
    "too old to be exact": (AGED, [timed(TEXT, 0), timed(TEXT, 10.001)], "uu"),
    "equal beyond the exact window is near": (
        near(exact(1), method="text"), [Row(TEXT), Row(OTHER), Row(TEXT)], "uun"
    ),
    "hits refresh no leader": (exact(100, 10_000), [timed("a", 0), timed("a", 9), timed("a", 11)], "ueu"),
    "a row moves time on before it is judged": (
        exact(100, 10_000), [timed("a", 0), timed("b", 11), timed("a", 1)], "uuu"
    ),
    "entries carry stream time, not their own": (
        exact(100, 10_000), [timed("a", 100), timed("b", 0), timed("b", 110), timed("a", 110)], "uuee"
    ),
    "without a time: the current one": (
        exact(100, 1_000), [timed("a", 5), Row("b"), timed("b", 6), timed("a", 6.5)], "uueu"
    ),
    "no time at all": (exact(100, 1_000), [Row("a"), Row("a")], "ue"),
    "a time from 2099, arrival known": (
        exact(100, 600_000), [timed("a", 0), timed("b", IN_2099, arrival_ms=1_000), timed("a", 1)], "uue"
    ),
    "a time from 2099": (exact(100, 600_000), [timed("a", 0), timed("b", IN_2099), timed("a", 1)], "uuu"),
    "kept before any time was known": (exact(100, 1_000), [Row("a"), timed("b", 5_000), Row("a")], "uue"),
    "kept then, and too old now": (
        exact(100, 1_000), [Row("a"), timed("b", 5_000), timed("c", 5_001.001), Row("a")], "uuuu"
    ),
    "late ones lead": (late("insert"), [timed("a", 10), timed("b", 8), timed("b", 10)], "uue"),
    "late ones do not lead": (late("judge"), [timed("a", 10), timed("b", 8), timed("b", 10)], "uuu"),
    "scopes never meet": (
        EAGER, [Row(TEXT, scope=1), Row(TEXT, scope=2), Row(EDIT, scope=2), Row(EDIT, scope=3)], "uunu"
    ),
    "an edit of one id": (near(), [Row(TEXT, id=7), Row(EDIT, id=7)], "un"),
    "an edit of one id passes": (PASSING, [Row(TEXT, id=7), Row(EDIT, id=7)], "uu"),
    "an edit of another id": (PASSING, [Row(TEXT, id=7), Row(EDIT, id=8)], "un"),
    "a copy of one id": (PASSING, [Row(TEXT, id=7), Row(TEXT, id=7)], "ue"),
    "an edit without an id": (PASSING, [Row(TEXT), Row(EDIT)], "un"),
    "an update, differences off": (near(differences=Differences(OFF)), UPDATES, "un"),
    "another card, differences off": (near(differences=Differences(OFF)), [YES, NO], "un"),
    "own words on one side alone": (EAGER, [YES, Row(NO.body)], "un"),
    "own words that are alike": (EAGER, LONG_YES, "un"),
    "three bits": (HAMMING, [printed(20, 0b0000), printed(21, 0b0111)], "un"),
    "four bits": (HAMMING, [printed(20, 0b0000), printed(21, 0b1111)], "uu"),
    "two bits, a shorter body": (HAMMING, [printed(15, 0b0000), printed(21, 0b0011)], "uu"),
    "no bits, a body too short": (HAMMING, [printed(7, 0b0000), printed(21, 0b0000)], "uu"),
    "no simhash": (HAMMING, [printed(20, None), printed(21, None)], "uu"),
    "an update in hamming mode": (HAMMING, UPDATES, "un"),
}  # fmt: skip


@pytest.mark.parametrize(("config", "rows", "kinds"), CASES.values(), ids=list(CASES))
def test_rows_get_the_kinds_that_the_rules_ask_for(config: SieveConfig, rows: list[Row], kinds: str) -> None:
    """u(nique), e(xact), n(ear)"""
    assert "".join(each.kind.name[0].lower() for each in judgements(config, rows)) == kinds


APART = {
    "same id": (PASSING, [Row(TEXT, id=7), Row(EDIT, id=7)], Rule.SAME_ID),
    "number": (EAGER, UPDATES, Rule.NUMBER),
    "card": (EAGER, [YES, NO], Rule.CARD),
}


@pytest.mark.parametrize(("config", "rows", "rule"), APART.values(), ids=list(APART))
def test_who_is_kept_apart_names_the_reason_and_the_other(
    config: SieveConfig, rows: list[Row], rule: Rule
) -> None:
    assert judgements(config, rows)[1] == Judgement(Kind.UNIQUE, reason=rule, apart_from=0)


TIGHT = near(similarity=9_900)
NEAREST = near(method="hamming", distances=((8, 3),))
PRINTS = [Row(TEXT, key=number, simhash=simhash) for number, simhash in enumerate([0b110, 0b001, 0b010])]
LEADERS = {
    "the most similar": (TIGHT, [Row(TEXT[:-3]), Row(TEXT[:-1] + "呢")], EAGER, Row(TEXT), (Kind.NEAR, 1)),
    "of equals the oldest": (TIGHT, [Row(TEXT + last) for last in "呀嘛啦"], EAGER, Row(TEXT + "哦"), (Kind.NEAR, 0)),
    "exact before near": (TIGHT, [Row(TEXT + "甲"), Row(TEXT + "乙")], EAGER, Row(TEXT + "乙"), (Kind.EXACT, 1)),
    "the nearest, then the oldest": (
        near(method="hamming", distances=((8, 0),)), PRINTS, NEAREST, Row(OTHER, key="new", simhash=0), (Kind.NEAR, 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "kept", "config", "row", "led"), LEADERS.values(), ids=list(LEADERS))
def test_of_several_that_could_lead_one_does(
    before: SieveConfig, kept: list[Row], config: SieveConfig, row: Row, led: tuple[Kind, int]
) -> None:
    """before: under which all of them are kept"""
    oracle = Oracle(before)
    for position, each in enumerate(kept):
        assert oracle.judge(replace(each, position=position)).kind is Kind.UNIQUE
    oracle.config = config
    said = oracle.judge(row)
    assert (said.kind, said.leader) == led


def test_an_equal_body_is_near_where_there_is_no_exact_stage() -> None:
    config = replace(EAGER, exact=replace(EAGER.exact, method="none"))
    assert judgements(config, [Row(TEXT), Row(TEXT)])[1] == Judgement(Kind.NEAR, Flag.NONE, 0, 36, 36)


def test_similar_body_is_near_with_its_similarity() -> None:
    assert judgements(EAGER, [Row(TEXT), Row(EDIT)])[1] == Judgement(Kind.NEAR, Flag.NONE, 0, 34, 36)


def test_stream_time_is_clamped_to_arrival_and_max_ahead() -> None:
    oracle = Oracle(replace(EAGER, time=TimeConfig(max_ahead_ms=500)))
    oracle.judge(Row("a", time_ms=9_000, arrival_ms=1_000))
    assert oracle.stream_time_ms == 1_500
    oracle.judge(Row("b", time_ms=1_200, arrival_ms=2_000))
    assert oracle.stream_time_ms == 1_500


def test_late_messages_are_judged_and_marked() -> None:
    rows = [timed("a", 10), timed("a", 8), timed("b", 8.999), timed("c", 9)]
    assert [(each.kind, each.flags) for each in judgements(late("judge"), rows)] == [
        (Kind.UNIQUE, Flag.NONE),
        (Kind.EXACT, Flag.NONE),
        (Kind.UNIQUE, Flag.LATE),
        (Kind.UNIQUE, Flag.NONE),
    ]


def test_another_leader_may_take_what_was_kept_apart() -> None:
    assert judgements(EAGER, [*UPDATES, Row(UPDATES[1].body + "了")])[2].leader == 1


def test_bodies_beyond_the_stored_length_are_estimated_and_marked() -> None:
    long = Row("字" * 513 + TEXT)
    judgement = judgements(EAGER, [long, Row(long.body + "了")])[1]
    assert (judgement.kind, judgement.flags) == (Kind.NEAR, Flag.ESTIMATED)
    sketched = replace(long, sketch=(1,) * 64)
    # Sketches without a byte in common: the tails may be anything.
    unlike = Row(long.body + "了", sketch=(2,) * 64)
    assert judgements(EAGER, [sketched, unlike])[1].kind is Kind.UNIQUE
    alike = replace(unlike, sketch=sketched.sketch)
    assert judgements(EAGER, [sketched, alike])[1] == replace(
        judgement, matched=judgement.compared * 9_999 // 10_000
    )
