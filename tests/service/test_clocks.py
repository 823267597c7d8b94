"""A process whose clock is wrong: what its pages and its log say, and that verdicts are those of a right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.test_changed_settings import base, with_section
from tests.service.turned import Turned
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.stages.judge.scheme import Scheme

IN = Partition("posts", 0)
HOUR_S = 3_600.0


def produce(roles: Turned, *texts: str) -> None:
    """Messages of now, by the broker's clock."""
    messages = Messages()
    for text in texts:
        messages.add(b"k", b'{"text": "%s"}' % text.encode(), (), roles.world.clock.now_ms())
    roles.world.cluster.write(IN, messages)
    roles.run_until(roles.world.done, 20)


@pytest.mark.parametrize("role", ["worker", "index"])
def test_a_gauge_follows_the_clock_of_the_process(
    role: str, scheme: Scheme, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    roles = Turned(base(str(tmp_path)), scheme, ahead_s=2 * HOUR_S)
    assert roles.value("clock_offset_seconds", role) is None
    produce(roles, "the first message")
    for hours in (2, -3, 0):
        roles.clock.ahead_s = hours * HOUR_S
        roles.run(30)
        assert roles.value("clock_offset_seconds", role) == pytest.approx(hours * HOUR_S, abs=1)
        said = [line for line in caplog.messages if line.startswith(f"{role}: the clock of this process")]
        assert f"{abs(hours) * HOUR_S:.0f} s" in said[-1] or not hours
    assert len(said) == 3, said


def test_the_way_of_a_message_is_measured_by_the_broker_s_clock(scheme: Scheme, tmp_path: Path) -> None:
    roles = Turned(base(str(tmp_path)), scheme, ahead_s=2 * HOUR_S)
    produce(roles, "the first message")
    roles.run(20)
    before_s = roles.value("end_to_end_seconds_sum")
    produce(roles, "another message")
    after_s = roles.value("end_to_end_seconds_sum")
    assert before_s is not None
    assert after_s is not None
    assert after_s - before_s < 60


@pytest.mark.parametrize("late", ["insert", "judge"])
@pytest.mark.parametrize("hours", [0, -2, 2])
def test_copies_that_a_wrong_clock_reads_are_dropped(
    hours: int, late: str, scheme: Scheme, tmp_path: Path
) -> None:
    settings = with_section(base(str(tmp_path)), "time", late=late)
    roles = Turned(with_section(settings, "input", time_field=None), scheme)
    produce(roles, "an ordinary message, which sets the time")
    roles.clock.ahead_s = hours * HOUR_S
    for _ in range(3):
        produce(roles, "another sentence altogether, which the wrong clock reads")
    assert len(roles.world.cluster.values("posts.unique")) == 2
    assert len(roles.world.cluster.values("posts.duplicates")) == 2
