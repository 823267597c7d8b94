"""What kafka-python may say while a broker is away: every kind of line once, then one every few seconds."""

from __future__ import annotations

import logging
import re
from collections import Counter

import pytest
from kafka.errors import KafkaTimeoutError

from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka.log_filters import (
    _MAX_KINDS,
    ConnectionFailures,
    OneLineAtATime,
    is_unusual,
    quieten,
)
from twinsieve.pipeline.kafka.options import connected
from twinsieve.pipeline.settings.model import KafkaSettings


class Log:
    """Feeds the filter, on a clock that moves by hand; `lines` are those that pass."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.lines: list[str] = []
        self._filter = OneLineAtATime(clock=lambda: self.now_s)

    def say(self, template: str, *values: object, name: str = "kafka.net") -> bool:
        record = logging.LogRecord(name, logging.ERROR, "", 0, template, values, None)
        passed = self._filter.filter(record)
        if passed:
            self.lines.append(record.getMessage())
        return passed


@pytest.fixture
def log() -> Log:
    return Log()


def test_the_first_line_of_each_kind_passes_at_once(log: Log) -> None:
    assert log.say("lost %d", 1)
    assert log.say("found %d", 1)
    assert log.say("lost %d", 1, name="kafka.other")
    assert not log.say("lost %d", 2)
    assert log.lines == ["lost 1", "found 1", "lost 1"]


def test_an_outage_is_one_line_of_each_kind_and_then_one_every_five_seconds(log: Log) -> None:
    heard = 0
    for _ in range(600):
        for name in ("kafka.net", "kafka.cluster", "kafka.coordinator"):
            for template in ("refused %s", "lost %s", "dead %s", "again %s"):
                log.say(template, "x", name=name)
                heard += 1
        log.now_s += 0.1
    assert log.lines[:12] == ["refused x", "lost x", "dead x", "again x"] * 3
    repeated = log.lines[12:]
    assert len(repeated) == 11
    assert all("suppressed in 5 s" in line for line in repeated)
    held = sum(int(count) for line in repeated for count in re.findall(r"(\d+) (?:of|similar)", line))
    assert heard - 5 * 10 * 12 <= held + len(log.lines) <= heard, "all but those of the last five seconds"


def test_a_line_says_how_many_of_which_were_held_back(log: Log) -> None:
    log.say("lost %d", 1)
    log.say("no node", name="kafka.cluster")
    for number in range(3):
        log.say("lost %d", number)
        log.say("no node", name="kafka.cluster")
        log.say("no node", name="kafka.cluster")
    log.now_s += 5.0
    assert log.say("lost %d", 9)
    assert log.lines[-1] == "lost 9 (suppressed in 5 s: 3 similar, 6 of kafka.cluster)"
    log.now_s += 5.0
    assert log.say("lost %d", 10)
    assert log.lines[-1] == "lost 10", "nothing was held back since"


def test_a_new_kind_passes_at_once_in_the_middle_of_the_noise(log: Log) -> None:
    for _ in range(100):
        log.say("refused")
    assert log.say("password refused")
    assert log.lines == ["refused", "password refused"]


def test_numbers_filled_into_a_template_make_no_new_kind(log: Log) -> None:
    for number in range(100):
        log.say(f"attempt {number} to 127.0.0.1:{9000 + number} failed (backoff {number / 7:.2f} secs)")
    assert len(log.lines) == 1


def test_a_kind_that_was_quiet_for_a_minute_is_first_again(log: Log) -> None:
    log.say("lost")
    log.now_s += 59.0
    for _ in range(10):
        log.say("other")
    log.say("lost")
    log.now_s += 0.5
    assert not log.say("lost"), "heard a moment ago"
    log.now_s += 60.0
    log.say("other")
    assert log.say("lost")


def test_a_client_that_never_repeats_itself_is_held_back_too(log: Log) -> None:
    for number in range(5 * _MAX_KINDS):
        log.say("fault " + "x" * (1 + number))
    assert len(log.lines) == _MAX_KINDS
    log.now_s += 5.0
    assert log.say("fault" + "y")
    assert log.lines[-1] == f"faulty (suppressed in 5 s: {4 * _MAX_KINDS} of kafka.net)"


def test_the_service_s_own_lines_are_never_held_back(caplog: pytest.LogCaptureFixture) -> None:
    theirs, ours = logging.getLogger("kafka.test_noise"), logging.getLogger("twinsieve")
    quieten()
    for _ in range(100):
        theirs.error("the broker is away")
        ours.error("worker: the broker is away")
    said = Counter(record.name for record in caplog.records)
    assert said["twinsieve"] == 100
    assert 1 <= said["kafka.test_noise"] < 100


@pytest.mark.parametrize(("failed", "tries"), [(("0", "1"), 1), (("0", "0"), 2)])
def test_a_plain_cause_ends_the_tries_only_if_every_address_has_it(
    failed: tuple[str, ...], tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("kafka.net.manager")
    limits_ms = []

    def make(*, bootstrap_timeout_ms: int, **_: object) -> None:
        limits_ms.append(bootstrap_timeout_ms)
        for number in failed:
            log.warning("Bootstrap connection to %s failed: 111 ECONNREFUSED", f"bootstrap-{number}")
        raise KafkaTimeoutError("Unable to bootstrap")

    settings = KafkaSettings(bootstrap="127.0.0.1:1,127.0.0.1:2")
    options = {"bootstrap_servers": settings.bootstrap.split(","), "bootstrap_timeout_ms": 15_000}
    with pytest.raises(BrokerError, match="nothing listens there"):
        connected(settings, make, **options)
    assert len(limits_ms) == tries
    assert tries == 1 or sum(limits_ms) == 15_000
    assert not caplog.records, "the error says it"
    log.warning(f"line {'of ' * tries}another client")  # of a new kind, which no filter suppresses
    assert len(caplog.records) == 1


def test_lines_of_other_clients_pass_while_one_connects(caplog: pytest.LogCaptureFixture) -> None:
    failures = ConnectionFailures(lambda: {-1})
    with failures.collecting():
        logging.getLogger("kafka.net.manager").warning("of a client that works")
    assert (failures.reasons, len(caplog.records)) == ([], 1)


def test_a_batch_that_is_sent_again_in_healthy_operation_is_no_line() -> None:
    """As kafka-python 3.0.12 logs it; other refusals of the same kind are lines."""
    template = "%s: Got error produce response on topic-partition %s, retrying (%s attempts left): %s%s"
    at = "<Sender>", "TopicPartition(topic='many.dup', partition=294)", "inf", "NotEnoughReplicasError"
    usual = (
        ". Error Message: Unable to verify the partition has been added to the transaction. Underlying error"
    )

    def passes(name: str, end: str) -> bool:
        return is_unusual(logging.LogRecord(name, logging.WARNING, "", 0, template, (*at, end), None))

    assert not passes("kafka.producer.sender", usual)
    assert passes("kafka.producer.sender", ". Error Message: min.insync.replicas is 2")
    assert passes("kafka.coordinator", usual)
