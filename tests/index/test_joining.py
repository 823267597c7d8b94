"""When an index joins its group, by what it has applied and how fast."""

from __future__ import annotations

from tests.configs import builder, index_config
from tests.memory.broker import ManualClock
from twinsieve.pipeline.index.joining import Joining

PATIENCE_S = 30.0


def _joining() -> tuple[Joining, ManualClock, list[str]]:
    """Of an index beside others."""
    clock, notices = ManualClock(), list[str]()
    return Joining(clock, PATIENCE_S, lambda: True, notices), clock, notices


def test_an_index_joins_when_less_than_a_second_of_applying_is_left_at_its_own_speed() -> None:
    for speed in (10, 4_000):
        joining, _, notices = _joining()
        joining.applied(3 * speed, 3.0)
        assert not joining.is_due(speed + 1, 0)
        assert joining.is_due(speed - 1, 0)
        assert not notices


def test_the_speed_is_that_of_the_last_seconds() -> None:
    joining, _, _ = _joining()
    joining.applied(10, 20.0)
    for _ in range(20):
        joining.applied(4_000, 1.0)
    assert joining.is_due(3_000, 0)
    for _ in range(20):
        joining.applied(10, 1.0)
    assert not joining.is_due(20, 0)


def test_an_index_that_has_applied_nothing_yet_joins_only_if_nothing_is_left() -> None:
    joining, _, _ = _joining()
    assert not joining.is_due(1, 0)
    assert joining.is_due(0, 0)


def test_an_index_does_not_join_while_a_full_segment_is_in_no_file() -> None:
    joining, _, _ = _joining()
    joining.applied(100, 1.0)
    assert not joining.is_due(0, 1)
    assert joining.is_due(0, 0)


def test_an_index_that_comes_no_closer_joins_all_the_same_and_says_so() -> None:
    joining, clock, notices = _joining()
    joining.applied(100, 1.0)
    for left, unwritten in ((500, 0), (0, 2)):
        joining.begin()
        assert not joining.is_due(left, unwritten)
        clock.sleep(PATIENCE_S - 0.1)
        assert not joining.is_due(left, unwritten)
        assert not notices
        clock.sleep(0.1)
        assert joining.is_due(left, unwritten)
        (line,) = notices
        assert "30 s" in line
        assert str(left) in line
        assert str(unwritten) in line
        notices.clear()


def test_an_index_that_comes_closer_waits_as_long_as_it_takes() -> None:
    joining, clock, notices = _joining()
    joining.applied(100, 1.0)
    for left in range(2_000, 200, -100):
        clock.sleep(PATIENCE_S - 0.1)
        assert not joining.is_due(left, 0)
    assert not notices


def test_time_in_which_brokers_did_not_answer_does_not_count() -> None:
    joining, clock, _ = _joining()
    joining.applied(100, 1.0)
    assert not joining.is_due(500, 0)
    clock.sleep(PATIENCE_S)
    joining.begin()
    assert not joining.is_due(500, 0)


def test_an_index_without_others_joins_before_it_is_warm_and_asks_for_them_once_a_second() -> None:
    clock, asked, others = ManualClock(), list[float](), True

    def has_others() -> bool:
        asked.append(clock.monotonic_s())
        return others

    joining = Joining(clock, PATIENCE_S, has_others, [])
    joining.applied(100, 1.0)
    others = False
    assert not joining.is_due(5_000, 0)
    assert not asked, "it is far from the end"
    others = True
    for _ in range(20):
        assert not joining.is_due(4_999, 1)
        clock.sleep(0.1)
    assert len(asked) == 2
    others = False
    clock.sleep(1.0)
    assert joining.is_due(4_999, 1)


def test_an_index_waits_three_times_the_patience_of_near() -> None:
    assert index_config().join_s == 3 * builder().settings.patience_ms / 1000
