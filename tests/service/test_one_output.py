"""One app name for two pipelines is refused: each would suppress the other's messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.memory.clients import MemoryAdmin
from tests.service.running import Service, came_out, patient_cluster, small, wait_for
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import BrokerError, Committed, Messages, Partition
from twinsieve.pipeline.service.start_checks import committed_by_index, refuse_another_output
from twinsieve.pipeline.settings.model import Settings


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = patient_cluster()
    for name in ("posts", "more"):
        cluster.create(NewTopic(name, 1))
    return cluster


def _settings(folder: Path, output: str = "posts.unique", inputs: tuple[str, ...] = ("posts",)) -> Settings:
    source = {"topics": list(inputs), "encoding": "text"}
    return small(folder, source, output={"topic": output, "duplicates": "none", "dead_letter": "none"})


def _comes_out(cluster: MemoryCluster, settings: Settings, text: str, **options: object) -> None:
    topic, output = settings.input.topics[-1], settings.output.topic
    before = came_out(cluster, output)
    messages = Messages()
    messages.add(None, text.encode())
    cluster.write(Partition(topic, 0), messages)
    service = Service(settings, cluster, **options)
    wait_for(lambda: came_out(cluster, output) > before, f"{text} in {output}")
    service.end()


def test_another_output_is_refused_and_another_input_is_not(tmp_path: Path, cluster: MemoryCluster) -> None:
    _comes_out(cluster, _settings(tmp_path), "今天武汉下雨了，大家出门记得带伞")
    second = Service(_settings(tmp_path, "other.unique"), cluster)
    second.join()
    assert isinstance(second.error, BrokerError)
    assert not second.error.retryable
    assert str(second.error) == (
        "app t writes to posts.unique, and output.topic is other.unique: two pipelines of one app would suppress "
        "each other's messages; use another app name, or, if the output has moved for good, stop every process and "
        "start the first one with `twinsieve run --move-output`"
    )
    more = _settings(tmp_path, inputs=("posts", "more"))
    _comes_out(cluster, more, "北京的天气晴朗，适合到公园里走一走")


def test_an_output_that_moves_for_good_is_the_one_on_record_from_then_on(
    tmp_path: Path, cluster: MemoryCluster
) -> None:
    _comes_out(cluster, _settings(tmp_path), "今天武汉下雨了，大家出门记得带伞")
    moved = _settings(tmp_path, "other.unique")
    _comes_out(cluster, moved, "北京的天气晴朗，适合到公园里走一走", move_output=True)
    _comes_out(cluster, moved, "长江水位昨夜上涨，堤防加强巡查")
    old = Service(_settings(tmp_path), cluster)
    old.join()
    assert str(old.error).startswith("app t writes to other.unique, and output.topic is posts.unique")


def test_a_dry_run_with_another_output_is_nobodys_second_pipeline(
    tmp_path: Path, cluster: MemoryCluster
) -> None:
    _comes_out(cluster, _settings(tmp_path), "今天武汉下雨了，大家出门记得带伞")
    for output in ("a.unique", "b.unique"):
        dry = Service(_settings(tmp_path, output), cluster, dry_run=True)
        wait_for(lambda: "t-shadow.workers" in cluster.groups, "the dry run joins")
        dry.end()


def test_an_index_that_died_in_its_transaction_holds_up_no_start(
    tmp_path: Path, cluster: MemoryCluster
) -> None:
    settings = _settings(tmp_path)
    _comes_out(cluster, settings, "今天武汉下雨了，大家出门记得带伞")
    broker = MemoryBroker(cluster)
    log = Partition("t.fingerprints", 0)
    consumer = broker.group_consumer("t.index", [log.topic], "i")
    polled = consumer.poll(0, 1)
    for _ in range(100):
        cluster.clock.sleep(1.0)
        polled = consumer.poll(0, 1)
    assert log in polled.assignment
    transactor = broker.transactor("t.index")
    transactor.begin()
    transactor.send_offsets({log: Committed(9, "1 9 posts.unique")}, polled.membership)
    committed = committed_by_index(settings.app, broker.admin())
    refuse_another_output(settings, committed)
    with pytest.raises(BrokerError, match=r"writes to posts\.unique"):
        refuse_another_output(_settings(tmp_path, "other.unique"), committed)


@pytest.mark.parametrize("output", ["posts.unique", "other.unique"])
def test_a_start_waits_for_the_broker_that_knows_the_output(
    tmp_path: Path,
    cluster: MemoryCluster,
    output: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _comes_out(cluster, _settings(tmp_path), "今天武汉下雨了，大家出门记得带伞")
    failures = _away(monkeypatch, times=2)
    service = Service(_settings(tmp_path, output), cluster)
    if output == "other.unique":
        service.join()
        assert str(service.error).startswith("app t writes to posts.unique")
    else:
        wait_for(lambda: not failures and service.running, "it asks again")
        service.end()
    said = "waiting for a broker: offsets of group t.index: no coordinator"
    assert caplog.text.count(said) == 1


def test_a_start_that_waits_for_a_broker_can_be_stopped(
    tmp_path: Path, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = _away(monkeypatch, times=10_000)
    service = Service(_settings(tmp_path), cluster)
    wait_for(lambda: len(failures) < 10_000, "it has asked")
    service.end()


def _away(monkeypatch: pytest.MonkeyPatch, times: int) -> list[BrokerError]:
    """Failures that are still to come."""
    failures = [BrokerError("offsets of group t.index: no coordinator", retryable=True)] * times
    answer = MemoryAdmin.group_offsets

    def group_offsets(admin: MemoryAdmin, group: str, *, stable: bool = True) -> dict[Partition, Committed]:
        if failures and group == "t.index":
            raise failures.pop()
        return answer(admin, group, stable=stable)

    monkeypatch.setattr(MemoryAdmin, "group_offsets", group_offsets)
    return failures
