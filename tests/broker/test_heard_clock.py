"""Whatever acknowledgements and records tell of the broker's clock, and in whatever order: no message is thought to be
refused that the broker takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.memory.broker import LocalClock, ManualClock
from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.clock_watch import ClockWatch
from twinsieve.pipeline.broker.clocks import BrokerClock
from twinsieve.pipeline.broker.records import Partition, Records

HOUR_MS = 3_600_000
AGES_S = st.floats(0, 4 * 3_600)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), AGES_S, st.just(0.0)),
        st.tuples(st.just("pause"), AGES_S, st.just(0.0)),
        st.tuples(st.just("append"), st.floats(0, 40), st.floats(0, 40)),
        st.tuples(st.just("read"), AGES_S, st.just(0.0)),
        st.tuples(st.just("jump"), st.floats(-1e6, 1e6), st.just(0.0)),
    ),
    max_size=12,
)


class Heard:
    """A process with a clock of its own, and what it has heard of the broker's."""

    def __init__(self) -> None:
        self.truth = ManualClock()
        self.local = LocalClock(self.truth)
        self.clock = BrokerClock(self.local.monotonic_s)

    def play(self, move: str, first_s: float, then_s: float) -> None:
        if move == "wait":
            self.truth.sleep(first_s)
        elif move == "pause":
            self.truth.sleep(first_s)
            self.local.paused_s += first_s
        elif move == "jump":
            self.local.ahead_s = first_s
        elif move == "append":
            sent_s = self.local.monotonic_s()
            self.truth.sleep(first_s)
            stamp_ms = self.truth.now_ms()
            self.truth.sleep(then_s)
            self.clock.acknowledged(stamp_ms, sent_s)
        else:
            self.clock.read(self.records(first_s))

    def records(self, age_s: float) -> Records:
        stamp_ms = self.truth.now_ms() - round(1000 * age_s)
        return Records.of(Partition("log", 0), [0], [stamp_ms], stamped_by_broker=True)


@given(moves=MOVES, before_h=st.integers(0, 4), after_h=st.integers(0, 4))
def test_what_the_broker_takes_is_never_thought_to_be_refused(
    moves: list[tuple[str, float, float]], before_h: int, after_h: int
) -> None:
    limits = {"before": before_h * HOUR_MS, "after": after_h * HOUR_MS}
    shown = {f"message.timestamp.{side}.max.ms": str(limit) for side, limit in limits.items()}
    heard = Heard()
    for move in moves:
        heard.play(*move)
    info = TopicInfo("out", b"t" * 16, 1, settings=shown)
    # As a worker does before it buries anything: a pause since the last acknowledgement would not be noticed.
    heard.play("append", 0.5, 0.5)
    now_ms = heard.truth.now_ms()
    oldest, newest = heard.clock.accepted_ms(info)
    told_ms = heard.clock.now_ms()
    assert told_ms is not None
    assert now_ms - 2_000 <= told_ms <= now_ms
    assert newest >= now_ms + limits["after"]
    assert oldest <= now_ms - limits["before"] + 60_000


@given(moves=MOVES, ahead_ms=st.integers(-(10**9), 10**9))
def test_a_clock_is_never_said_to_be_more_wrong_than_it_is(
    moves: list[tuple[str, float, float]], ahead_ms: int
) -> None:
    heard = Heard()
    for move in moves:
        if move[0] != "pause":
            heard.play(*move)
    found_ms = heard.clock.ahead_ms(heard.truth.now_ms() + ahead_ms)
    if found_ms is not None:
        # The two clocks here are rounded to a millisecond each.
        assert min(0, ahead_ms) - 2 <= found_ms <= max(0, ahead_ms) + 2
    heard.play("append", 0.0, 0.0)
    found_ms = heard.clock.ahead_ms(heard.truth.now_ms() + ahead_ms)
    assert found_ms is not None
    assert abs(found_ms - ahead_ms) <= 2


@given(moves=MOVES, paused_s=st.floats(20, 1e6))
def test_a_record_from_behind_a_pause_makes_the_clock_unknown(
    moves: list[tuple[str, float, float]], paused_s: float
) -> None:
    heard = Heard()
    for move in moves:
        heard.play(*move)
    heard.play("append", 0.5, 0.5)
    heard.play("pause", paused_s, 0.0)
    heard.play("read", 0.0, 0.0)
    assert heard.clock.now_ms() is None
    heard.play("append", 0.5, 0.5)
    assert heard.clock.now_ms() is not None


@given(ahead_s=st.lists(st.sampled_from([0.0, 50.0, -50.0, 7_200.0, -7_200.0]), min_size=1, max_size=8))
def test_each_change_is_said_within_half_a_minute_and_a_right_clock_is_not(ahead_s: list[float]) -> None:
    heard = Heard()
    watch = ClockWatch(heard.clock, heard.local)
    assert watch.look() == []
    heard.play("append", 0.0, 0.0)
    before_s = 0.0
    for each in ahead_s:
        heard.play("jump", each, 0.0)
        said = []
        for _ in range(30):
            heard.truth.sleep(1.0)
            said += watch.look()
        is_wrong, was_wrong = abs(each) > 60, abs(before_s) > 60
        assert bool(said) == (abs(each - before_s) > 60 if is_wrong else was_wrong)
        before_s = each
