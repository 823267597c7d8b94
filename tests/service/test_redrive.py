"""`twinsieve redrive`: dead letters judged again, while `run` is running or not; nothing comes out twice."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.calling import Run
from tests.memory import cluster as memory_cluster
from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.service.running import Service, came_out, wait_for
from tests.service.stepped import unlike
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.input_position import read_position
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Header, Messages, Partition
from twinsieve.pipeline.commands.kafka import connect
from twinsieve.pipeline.operate.dead_letters import letter_topic, survey
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service import ending_loop
from twinsieve.pipeline.service import redrive as redriving
from twinsieve.pipeline.service.redrive import RedriveResult, begin_redrive, run_redrive
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.why.verdict import Account, Outcome, verdict_of
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import UsageError

OUT, DUP, DEAD = "posts.unique", "posts.duplicates", "posts.dead"
JSON, UTF8 = DeadLetterReason.INVALID_JSON, DeadLetterReason.NOT_UTF8


def settings_of(folder: Path, **source: object) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "input": source,
            "state": {"dir": str(folder / "state"), "snapshot_every": "1s"},
            "http": {"listen": "none"},
            "near": {"window": {"messages": 1_000, "age": "none"}},
            "exact": {"window": {"messages": 10_000, "age": "none"}},
            "kafka": {"poll_messages": 5, "idle_report": "50ms", "session_timeout": "1s"},
        }
    )


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all is read; each run of the command waits for that."""
    monkeypatch.setattr(ending_loop, "CHECK_S", 0.1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path, encoding="text")


@pytest.fixture
def wrong(tmp_path: Path) -> Settings:
    """The settings without their encoding: a text is no JSON."""
    return settings_of(tmp_path)


@pytest.fixture
def cluster(settings: Settings) -> MemoryCluster:
    made = MemoryCluster(SystemClock(), session_timeout_s=1.0)
    made.create(NewTopic("posts", 2))
    create(settings, MemoryBroker(made).admin())
    return made


def value_of(number: int) -> bytes:
    return unlike(number).encode()


def document_of(number: int) -> bytes:
    return b'{"text": "%s"}' % value_of(number)


def write(
    cluster: MemoryCluster, at: Partition, *values: bytes | None, headers: tuple[Header, ...] = ()
) -> None:
    messages = Messages()
    for row, value in enumerate(values):
        messages.add(b"k%d" % row, value, headers, 1_600_000_000_000 + row)
    cluster.write(at, messages)


def run_until(settings: Settings, cluster: MemoryCluster, count: int) -> None:
    """Run the app until its outputs hold this number of messages."""
    service = Service(settings, cluster, member="one")
    try:
        wait_for(lambda: came_out(cluster, OUT, DUP, DEAD) == count, "all that came in is out")
    finally:
        service.end()


def forget_offsets(cluster: MemoryCluster) -> None:
    """What Kafka does with the offsets of groups that nobody used for long."""
    group = Names("t").redrive(JSON)
    for name in (group, Names.emitted(group)):
        cluster.group(name).offsets.clear()


def redrive(settings: Settings, cluster: MemoryCluster, **more: object) -> RedriveResult:
    return run_redrive(settings, lambda _: MemoryBroker(cluster), member="again", **more)  # type: ignore[arg-type]


def columns(
    cluster: MemoryCluster, topic: str
) -> list[tuple[bytes | None, bytes | None, int, dict[str, bytes | None]]]:
    return [
        (entry.key, entry.value, entry.timestamp_ms, dict(entry.headers))
        for log in cluster.topics[topic].logs
        for _, entry in log.visible()
    ]


def account_of(settings: Settings, cluster: MemoryCluster, at: str) -> Account:
    position = read_position(at)
    assert position is not None
    return verdict_of(settings, MemoryBroker(cluster), SystemClock(), position, 20_000)


def told(
    settings: Settings, cluster: MemoryCluster, at: str
) -> tuple[Outcome, tuple[str, str | None] | None]:
    """What `why` says of a message: its fate, and its leader with the text."""
    account = account_of(settings, cluster, at)
    leader = account.drop.leader if account.drop is not None else None
    return account.outcome, (str(leader), leader.text) if leader is not None else None


@pytest.mark.parametrize("beside", [False, True])
def test_a_wrong_setting_is_undone(
    wrong: Settings, settings: Settings, cluster: MemoryCluster, beside: bool
) -> None:
    """Everything became a dead letter; afterwards it is where it would have been, with its first place."""
    trace: tuple[Header, ...] = (("trace", b"7"), ("twinsieve-origin", b"bank[0]@1"))
    values = [value_of(number % 30) for number in range(40)]
    write(cluster, Partition("posts", 0), *values, headers=trace)
    run_until(wrong, cluster, 40)
    assert came_out(cluster, DEAD) == 40
    service = Service(settings, cluster, member="one") if beside else None
    redriven = redrive(settings, cluster)
    assert redriven.finished
    assert redriven.kinds == {Kind.UNIQUE: 30, Kind.EXACT: 10}
    assert "40 dead letters judged: 30 unique, 10 duplicates" in redriven.lines()[0]
    for row, (key, value, stamp, headers) in enumerate(columns(cluster, OUT)):
        assert (key, value, stamp) == (b"k%d" % row, values[row], 1_600_000_000_000 + row)
        assert headers == {"trace": b"7", "twinsieve-origin": b"posts[0]@%d" % row}
    places = [offset for offset, _ in cluster.log(Partition(DEAD, 0)).visible()]
    for row, (_, _, _, headers) in enumerate(columns(cluster, DUP)):
        assert headers["twinsieve-origin"] == b"posts[0]@%d" % (30 + row)
        assert headers["twinsieve-leader"] == b"posts.dead[0]@%d" % places[row]
    assert told(settings, cluster, f"posts.dead[0]@{places[0]}") == (Outcome.KEPT, None)
    leader = f"posts.dead[0]@{places[0]}"
    assert told(settings, cluster, f"posts.dead[0]@{places[30]}") == (Outcome.DROPPED, (leader, unlike(0)))
    again = redrive(settings, cluster)
    assert (again.finished, again.kinds - Counter({Kind.REPLAYED: 40})) == (True, Counter())
    if service is not None:
        write(cluster, Partition("posts", 1), value_of(3))
        wait_for(lambda: came_out(cluster, DUP) == 11, "a copy of what was redriven is dropped")
        leader = f"posts.dead[0]@{places[3]}"
        assert told(settings, cluster, "posts[1]@0") == (Outcome.DROPPED, (leader, unlike(3)))
        service.end()
    assert came_out(cluster, OUT, DUP, DEAD) == 80 + beside


def test_why_says_what_became_of_a_message_whose_dead_letter_was_redriven(
    wrong: Settings, settings: Settings, cluster: MemoryCluster
) -> None:
    """By its first place and by that of its dead letter: before, after a run that failed again, and after one
    that did not; also when the dead letter, the offsets of the group, or both are gone."""
    write(cluster, Partition("posts", 0), document_of(9), value_of(1), value_of(1), value_of(2))
    run_until(wrong, cluster, 4)
    first, copy, other = (
        f"posts.dead[0]@{offset}" for offset, _ in cluster.log(Partition(DEAD, 0)).visible()
    )
    for at in (first, "posts[0]@1"):
        account = account_of(wrong, cluster, at)
        assert account.outcome is Outcome.UNREADABLE
        assert "`twinsieve redrive --reason invalid_json` judges it again" in account.lines[-1]
    assert redrive(wrong, cluster).same == {JSON: 3}
    again = account_of(wrong, cluster, "posts[0]@1")
    assert again.outcome is Outcome.UNREADABLE
    letters = [f"posts.dead[0]@{offset}" for offset, _ in cluster.log(Partition(DEAD, 0)).visible()]
    assert [line for line in again.lines if line.startswith("its dead letter is")] == [
        f"its dead letter is {at}" for at in (first, letters[3])
    ]
    assert "`twinsieve redrive --reason invalid_json` judges it again" in again.lines[-1]
    assert redrive(settings, cluster).kinds == {Kind.UNIQUE: 2, Kind.EXACT: 1}
    led = Outcome.DROPPED, (letters[3], unlike(1))
    for at in ("posts[0]@2", copy, letters[4]):
        assert told(settings, cluster, at) == led
    for at in ("posts[0]@1", "posts[0]@3", first, other):
        assert told(settings, cluster, at) == (Outcome.KEPT, None)
    dropped = account_of(settings, cluster, "posts[0]@2").drop
    assert dropped is not None
    assert str(dropped.message) == "posts[0]@2"
    forget_offsets(cluster)
    assert told(settings, cluster, "posts[0]@2") == led
    cluster.log(Partition(DEAD, 0)).trim(cluster.log(Partition(DEAD, 0)).end)
    for at in ("posts[0]@2", letters[4]):
        assert told(settings, cluster, at) == (Outcome.DROPPED, (letters[3], None))
    assert told(settings, cluster, letters[3]) == (Outcome.KEPT, None)


def test_why_finds_a_redriven_duplicate_by_its_id(
    tmp_path: Path,
    cluster: MemoryCluster,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    log_as_before: None,
) -> None:
    monkeypatch.setattr(connect, "connect_by_settings", lambda *_, **__: MemoryBroker(cluster))
    write(
        cluster, Partition("posts", 0), *(b'{"id": "%s", "text": "one text"}' % id_ for id_ in (b"a", b"b"))
    )
    run_until(settings_of(tmp_path, text_field="body", expect_text=False), cluster, 2)
    assert redrive(settings_of(tmp_path), cluster).kinds == {Kind.UNIQUE: 1, Kind.EXACT: 1}
    found = run("why", "--id", "b", "--set", "app=t", "--set", "input.id_field=id")
    assert found.code == 0
    assert found.out.startswith("posts[0]@1 (id b) was dropped, exact: equal to posts.dead[0]@")


def test_what_fails_again_is_refused_once_in_each_run_and_said(
    wrong: Settings, cluster: MemoryCluster
) -> None:
    missing = DeadLetterReason.MISSING_FIELD
    write(cluster, Partition("posts", 0), b'{"id": 1}', b"no JSON", b'{"id": 2}')
    run_until(wrong, cluster, 3)
    for run in (1, 2):
        redriven = redrive(wrong, cluster, reason=missing)
        assert (redriven.kinds, redriven.same) == ({Kind.UNREADABLE: 2}, {missing: 2})
        assert "check input.text_field" in redriven.lines()[-1]
        assert came_out(cluster, DEAD) == 3 + 2 * run
        origins = [headers["twinsieve-origin"] for _, _, _, headers in columns(cluster, DEAD)[-2:]]
        assert origins == [b"posts[0]@0", b"posts[0]@2"]


def test_why_follows_dead_letters_through_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, each time a message fails its dead letter may be in another partition."""
    turns = itertools.count()
    monkeypatch.setattr(memory_cluster, "partition_of", lambda _, partitions: next(turns) % partitions)
    wrong, settings = settings_of(tmp_path), settings_of(tmp_path, encoding="text")
    cluster = MemoryCluster(SystemClock(), session_timeout_s=1.0)
    cluster.create(NewTopic("posts", 2))
    cluster.create(NewTopic(DEAD, 3))
    create(settings, MemoryBroker(cluster).admin())
    messages = Messages()
    for number in range(5):
        messages.add(None, value_of(number))
    cluster.write(Partition("posts", 1), messages)
    run_until(wrong, cluster, 5)
    for _ in range(2):
        redrive(wrong, cluster)
    for number in range(5):
        last = account_of(wrong, cluster, f"posts[1]@{number}").lines[-1]
        assert "`twinsieve redrive --reason invalid_json` judges it again" in last
    redrive(settings, cluster)
    places: dict[bytes | None, set[int]] = {}
    for number, log in enumerate(cluster.topics[DEAD].logs):
        for _, entry in log.visible():
            places.setdefault(dict(entry.headers)["twinsieve-origin"], set()).add(number)
    assert any(len(numbers) > 1 for numbers in places.values())
    for number in range(5):
        assert told(settings, cluster, f"posts[1]@{number}") == (Outcome.KEPT, None)


@pytest.mark.parametrize("letter_partitions", [1, 2, 3])
def test_a_redriven_message_goes_to_the_partition_of_its_first_place(
    tmp_path: Path, letter_partitions: int
) -> None:
    """However many partitions the dead letter topic has; a place that nobody can have has no say."""
    wrong, settings = settings_of(tmp_path), settings_of(tmp_path, encoding="text")
    cluster = MemoryCluster(SystemClock(), session_timeout_s=1.0)
    cluster.create(NewTopic("posts", 2))
    cluster.create(NewTopic(DEAD, letter_partitions))
    create(settings, MemoryBroker(cluster).admin())
    for number, texts in enumerate([(1, 2, 1), (3, 4, 3, 5)]):
        messages = Messages()
        for text in texts:
            messages.add(None, value_of(text))
        cluster.write(Partition("posts", number), messages)
    run_until(wrong, cluster, 7)
    hostile = (("twinsieve-reason", b"invalid_json"), ("twinsieve-origin", b"posts[7]@1"))
    write(cluster, Partition(DEAD, 0), value_of(6), headers=hostile)
    assert redrive(settings, cluster).kinds == {Kind.UNIQUE: 6, Kind.EXACT: 2}
    for topic in (OUT, DUP):
        for number, log in enumerate(cluster.topics[topic].logs):
            origins = [dict(entry.headers)["twinsieve-origin"] for _, entry in log.visible()]
            assert {origin[: origin.index(b"]") + 1] for origin in origins if origin != b"posts[7]@1"} == {
                b"posts[%d]" % number
            }


def test_a_message_without_a_key_comes_out_without_one_when_the_output_takes_it(
    settings: Settings, cluster: MemoryCluster
) -> None:
    for topic in (OUT, DEAD):
        cluster.topics[topic].settings["cleanup.policy"] = "compact"
    cluster.write(Partition("posts", 0), Messages([None], [value_of(1)], [()], [1_600_000_000_000]))
    run_until(settings, cluster, 1)
    assert [key for key, _, _, _ in columns(cluster, DEAD)] == [b"posts[0]@0"]
    cluster.topics[OUT].settings["cleanup.policy"] = "delete"
    assert redrive(settings, cluster, reason=DeadLetterReason.NO_KEY).kinds == {Kind.UNIQUE: 1}
    assert [(key, value) for key, value, _, _ in columns(cluster, OUT)] == [(None, value_of(1))]


def test_a_null_that_was_refused_comes_out_when_it_may(tmp_path: Path, cluster: MemoryCluster) -> None:
    write(cluster, Partition("posts", 0), document_of(1), None)
    run_until(settings_of(tmp_path, null_value="dead_letter"), cluster, 2)
    redriven = redrive(settings_of(tmp_path), cluster, reason=DeadLetterReason.NULL)
    assert redriven.finished
    assert [(key, value) for key, value, _, _ in columns(cluster, OUT)][-1] == (b"k1", None)


def test_messages_of_strangers_stay_and_are_counted(
    wrong: Settings, settings: Settings, cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    at = Partition(DEAD, 1)
    write(cluster, Partition("posts", 0), value_of(1))
    run_until(wrong, cluster, 1)
    for reason in (b"no such reason", b"\xff", b"invalid_json\n", b"", None):
        write(cluster, at, value_of(9), headers=(("twinsieve-reason", reason),))
    write(cluster, at, value_of(9))
    hostile = (("twinsieve-reason", b"invalid_json"), ("twinsieve-origin", b"a[0]@1\n\x1b[2J"))
    write(cluster, at, value_of(2), headers=hostile)
    broker = MemoryBroker(cluster)
    found = survey(settings, broker, SystemClock(), letter_topic(settings, broker), read=True)
    assert found.others == 6
    assert {own: (one.count, one.readable) for own, one in found.letters.items()} == {JSON: (2, 2)}
    assert redrive(settings, cluster).kinds == {Kind.UNIQUE: 2}
    assert "6 messages in posts.dead have no reason" in caplog.text
    origins = {headers["twinsieve-origin"] for _, _, _, headers in columns(cluster, OUT)}
    assert origins == {b"posts[0]@0", b"posts.dead[1]@6"}, (
        "without a readable place, where the dead letter is"
    )


def test_a_survey_says_what_was_redriven_and_what_is_left(
    wrong: Settings, settings: Settings, cluster: MemoryCluster
) -> None:
    write(cluster, Partition("posts", 0), *map(value_of, range(6)), b"\xff")
    run_until(wrong, cluster, 7)
    assert redrive(settings, cluster, reason=JSON, since_ms=1_600_000_000_004).kinds == {Kind.UNIQUE: 2}
    broker = MemoryBroker(cluster)
    found = survey(settings, broker, SystemClock(), letter_topic(settings, broker), read=True).letters
    assert {own: (one.count, one.redriven, one.readable, one.since_ms) for own, one in found.items()} == {
        JSON: (6, 2, 4, 1_600_000_000_000),
        UTF8: (1, 0, 0, 1_600_000_000_006),
    }
    assert redrive(settings, cluster).kinds == {Kind.UNIQUE: 4, Kind.REPLAYED: 2, Kind.UNREADABLE: 1}


def test_the_earliest_time_of_dead_letters_may_be_0(wrong: Settings, cluster: MemoryCluster) -> None:
    messages = Messages()
    for stamp in (5, 0, 7):
        messages.add(None, b"no JSON", (), stamp)
    cluster.write(Partition("posts", 0), messages)
    run_until(wrong, cluster, 3)
    broker = MemoryBroker(cluster)
    assert survey(wrong, broker, SystemClock(), letter_topic(wrong, broker)).letters[JSON].since_ms == 0


def test_retention_of_dead_letters_claims_a_loss_only_where_one_is_on_record(
    wrong: Settings, settings: Settings, cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    log = cluster.log(Partition(DEAD, 0))
    write(cluster, Partition("posts", 0), *map(value_of, range(3)))
    run_until(wrong, cluster, 3)
    redrive(settings, cluster)
    end = log.end
    write(cluster, Partition("posts", 0), *map(value_of, range(3, 9)))
    run_until(wrong, cluster, 12)
    first = log.visible()[7][0]
    log.trim(first)
    assert redrive(settings, cluster).kinds == {Kind.UNIQUE: 2}
    lost = f"from {end} to {first - 1} before dead letters of reason invalid_json among them were redriven"
    assert lost in caplog.text
    caplog.clear()
    forget_offsets(cluster)
    redrive(settings, cluster)
    assert "are lost" not in caplog.text
    assert f"posts.dead[0]: retention deleted the offsets below {first}; no record says" in caplog.text


def test_the_topic_is_read_once_while_another_redrive_is_waited_for(
    wrong: Settings, settings: Settings, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(cluster, Partition("posts", 0), value_of(1))
    run_until(wrong, cluster, 1)
    surveys: list[object] = []
    tries = iter([True, False])

    def looking(*arguments: object) -> object:
        surveys.append(arguments)
        return survey(*arguments)  # type: ignore[arg-type]

    def beginning(*arguments: object) -> object:
        if next(tries):
            raise BrokerError("group has members", retryable=True)
        return begin_redrive(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(redriving, "survey", looking)
    monkeypatch.setattr(redriving, "begin_redrive", beginning)
    assert redrive(settings, cluster).kinds == {Kind.UNIQUE: 1}
    assert len(surveys) == 1


def test_a_topic_of_dead_letters_that_was_created_again_is_read_from_its_beginning(
    wrong: Settings, settings: Settings, cluster: MemoryCluster
) -> None:
    for first in (0, 10):
        write(cluster, Partition("posts", 0), *map(value_of, range(first, first + 4)))
        before = came_out(cluster, OUT)
        run_until(wrong, cluster, before + 4)
        assert redrive(settings, cluster).kinds == {Kind.UNIQUE: 4}
        assert came_out(cluster, OUT) == before + 4
        cluster.delete(DEAD)
        cluster.create(NewTopic(DEAD, 2))


def test_offsets_that_kafka_has_forgotten_bring_nothing_out_twice(
    wrong: Settings, settings: Settings, cluster: MemoryCluster
) -> None:
    write(cluster, Partition("posts", 0), *map(value_of, range(6)))
    run_until(wrong, cluster, 6)
    redrive(settings, cluster)
    forget_offsets(cluster)
    assert redrive(settings, cluster).kinds == {Kind.REPLAYED: 6}


def test_a_redrive_that_is_stopped_says_so(settings: Settings, cluster: MemoryCluster) -> None:
    stop = threading.Event()
    stop.set()
    redriven = redrive(settings, cluster, stop=stop)
    assert not redriven.finished
    assert redriven.lines()[0].endswith("stopped; run it again to continue")


def test_without_dead_letters_there_is_nothing_to_do(settings: Settings, cluster: MemoryCluster) -> None:
    assert redrive(settings, cluster).finished
    nowhere = settings.model_copy(update={"output": settings.output.model_copy(update={"dead_letter": None})})
    with pytest.raises(UsageError, match="dead_letter is none"):
        redrive(nowhere, cluster)


def test_dead_letters_that_lost_what_was_redriven_are_refused(
    wrong: Settings, settings: Settings, cluster: MemoryCluster
) -> None:
    write(cluster, Partition("posts", 0), *map(value_of, range(6)))
    run_until(wrong, cluster, 6)
    redrive(settings, cluster)
    cluster.log(Partition(DEAD, 0)).truncate(3)
    with pytest.raises(BrokerError, match=r"posts.dead\[0\]: ends at 3, but was redriven up to \d+: it lost"):
        redrive(settings, cluster, reason=JSON)


@pytest.mark.parametrize("named", [False, True])
def test_dead_letters_that_cannot_be_read_are_skipped_or_end_the_redrive(
    wrong: Settings, tmp_path: Path, cluster: MemoryCluster, named: bool
) -> None:
    """named: the reason is, so that the topic is not counted before"""
    write(cluster, Partition("posts", 0), *map(value_of, range(6)))
    run_until(wrong, cluster, 6)
    at = Partition(DEAD, 0)
    place = [offset for offset, _ in cluster.log(at).visible()][2]
    cluster.faults.unreadable[at] = [range(place, place + 1)]
    reason = JSON if named else None
    with pytest.raises(BrokerError, match=r"posts\.dead.*\[0\]@\d+: cannot be decoded"):
        redrive(settings_of(tmp_path, encoding="text"), cluster, reason=reason)
    skips = settings_of(tmp_path, encoding="text", on_unreadable_batch="skip")
    redriven = redrive(skips, cluster, reason=reason)
    assert redriven.finished
    assert came_out(cluster, OUT) == 5
    broker = MemoryBroker(cluster)
    found = survey(skips, broker, SystemClock(), letter_topic(skips, broker))
    assert (found.unreadable, found.letters[JSON].count) == (1, 5)


def test_the_command_counts_first_and_then_redrives(
    wrong: Settings,
    cluster: MemoryCluster,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    log_as_before: None,
) -> None:
    monkeypatch.setattr(connect, "connect_by_settings", lambda *_, **__: MemoryBroker(cluster))
    given = {
        "app": "t",
        "input.encoding": "text",
        "state.dir": wrong.state.dir,
        "http.listen": "none",
        "kafka.idle_report": "50ms",
    }
    sets = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    write(cluster, Partition("posts", 0), *map(value_of, range(3)), b"\xff")
    run_until(wrong, cluster, 4)
    counted = run("redrive", "--dry-run", *sets)
    assert counted.code == 0
    rows = [line.split("│")[1:-1] for line in counted.out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row[:5]] for row in rows] == [
        ["invalid_json", "3", "0", "3", "3"],
        ["not_utf8", "1", "0", "1", "0"],
    ]
    assert came_out(cluster, OUT) == 0
    redriven = run("redrive", "--reason", "invalid_json", *sets)
    assert redriven.code == 0
    assert "3 dead letters judged: 3 unique" in redriven.out
    assert came_out(cluster, OUT) == 3
    assert "not_utf8: no earlier redrive is on record." in run("redrive", "--dry-run", *sets).out
    assert run("redrive", "--reason", "no_such", *sets).code == 2
    assert run("redrive", "--since", "yesterday", *sets).code == 2


def _with_key(settings: Settings, empty_key: str) -> Settings:
    exact = settings.exact.model_copy(update={"fields": ("url",), "empty_key": empty_key})
    near = settings.near.model_copy(update={"method": "none"})
    return settings.model_copy(update={"exact": exact, "near": near})


def test_a_message_with_an_empty_key_is_judged_again(tmp_path: Path, cluster: MemoryCluster) -> None:
    strict, lenient = (_with_key(settings_of(tmp_path), policy) for policy in ("dead_letter", "keep"))
    values = [b'{"text": "words", "url": ""}', b'{"text": "words"}', b'{"text": "words", "url": "a"}']
    write(cluster, Partition("posts", 0), *values)
    run_until(strict, cluster, 3)
    reason = DeadLetterReason.EMPTY_KEY
    again = redrive(strict, cluster, reason=reason)
    assert (again.kinds, again.same) == ({Kind.UNREADABLE: 2}, {reason: 2})
    assert "exact.empty_key" in again.lines()[-1]
    assert redrive(lenient, cluster, reason=reason).kinds[Kind.UNIQUE] == 2
    assert sorted(value or b"" for _, value, _, _ in columns(cluster, OUT)) == sorted(values)
