"""Gauges that alerts stand on stay true when no broker answers and when there is no role."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.memory.broker import ManualClock
from tests.service.test_changed_settings import base, posts
from tests.service.turned import Turned
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import AbortableError, Partition
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source
from twinsieve.pipeline.worker.config import WorkerStep
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.stages.contract import Flag, Kind, Verdicts
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.scheme import Scheme

LOG = Partition("t.fingerprints", 0)


@pytest.fixture
def roles(tmp_path: Path, scheme: Scheme) -> Turned:
    made = Turned(base(str(tmp_path)), scheme)
    made.world.produce(posts(1, 9))
    made.turn(40)
    assert made.world.done()
    return made


def test_the_index_that_judges_says_how_large_the_log_is_and_no_other(roles: Turned) -> None:
    def shown() -> float | None:
        return roles.value("log_bytes", "t.fingerprints")

    written = sum(len(entry.value or b"") for entry in roles.world.cluster.log(LOG).entries)
    for _ in range(8):
        roles.world.clock.sleep(10.0)
        roles.turn(5)
    assert roles.value("index_live") == 1
    size = shown()
    assert size is not None
    assert size >= written > 0
    roles.index._give_up()
    roles.index._set_gauges()
    assert shown() is None


def test_roles_that_are_gone_wait_for_nothing(roles: Turned) -> None:
    roles.loops = [roles.worker]
    roles.world.produce(posts(2, 9))
    roles.turn(5)
    roles.worker._set_gauges()
    assert roles.value("unanswered_blocks") == 1
    roles.worker._give_up()
    roles.worker._set_gauges()
    roles.index._give_up()
    roles.index._set_gauges()
    page = roles.page()
    assert page["unanswered_blocks"] == {(): 0.0}
    assert page["index_live"] == {(): 0.0}
    assert "index_lag_blocks" not in page
    assert page["index_phase"][("restoring",)] == 1, "the next index is still to be made"


def test_a_verdict_that_is_said_again_is_not_counted_again() -> None:
    metrics = Metrics(ManualClock())
    verdicts = Verdicts.blank(4, fill={"kinds": Kind.EXACT})
    verdicts.flags[:3] = Flag.UNCONFIRMED
    sources = np.array([Source.NEW, Source.NEW, Source.STORED, Source.NEW], np.uint8)
    metrics.count_ruling(Ruling(0, 1, Result.JUDGED, 0, 4, sources, verdicts))
    assert metrics.registry.get_sample_value("twinsieve_index_unconfirmed_total") == 2


def test_every_label_that_is_known_beforehand_begins_at_zero(tmp_path: Path, scheme: Scheme) -> None:
    """Else the first burst of its kind is no increase."""
    page = Turned(base(str(tmp_path)), scheme).page()
    known = {
        "messages_total": [*(kind.name.lower() for kind in Kind), "no_text"],
        "dead_letters_total": list(DeadLetterReason),
        "index_kept_apart_total": [reason.words for reason in Rule if reason],
        "index_given_up_messages_total": list(GivenUp),
        "broker_errors_total": ["index", "worker"],
        "rebalances_total": ["index", "worker"],
    }
    assert {name: page[name] for name in known} == {
        name: {(label,): 0.0 for label in labels} for name, labels in known.items()
    }
    steps = {**page["step_seconds_count"], **page["wait_seconds_count"]}
    assert steps == {(str(step),): 0.0 for step in (*WorkerStep, *IndexStep)}


def test_steps_are_timed_without_the_time_in_which_nothing_came(roles: Turned) -> None:
    before = roles.page()
    roles.run(600.0)
    after = roles.page()
    waited = sum(after["wait_seconds_sum"].values()) - sum(before["wait_seconds_sum"].values())
    worked = sum(after["step_seconds_sum"].values()) - sum(before["step_seconds_sum"].values())
    assert waited > 60.0
    assert worked < 1.0


@pytest.mark.parametrize(
    ("refused", "after"),
    [
        ("send.before", IndexStep.BEGUN),
        ("send_offsets.before", IndexStep.ANSWERED),
        ("commit.before", IndexStep.OFFSETS_SENT),
    ],
)
def test_what_refused_a_transaction_of_the_index_is_told(
    refused: str, after: IndexStep, tmp_path: Path, scheme: Scheme
) -> None:
    fails: list[str] = []

    def hook(step: str) -> None:
        if step == f"transactor.{refused}" and fails:
            fails.pop()
            raise AbortableError("refused")

    made = Turned(base(str(tmp_path)), scheme, hook=hook)
    made.world.produce(posts(1, 9))
    made.turn(40)
    assert set(made.page()["aborted_transactions_total"].values()) == {0.0}
    fails.append("the index's, which is the next to write")
    made.world.produce(posts(2, 9))
    made.run_until(lambda: not fails, 60.0)
    made.run(10.0)
    counted = {labels: count for labels, count in made.page()["aborted_transactions_total"].items() if count}
    assert counted == {(after, "index"): 1.0}
    assert made.world.done()


def test_each_rebalance_of_each_role_is_counted(tmp_path: Path, scheme: Scheme, roles: Turned) -> None:
    assert roles.page()["rebalances_total"] == {("index",): 1.0, ("worker",): 1.0}
    other = Turned(base(str(tmp_path)), scheme, world=roles.world, name="two")
    for _ in range(20):
        other.turn(1)
        roles.turn(1)
    assert roles.page()["rebalances_total"] == {("index",): 2.0, ("worker",): 2.0}
    assert other.page()["rebalances_total"] == {("index",): 1.0, ("worker",): 1.0}


def test_the_delay_of_messages_is_from_their_timestamp_to_the_commit(roles: Turned) -> None:
    before = roles.page()
    roles.loops = [roles.worker]
    roles.world.produce(posts(5, 7))
    roles.clock.sleep(42.0)
    roles.loops = [roles.worker, roles.index]
    roles.turn(40)
    assert roles.world.done()
    after = roles.page()
    grown = {
        at: count - before["end_to_end_seconds_bucket"][at]
        for at, count in after["end_to_end_seconds_bucket"].items()
    }
    assert (grown[("30.0",)], grown[("60.0",)], grown[("+Inf",)]) == (0, 7, 7)
    took = after["end_to_end_seconds_sum"][()] - before["end_to_end_seconds_sum"][()]
    assert 7 * 42.0 <= took <= 7 * 45.0


def test_a_clock_that_runs_ahead_makes_no_negative_delay_and_no_stamp_none() -> None:
    clock = ManualClock()
    metrics = Metrics(clock)
    stamps = np.array([clock.now_ms() + 60_000, clock.now_ms() - 200], np.int64)
    metrics.count_emission(Emission(stamps=[stamps, stamps[:0]]))
    count = metrics.registry.get_sample_value
    assert count("twinsieve_end_to_end_seconds_bucket", {"le": "0.01"}) == 1
    assert count("twinsieve_end_to_end_seconds_bucket", {"le": "0.25"}) == 2
    assert count("twinsieve_end_to_end_seconds_count") == 2
    assert count("twinsieve_end_to_end_seconds_sum") == pytest.approx(0.2)


def test_the_page_tells_of_the_process(roles: Turned) -> None:
    assert (roles.value("process_resident_memory_bytes") or 0) > 1 << 20
    assert (roles.value("process_open_fds") or 0) > 1
