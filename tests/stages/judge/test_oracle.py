"""Each rule of the plain loop on cases small enough to judge by eye."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import Judgement, Oracle, Row, indel, rows_of
from twinsieve.stages.contract import (
    NO_LEADER,
    NO_TIME,
    OFF,
    Batch,
    Bodies,
    Differences,
    ExactConfig,
    Fingerprints,
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
EAGER = SieveConfig(exact=ExactConfig(window=FOREVER), near=NearConfig(window=FOREVER))


def kinds(config: SieveConfig, rows: list[Row]) -> str:
    """First letters: u(nique), e(xact), n(ear)."""
    oracle = Oracle(config)
    return "".join(oracle.judge(row).kind.name[0].lower() for row in rows)


def judgements(config: SieveConfig, rows: list[Row]) -> list[Judgement]:
    oracle = Oracle(config)
    return [oracle.judge(replace(row, position=i)) for i, row in enumerate(rows)]


def near(config: SieveConfig = EAGER, **changes: object) -> SieveConfig:
    return replace(config, near=replace(config.near, **changes))  # type: ignore[arg-type]


def timed(text: str, second: float, **fields: object) -> Row:
    return Row(text, time_ms=int(second * 1000), **fields)  # type: ignore[arg-type]


def test_equal_keys_are_exact_and_name_the_kept_one() -> None:
    first, second, third = judgements(EAGER, [Row(TEXT), Row(TEXT), Row(TEXT)])
    assert (first.kind, second.kind, third.kind) == (Kind.UNIQUE, Kind.EXACT, Kind.EXACT)
    assert (first.leader, second.leader, third.leader) == (NO_LEADER, 0, 0)


def test_key_decides_exactness_and_body_does_not() -> None:
    apart = near(method="none")
    assert kinds(apart, [Row(TEXT, key=1), Row(TEXT, key=2), Row(OTHER, key=1)]) == "uue"


def test_exact_none_leaves_equal_bodies_to_the_near_stage() -> None:
    config = replace(EAGER, exact=replace(EAGER.exact, method="none"))
    assert judgements(config, [Row(TEXT), Row(TEXT)])[1] == Judgement(Kind.NEAR, Flag.NONE, 0, 36, 36)


def test_similar_body_is_near_with_its_similarity() -> None:
    assert judgements(EAGER, [Row(TEXT), Row(EDIT)])[1] == Judgement(Kind.NEAR, Flag.NONE, 0, 34, 36)


def test_similarity_is_reached_by_equality_of_integers() -> None:
    twenty = "abcdefghijklmnopqrst"
    changed = "abcdefghijklmnopqXYZ"
    assert indel(twenty, changed) == (34, 40)
    assert kinds(near(similarity=8_500), [Row(twenty), Row(changed)]) == "un"
    assert kinds(near(similarity=8_501), [Row(twenty), Row(changed)]) == "uu"


def test_leader_is_the_most_similar() -> None:
    rows = [Row(TEXT[:-3]), Row(TEXT[:-1] + "呢"), Row(TEXT)]
    config = near(similarity=9_900)
    kept_both = Oracle(config)
    for i, row in enumerate(rows[:2]):
        kept_both.judge(replace(row, position=i))
    kept_both.config = EAGER
    assert kept_both.judge(rows[2]).leader == 1


def test_leader_among_equals_is_the_oldest() -> None:
    oracle = Oracle(near(similarity=9_900))
    for i, last in enumerate("呀嘛啦"):
        assert oracle.judge(Row(TEXT + last, position=i)).kind is Kind.UNIQUE
    oracle.config = EAGER
    assert oracle.judge(Row(TEXT + "哦")).leader == 0


def test_exact_goes_before_near() -> None:
    oracle = Oracle(near(similarity=9_900))
    oracle.judge(Row(TEXT + "甲", position=1))
    oracle.judge(Row(TEXT + "乙", position=2))
    oracle.config = EAGER
    assert oracle.judge(Row(TEXT + "乙")) == Judgement(Kind.EXACT, leader=2)


def test_dropped_messages_are_never_leaders() -> None:
    chain = [TEXT, TEXT[:-1] + "呀", TEXT[:-3] + "呀嘛啦哦"]
    assert indel(chain[1], chain[2])[0] * 100 >= 80 * indel(chain[1], chain[2])[1]
    similarity = 8_300
    assert kinds(near(similarity=similarity), [Row(chain[1]), Row(chain[2])]) == "un"
    assert kinds(near(similarity=similarity), [Row(text) for text in chain]) == "unu"


def test_exact_only_rows_are_never_near_on_either_side() -> None:
    rows = [Row(TEXT), Row(EDIT, exact_only=True), Row(EDIT, exact_only=True)]
    assert kinds(EAGER, rows) == "uue"
    assert kinds(EAGER, [Row(TEXT, exact_only=True), Row(EDIT)]) == "uu"


def test_exact_window_counts_kept_messages() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(2))), method="none")
    assert kinds(config, [Row("a"), Row("b"), Row("b"), Row("b"), Row("a")]) == "uueee"
    assert kinds(config, [Row("a"), Row("b"), Row("c"), Row("a")]) == "uuuu"


def test_near_window_counts_kept_messages_and_exact_only_ones_too() -> None:
    filler = [Row("x", exact_only=True), Row("y", exact_only=True)]
    assert kinds(near(window=Window(3)), [Row(TEXT), *filler, Row(EDIT)]) == "uuun"
    assert kinds(near(window=Window(2)), [Row(TEXT), *filler, Row(EDIT)]) == "uuuu"


def test_age_ends_a_window_strictly_after_it() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(100, 10_000))), window=Window(100, 5_000))
    assert kinds(config, [timed(TEXT, 0), timed(EDIT, 5)]) == "un"
    assert kinds(config, [timed(TEXT, 0), timed(EDIT, 5.001)]) == "uu"
    assert kinds(config, [timed(TEXT, 0), timed(TEXT, 10)]) == "ue"
    assert kinds(config, [timed(TEXT, 0), timed(TEXT, 10.001)]) == "uu"


def test_beyond_the_exact_window_an_equal_body_is_near() -> None:
    config = replace(EAGER, exact=ExactConfig(window=Window(1)))
    assert kinds(config, [Row(TEXT), Row(OTHER), Row(TEXT)]) == "uun"


def test_hits_do_not_refresh_their_leader() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(100, 10_000))), method="none")
    assert kinds(config, [timed(TEXT, 0), timed(TEXT, 9), timed(TEXT, 11)]) == "ueu"


def test_a_row_advances_stream_time_before_it_is_judged() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(100, 10_000))), method="none")
    assert kinds(config, [timed(TEXT, 0), timed(OTHER, 11), timed(TEXT, 1)]) == "uuu"


def test_entries_carry_stream_time_not_their_own() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(100, 10_000))), method="none")
    assert kinds(config, [timed("a", 100), timed("b", 0), timed("b", 110), timed("a", 110)]) == "uuee"


def test_a_stamp_from_2099_expires_nothing_where_arrival_is_known() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(100, 600_000))), method="none")
    stamp = 4_070_908_800
    assert kinds(config, [timed("a", 0), timed("b", stamp, arrival_ms=1_000), timed("a", 1)]) == "uue"
    assert kinds(config, [timed("a", 0), timed("b", stamp), timed("a", 1)]) == "uuu"


def test_stream_time_is_clamped_to_arrival_and_max_ahead() -> None:
    oracle = Oracle(replace(EAGER, time=TimeConfig(max_ahead_ms=500)))
    oracle.judge(Row("a", time_ms=9_000, arrival_ms=1_000))
    assert oracle.stream_time_ms == 1_500
    oracle.judge(Row("b", time_ms=1_200, arrival_ms=2_000))
    assert oracle.stream_time_ms == 1_500


def test_rows_without_time_take_the_current_stream_time() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(100, 1_000))), method="none")
    assert kinds(config, [timed("a", 5), Row("b"), timed("b", 6), timed("a", 6.5)]) == "uueu"
    assert kinds(config, [Row("a"), Row("a")]) == "ue"


def test_what_was_kept_before_any_time_was_known_counts_as_kept_then() -> None:
    config = near(replace(EAGER, exact=ExactConfig(window=Window(100, 1_000))), method="none")
    assert kinds(config, [Row("a"), timed("b", 5_000), Row("a")]) == "uue"
    assert kinds(config, [Row("a"), timed("b", 5_000), timed("c", 5_001.001), Row("a")]) == "uuuu"


@pytest.mark.parametrize(("late", "expected"), [("insert", "uue"), ("judge", "uuu")])
def test_late_messages_become_leaders_only_by_setting(late: str, expected: str) -> None:
    config = replace(EAGER, time=TimeConfig(late=late, late_after_ms=1_000))  # type: ignore[arg-type]
    assert kinds(config, [timed("a", 10), timed("b", 8), timed("b", 10)]) == expected


def test_late_messages_are_judged_and_marked() -> None:
    config = replace(EAGER, time=TimeConfig(late="judge", late_after_ms=1_000))
    rows = [timed("a", 10), timed("a", 8), timed("b", 8.999), timed("c", 9)]
    assert [(each.kind, each.flags) for each in judgements(config, rows)] == [
        (Kind.UNIQUE, Flag.NONE),
        (Kind.EXACT, Flag.NONE),
        (Kind.UNIQUE, Flag.LATE),
        (Kind.UNIQUE, Flag.NONE),
    ]


def test_scopes_never_meet() -> None:
    assert (
        kinds(EAGER, [Row(TEXT, scope=1), Row(TEXT, scope=2), Row(EDIT, scope=2), Row(EDIT, scope=3)])
        == "uunu"
    )


def test_same_id_pass_keeps_edits_and_drops_copies() -> None:
    passing = near(same_id="pass")
    assert kinds(near(), [Row(TEXT, id=7), Row(EDIT, id=7)]) == "un"
    assert kinds(passing, [Row(TEXT, id=7), Row(EDIT, id=8)]) == "un"
    assert kinds(passing, [Row(TEXT, id=7), Row(TEXT, id=7)]) == "ue"
    assert kinds(passing, [Row(TEXT), Row(EDIT)]) == "un"
    assert judgements(passing, [Row(TEXT, id=7), Row(EDIT, id=7)])[1] == apart(Rule.SAME_ID)


def apart(reason: Rule) -> Judgement:
    """From the first row."""
    return Judgement(Kind.UNIQUE, reason=reason, apart_from=0)


def test_updates_are_kept_apart_and_the_reason_is_said() -> None:
    rows = [Row("本市今日新增确诊病例12例均已收治"), Row("本市今日新增确诊病例15例均已收治")]
    assert judgements(EAGER, rows)[1] == apart(Rule.NUMBER)
    assert kinds(near(differences=Differences(OFF)), rows) == "un"


def test_another_leader_may_take_what_was_kept_apart() -> None:
    rows = [
        Row("本市今日新增确诊病例12例均已收治"),
        Row("本市今日新增确诊病例15例均已收治"),
        Row("本市今日新增确诊病例15例均已收治了"),
    ]
    assert judgements(EAGER, rows)[2].leader == 1


def test_card_guard_compares_own_words() -> None:
    card = "你认为这一次的比赛谁会赢得最后的冠军呢参与投票"
    yes, no = Row("赞" + card, own_length=1), Row("踩" + card, own_length=1)
    assert judgements(EAGER, [yes, no])[1] == apart(Rule.CARD)
    assert kinds(near(differences=Differences(OFF)), [yes, no]) == "un"
    assert kinds(EAGER, [yes, Row(no.body)]) == "un"
    long_yes = Row("我觉得今年肯定是主队会赢" + card, own_length=12)
    long_too = Row("我觉得今年肯定是主队会赢啊" + card, own_length=13)
    assert kinds(EAGER, [long_yes, long_too]) == "un"


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


def test_hamming_counts_bits_up_to_the_limit_of_the_shorter_body() -> None:
    config = near(method="hamming", distances=((8, 1), (16, 3)))

    def row(length: int, simhash: int | None) -> Row:
        return Row(chr(0x4E00 + length) * length, key=(length, simhash), simhash=simhash)

    assert kinds(config, [row(20, 0b0000), row(21, 0b0111)]) == "un"
    assert kinds(config, [row(20, 0b0000), row(21, 0b1111)]) == "uu"
    assert kinds(config, [row(15, 0b0000), row(21, 0b0011)]) == "uu"
    assert kinds(config, [row(7, 0b0000), row(21, 0b0000)]) == "uu"
    assert kinds(config, [row(20, None), row(21, None)]) == "uu"


def test_hamming_reads_no_text_so_no_guard_speaks() -> None:
    config = near(method="hamming", distances=((8, 3),))
    rows = [
        Row("本市今日新增确诊病例12例均已收治", simhash=1),
        Row("本市今日新增确诊病例15例均已收治", simhash=1),
    ]
    assert kinds(config, rows) == "un"


def test_hamming_leader_is_the_nearest_then_the_oldest() -> None:
    loose, tight = near(method="hamming", distances=((8, 3),)), near(method="hamming", distances=((8, 0),))
    oracle = Oracle(tight)
    for position, simhash in enumerate([0b110, 0b001, 0b010]):
        oracle.judge(Row(TEXT, key=position, simhash=simhash, position=position))
    oracle.config = loose
    assert oracle.judge(Row(OTHER, key="new", simhash=0)) == Judgement(Kind.NEAR, leader=1, distance=1)


@given(a=st.text("abc", max_size=8), b=st.text("abc", max_size=8))
def test_indel_counts_the_longest_common_subsequence(a: str, b: str) -> None:
    subsequences = {"".join(c for i, c in enumerate(a) if mask >> i & 1) for mask in range(1 << len(a))}

    def inside(part: str) -> bool:
        rest = iter(b)
        return all(c in rest for c in part)

    longest = max(len(part) for part in subsequences if inside(part))
    assert indel(a, b) == (2 * longest, len(a) + len(b))


def test_rows_of_a_batch_carry_every_column() -> None:
    texts = ["一二三四五六七八", "😀\ud800"]
    chars = np.array([ord(c) for text in texts for c in text], dtype=np.uint32)
    bodies = Bodies(
        chars=chars,
        starts=np.array([0, 8, 10]),
        word_starts=np.zeros(10, np.uint8),
        body_lengths=np.array([8, 0], np.int32),
        own_lengths=np.array([5, 0], np.int32),
        exact_only=np.array([False, True]),
    )
    prints = Fingerprints(
        digests=np.array([[1, 2], [3, 4]], np.uint64),
        simhashes=np.array([[2**63 + 5, 9], [0, 0]], np.uint64),
        has_simhash=np.array([True, False]),
        weak_bits=np.zeros((2, 6, 2), np.uint8),
        band_keys=np.zeros((2, 24), np.uint32),
        bags=np.zeros((2, 32), np.uint8),
        signatures=np.zeros(2, np.uint32),
        sketches=np.zeros((0, 64), np.uint8),
        sketch_rows=np.full(2, -1, np.int32),
        part_hashes=np.array([[4, 6], [0, 0]], np.uint64),
        tallies=np.zeros(2, np.uint64),
    )
    batch = Batch(
        positions=np.array([10, 11]),
        times_ms=np.array([1_000, NO_TIME]),
        arrivals_ms=np.array([NO_TIME, 2_000]),
        ids=np.array([7, 0], np.uint64),
        scopes=np.array([0, 3], np.uint64),
        bodies=bodies,
        fingerprints=prints,
    )
    first = Row(
        texts[0], texts[0], 5, False, 1_000, NO_TIME, 7, 0, 2**63 + 5, frozenset({4, 6}), 10, (0,) * 8
    )
    second = Row(texts[1], texts[1], 0, True, NO_TIME, 2_000, 0, 3, None, frozenset(), 11, (0, 0))
    assert rows_of(batch) == [first, second]
    assert [row.key for row in rows_of(batch, key_is_text=False)] == [(1, 2), (3, 4)]
