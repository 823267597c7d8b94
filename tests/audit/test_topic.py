"""`twinsieve audit -c FILE` and `why --id` read the duplicates topic of an app."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.audit.test_verdict import DUPLICATES, POSTS, SET, Asking, settings_of
from tests.calling import Ran, Run
from tests.memory.broker import MemoryBroker
from tests.service.conftest import scheme as scheme
from tests.service.stepped import edited, unlike
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition
from twinsieve.pipeline.commands.kafka import connect
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.why.duplicates_topic import TopicDrops
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.scheme import Scheme

BEGAN_MS = 1_600_000_000_000


@pytest.fixture
def asking(scheme: Scheme, tmp_path: Path) -> Asking:
    """Of 12 texts in posts[0] and posts[1], text n was dropped n times, an hour apart; half of them edited."""
    made = Asking(settings_of(tmp_path), scheme)
    for number in range(12):
        at = Partition("posts", number % 2)
        times_ms = [BEGAN_MS + 3_600_000 * hour for hour in range(number + 1)]
        for copy, time_ms in enumerate(times_ms):
            text = edited(unlike(number)) if copy % 2 else unlike(number)
            value = orjson.dumps({"text": text, "id": f"{number}-{copy}"})
            made.process.write(at, [value], stamp_ms=time_ms)
    return made


@pytest.fixture
def on_memory(asking: Asking, monkeypatch: pytest.MonkeyPatch, log_as_before: None) -> Asking:
    monkeypatch.setattr(connect, "connect_by_settings", lambda *_, **__: MemoryBroker(asking.cluster))
    return asking


def drops_of(asking: Asking, settings: Settings | None = None, **how: object) -> TopicDrops:
    broker = MemoryBroker(asking.cluster)
    return TopicDrops(settings or asking.settings, broker, asking.process.clock, **how)  # type: ignore[arg-type]


def entries(asking: Asking) -> Iterator[tuple[dict[str, bytes | None], dict[str, str], int]]:
    for number in range(2):
        for _, entry in asking.cluster.log(Partition(DUPLICATES.topic, number)).visible():
            yield dict(entry.headers), orjson.loads(entry.value or b""), entry.timestamp_ms


def test_drops_of_the_topic_are_what_stands_in_its_messages(asking: Asking) -> None:
    found = list(drops_of(asking).read())
    plain = list(entries(asking))
    assert len(found) == len(plain) == sum(range(12))
    for drop, (headers, value, time_ms) in zip(found, plain, strict=True):
        assert str(drop.message) == f"{(headers['twinsieve-origin'] or b'').decode()} (id {value['id']})"
        assert drop.leader is not None
        assert str(drop.leader) == (headers["twinsieve-leader"] or b"").decode()
        assert (drop.message.text, drop.leader.text, drop.time_ms) == (value["text"], None, time_ms)
        assert drop.stage == (headers["twinsieve-stage"] or b"").decode()
        said = headers.get("twinsieve-similarity")
        assert drop.likeness == (1.0 if said is None else float(said))


def test_since_and_the_limit_choose_the_newest(asking: Asking) -> None:
    whole = list(drops_of(asking).read())
    late = BEGAN_MS + 3 * 3_600_000
    since = list(drops_of(asking, since_ms=late).read())
    assert 0 < len(since) < len(whole)
    # In a partition, everything from the first message of that time on.
    assert {drop.message.id for drop in whole if (drop.time_ms or 0) >= late} <= {
        drop.message.id for drop in since
    }
    few = drops_of(asking, most=7)
    numbers = [len([drop for drop in few.read() if drop.message.source == f"posts[{n}]"]) for n in range(2)]
    assert sum(numbers) <= 7
    assert min(numbers) > 0
    assert few.left_out == sum(log.end for log in asking.cluster.topics[DUPLICATES.topic].logs) - 7
    assert [drop.message.id for drop in few.read()][-1] == whole[-1].message.id
    assert list(few.read()) == list(few.read())


def test_messages_of_others_in_the_topic_are_counted_and_no_drops(asking: Asking) -> None:
    messages = Messages()
    messages.add(None, b"{}", (("twinsieve-stage", b"near"),))
    messages.add(None, b"\xff", (("twinsieve-stage", b"near"), ("twinsieve-origin", b"posts[0]@x")))
    messages.add(None, None, (("twinsieve-stage", b"near"), ("twinsieve-origin", b"posts[0]@1")))
    asking.cluster.write(DUPLICATES, messages)
    drops = drops_of(asking)
    found = list(drops.read())
    assert len(found) == sum(range(12)) + 1
    assert drops.foreign == 2
    assert [drop.likeness for drop in found if drop.message.text is None] == [0.0]


def test_the_newest_drop_with_an_id_is_found(asking: Asking) -> None:
    drops = drops_of(asking)
    found = drops.newest("11-4")
    assert found is not None
    assert found.message.text == unlike(11)
    assert drops.newest("11-0") is None
    asking.process.write(POSTS, [orjson.dumps({"text": edited(unlike(5)), "id": "11-4"})])
    again = drops_of(asking).newest("11-4")
    assert again is not None
    assert again.message.source == "posts[0]"
    asking.process.write(POSTS, [orjson.dumps({"text": unlike(5), "id": "11-4"})])
    newest = drops_of(asking).newest("11-4")
    assert newest is not None
    assert (newest.message.source, newest.message.line) == ("posts[0]", (again.message.line or 0) + 1)


def test_without_a_duplicates_topic_it_says_so(asking: Asking) -> None:
    output = asking.settings.output.model_copy(update={"duplicates": None})
    with pytest.raises(
        UsageError, match=r"output\.duplicates is none, so this app keeps no dropped messages"
    ):
        drops_of(asking, asking.settings.model_copy(update={"output": output}))
    asking.cluster.delete(DUPLICATES.topic)
    with pytest.raises(
        BrokerError, match=r"topic posts\.duplicates does not exist; correct output\.duplicates"
    ):
        drops_of(asking)


def audit(run: Run, *arguments: str) -> Ran:
    return run("audit", *SET, *arguments)


def test_the_command_shows_clusters_with_texts_from_the_input(on_memory: Asking, run: Run) -> None:
    found = audit(run, "--top", "3")
    assert found.code == 0
    assert "66 dropped" in found.out
    assert "12 kept messages have drops" not in found.out
    assert "11 kept messages have drops" in found.out
    leader = next(
        drop.leader for drop in drops_of(on_memory).read() if (drop.message.id or "").startswith("11-")
    )
    assert str(leader) in found.out
    assert unlike(11) in found.out
    assert unlike(3) not in found.out
    assert found.err.startswith("read 66 records of posts.duplicates: [0] 0 to ")


def test_what_retention_took_is_said(on_memory: Asking, run: Run) -> None:
    for number in range(2):
        on_memory.cluster.log(Partition("posts", number)).trim(1_000)
    found = audit(run, "--top", "3")
    assert found.out.count("(not in the input any more)") == 3


def test_drops_of_one_leader_are_listed(on_memory: Asking, run: Run) -> None:
    drops = list(drops_of(on_memory).read())
    leader = next(str(drop.leader) for drop in drops if (drop.message.id or "").startswith("9-"))
    found = audit(run, "--leader", leader, "--top", "4")
    assert found.out.endswith("\n9 drops; 4 shown\n")
    assert found.out.count(f"  kept     {unlike(9)}\n") == 4
    at = next(str(drop.message).partition(" ")[0] for drop in drops if drop.message.id == "9-3")
    one = audit(run, "--position", at)
    assert one.out.endswith("\n1 drops; 1 shown\n")
    assert "(id 9-3)" in one.out
    assert audit(run, "--position", at.replace("@", ":")).out == one.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name FILE, or an app on Kafka by its settings: -c FILE"),
        (
            ("x.jsonl", "--since", "1h"),
            "FILE is read without settings, --since and --limit; these are for Kafka",
        ),
        (
            ("x.jsonl", "--limit", "5"),
            "FILE is read without settings, --since and --limit; these are for Kafka",
        ),
        (("x.jsonl", *SET), "FILE is read without settings, --since and --limit; these are for Kafka"),
        (("--set", "near.threads=1"), "name FILE, or an app on Kafka by its settings: -c FILE"),
        ((*SET, "--kept-apart", "x"), "--kept-apart goes with a file of duplicates, not with a topic"),
        ((*SET, "--since", "-3h"), "--since '-3h' is neither a duration, as 24h, nor a time"),
    ],
)
def test_misuse_is_told(on_memory: Asking, run: Run, arguments: tuple[str, ...], told: str) -> None:
    found = run("audit", *arguments)
    assert (found.code, found.out) == (2, "")
    assert told in found.err


def test_why_by_id_explains_and_says_how_far_it_read(on_memory: Asking, run: Run) -> None:
    found = run("why", "--id", "10-3", *SET)
    assert found.code == 0
    said = "posts[0]@28 (id 10-3) was dropped, near: 0.9666 similar to posts[0]@25 (id 10-0), which was kept"
    assert found.out.splitlines()[0] == said
    assert any(line.startswith("verdict") and "near" in line for line in found.out.splitlines())
    # 10-3 stands in the first window from the end of [0], so nothing of [1] is read.
    assert found.err.startswith(
        "read 30 records of posts.duplicates: [0] 0 to 58\nread 2 records of posts[0]"
    )
    missing = run("why", "--id", "10-0", *SET)
    assert (missing.code, missing.out) == (1, "")
    assert "posts.duplicates: no message with id '10-0' is among those read" in missing.err
    on_memory.cluster.log(POSTS).trim(1_000)
    gone = run("why", "--id", "10-3", *SET)
    assert gone.code == 0
    assert "retention took posts[0]@25 from the input; its text is from posts.unique" in gone.out
    assert json.loads(run("why", "--id", "10-3", *SET, "--json").out)["position"] == "posts[0]@28"


def test_a_position_and_its_account_agree(asking: Asking) -> None:
    for drop in list(drops_of(asking).read())[::13]:
        source, offset = str(drop.message).partition(" ")[0].split("@")
        at = InputPosition(Partition("posts", int(source[6])), int(offset))
        account = asking.of(str(at))
        assert account.drop is not None
        assert (account.drop.stage, account.drop.likeness) == (drop.stage, drop.likeness)
