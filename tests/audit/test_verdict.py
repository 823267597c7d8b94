"""`twinsieve why 'posts[0]@17' -c FILE`: what became of a message, from the broker alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.calling import Run
from tests.memory.broker import MemoryBroker
from tests.service.conftest import scheme as scheme
from tests.service.stepped import Stepped, edited, unlike
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.input_position import InputPosition, read_position
from twinsieve.pipeline.broker.mark import Mark
from twinsieve.pipeline.broker.records import BrokerError, Committed, Messages, Partition
from twinsieve.pipeline.commands.kafka import connect
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.why import verdict
from twinsieve.pipeline.why.drops import Drop
from twinsieve.pipeline.why.verdict import Account, Outcome, verdict_of
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.scheme import Scheme

POSTS, OTHERS, NEWS = Partition("posts", 0), Partition("posts", 1), Partition("news", 0)
LOG, DECISIONS = Partition("t.fingerprints", 0), Partition("t.decisions", 0)
OUT, DUPLICATES, DEAD = (Partition(f"posts.{name}", 0) for name in ("unique", "duplicates", "dead"))
STORY = "今天上午武汉发布会通报了最新的情况请大家注意防护"
SET = ("--set", "app=t", "--set", "input.topics=posts,news")


def settings_of(folder: Path, **sections: object) -> Settings:
    values: dict[str, object] = {
        "app": "t",
        "input": {"topics": ["posts", "news"]},
        "state": {"dir": str(folder)},
        "output": {"kept_apart_header": True},
    }
    return Settings.model_validate(values | sections)


class Asking:
    """A deployment, and what is said of its messages."""

    def __init__(self, settings: Settings, scheme: Scheme) -> None:
        self.settings = settings
        self.process = Stepped(settings, scheme, {"posts": 2, "news": 1})
        self.cluster = self.process.cluster

    def of(self, at: str, most: int = 20_000, dropped: Drop | None = None) -> Account:
        position = read_position(at)
        assert position is not None
        broker, clock = MemoryBroker(self.cluster), self.process.clock
        return verdict_of(self.settings, broker, clock, position, most, dropped=dropped)


@pytest.fixture
def asking(scheme: Scheme, tmp_path: Path) -> Asking:
    """posts[0]: 0 kept, 1 near, 2 exact, 3 kept apart from 4's leader, 4 kept apart, 5 unreadable, 6 no value."""
    made = Asking(settings_of(tmp_path), scheme)
    text = unlike(1)
    made.process.posts(POSTS, [text, edited(text)])
    made.process.posts(POSTS, [text, f"{STORY}新增确诊9例", f"{STORY}新增确诊11例"])
    made.process.write(POSTS, [b'{"text": "broken', None])
    return made


@pytest.fixture
def on_memory(asking: Asking, monkeypatch: pytest.MonkeyPatch, log_as_before: None) -> Asking:
    monkeypatch.setattr(connect, "connect_by_settings", lambda *_, **__: MemoryBroker(asking.cluster))
    return asking


def said(account: Account) -> str:
    return "\n".join(account.lines)


def test_a_dropped_message_names_its_leader_and_both_texts(asking: Asking) -> None:
    near, exact = asking.of("posts[0]@1"), asking.of("posts[0]@2")
    for account, stage, text in ((near, "near", edited(unlike(1))), (exact, "exact", unlike(1))):
        assert account.outcome is Outcome.DROPPED
        assert account.drop is not None
        assert (account.drop.stage, account.drop.message.text) == (stage, text)
        assert account.drop.leader is not None
        assert (str(account.drop.leader), account.drop.leader.text) == ("posts[0]@0", unlike(1))
        assert account.came_out
        assert len(account.lines) == 1
        assert account.lines[0].startswith("judged 2020-09-13 ")
    assert near.drop is not None
    assert near.drop.degree == "near: 0.9666 similar"


def test_a_kept_message_is_kept_and_one_kept_apart_says_from_which_and_why(asking: Asking) -> None:
    kept, apart = asking.of("posts[0]@0"), asking.of("posts[0]@4")
    assert (kept.outcome, kept.drop, kept.apart_from) == (Outcome.KEPT, None, None)
    assert apart.outcome is Outcome.KEPT
    assert apart.apart_from == (InputPosition(POSTS, 3), "number 9/11")
    assert apart.other is not None
    assert apart.other.message is not None
    assert apart.other.message.text == f"{STORY}新增确诊9例"


def test_what_cannot_be_read_says_why_and_what_has_no_text_is_kept(asking: Asking) -> None:
    bad, none = asking.of("posts[0]@5"), asking.of("posts[0]@6")
    assert bad.outcome is Outcome.UNREADABLE
    assert "it could not be read: invalid_json" in said(bad)
    assert none.outcome is Outcome.KEPT
    assert "it has no text, so it was compared with nothing" in said(none)


@pytest.mark.parametrize(
    ("null_value", "fate"),
    [("drop", "it does not come out"), ("dead_letter", "it came out as a dead letter"), ("pass", None)],
)
def test_what_becomes_of_a_message_without_a_value(
    scheme: Scheme, tmp_path: Path, null_value: str, fate: str | None
) -> None:
    settings = settings_of(tmp_path, input={"topics": ["posts", "news"], "null_value": null_value})
    asking = Asking(settings, scheme)
    asking.process.write(POSTS, [None])
    account = asking.of("posts[0]@0")
    assert "it has no text, so it was compared with nothing" in said(account)
    assert (
        ("so it" in account.lines[-1] and fate in account.lines[-1])
        if fate
        else "no value" not in said(account)
    )
    assert len(asking.process.entries(DEAD.topic)) == (null_value == "dead_letter")


def test_what_the_output_refused_is_told_by_its_dead_letter(scheme: Scheme, tmp_path: Path) -> None:
    asking = Asking(settings_of(tmp_path), scheme)
    asking.cluster.topics[OUT.topic].settings["max.message.bytes"] = "200"
    asking.process.posts(POSTS, [unlike(1), unlike(2) * 9])
    asking.process.again()
    asking.process.posts(POSTS, [unlike(3), unlike(4) * 9])
    account = asking.of("posts[0]@3")
    assert account.outcome is Outcome.UNREADABLE
    assert "the output did not take it: too_large_for_topic" in said(account)


def test_headers_of_the_input_are_not_believed(asking: Asking) -> None:
    forged = [
        ("twinsieve-leader", b"posts[0]@3"),
        ("twinsieve-stage", b"near"),
        ("twinsieve-origin", b"x[0]@1"),
    ]
    asking.process.write(POSTS, [orjson.dumps({"text": unlike(77)})], headers=forged)
    assert asking.of("posts[0]@7").outcome is Outcome.KEPT


def test_a_message_that_waits_says_who_judges_and_what_came_out(asking: Asking) -> None:
    messages = Messages()
    messages.add(None, orjson.dumps({"text": "x"}))
    asking.cluster.write(POSTS, messages)
    assert asking.of("posts[0]@7").outcome is Outcome.WAITS
    assert "everything below 7 of posts[0] has come out so far; one-index judges" in said(
        asking.of("posts[0]@7")
    )
    asking.process.clock.sleep(60.0)
    assert "nobody judges: start `twinsieve run`" in said(asking.of("posts[0]@7"))


def test_a_block_without_a_decision_is_told(asking: Asking) -> None:
    messages = Messages()
    messages.add(None, orjson.dumps({"text": "x"}))
    asking.cluster.write(POSTS, messages)
    for _ in range(40):
        asking.process.worker.step(0.05)
        if asking.process.worker.unanswered:
            break
    account = asking.of("posts[0]@7")
    assert account.outcome is Outcome.WAITS
    assert f"block {asking.cluster.log(LOG).end - 1} of t.fingerprints asks for it since 2020-09-13" in said(
        account
    )
    assert "blocks that wait: 1; one-index judges" in said(account)


def test_positions_that_hold_no_message(asking: Asking) -> None:
    assert asking.of("posts[0]@7").lines == ["posts[0] ends at 7: there is no such message yet"]
    transactor = MemoryBroker(asking.cluster).transactor("producer")
    messages = Messages()
    messages.add(None, orjson.dumps({"text": unlike(5)}))
    transactor.begin()
    transactor.send("posts", 0, messages)
    assert asking.of("posts[0]@7").outcome is Outcome.WAITS
    assert "a transaction of its producer is open since offset 7" in said(asking.of("posts[0]@7"))
    transactor.commit()
    asking.process.posts(POSTS, [unlike(6)])
    marker = asking.of("posts[0]@8")
    assert marker.outcome is Outcome.UNKNOWN
    assert "there is no message at this offset: it is a marker of a transaction" in said(marker)
    assert asking.of("posts[0]@9").outcome is Outcome.KEPT
    asking.cluster.log(POSTS).compact(9)
    assert asking.of("posts[0]@9").outcome is Outcome.KEPT
    with pytest.raises(UsageError, match=r"posts\[2\]@0: posts has the partitions 0 to 1"):
        asking.of("posts[2]@0")
    with pytest.raises(UsageError, match=r"topic nope does not exist; the inputs are posts, news"):
        asking.of("nope[0]@0")


def test_what_retention_took_from_the_input_is_found_where_it_came_out(asking: Asking) -> None:
    asking.cluster.log(POSTS).trim(7)
    near = asking.of("posts[0]@1")
    assert near.drop is not None
    assert near.drop.leader is not None
    assert (near.drop.message.text, near.drop.leader.text) == (edited(unlike(1)), unlike(1))
    assert "the input has it no longer; its text is from posts.duplicates" in near.lines
    assert "retention took posts[0]@0 from the input; its text is from posts.unique" in near.lines
    assert asking.of("posts[0]@0").outcome is Outcome.KEPT
    asking.cluster.log(OUT).trim(100)
    assert "retention took posts[0]@0 from the input, and its text with it" in asking.of("posts[0]@1").lines
    assert "invalid_json" in said(asking.of("posts[0]@5"))


def test_without_its_decision_the_headers_of_what_came_out_say_it(asking: Asking) -> None:
    plain = [asking.of(f"posts[0]@{offset}") for offset in range(7)]
    asking.cluster.log(DECISIONS).trim(asking.cluster.log(DECISIONS).end)
    for offset, before in enumerate(plain):
        after = asking.of(f"posts[0]@{offset}")
        assert after.outcome is before.outcome, offset
        assert after.drop == before.drop
        assert "retention took the decision on it from t.decisions" in after.lines
    assert "the verdict is from its headers in posts.duplicates" in asking.of("posts[0]@1").lines
    asking.cluster.log(LOG).trim(asking.cluster.log(LOG).end)
    for offset, before in enumerate(plain):
        assert asking.of(f"posts[0]@{offset}").drop == before.drop
    for at in (OUT, DUPLICATES, DEAD):
        asking.cluster.log(at).trim(100)
    gone = asking.of("posts[0]@1")
    assert (gone.outcome, gone.drop) == (Outcome.UNKNOWN, None)
    assert "no block of t.fingerprints" in said(gone)
    known = asking.of("posts[0]@1", dropped=plain[1].drop)
    assert (known.outcome, known.drop) == (Outcome.DROPPED, plain[1].drop), "what `--id` has found stays"


def test_a_leader_in_another_topic_and_one_whose_topic_is_gone(asking: Asking) -> None:
    text = unlike(21)
    asking.process.posts(NEWS, [text])
    asking.process.posts(OTHERS, [text])
    account = asking.of("posts[1]@0")
    assert account.drop is not None
    assert account.drop.leader is not None
    assert (str(account.drop.leader), account.drop.leader.text) == ("news[0]@0", text)
    asking.cluster.delete("news")
    asking.cluster.create(NewTopic("news", 1))
    messages = Messages()
    messages.add(None, orjson.dumps({"text": "another message that has the leader's offset now"}))
    asking.cluster.write(NEWS, messages)
    again = asking.of("posts[1]@0")
    assert again.drop is not None
    assert again.drop.leader is not None
    assert again.drop.leader.text is None
    assert "its text is gone: news[0]@0 was in an earlier topic news, which was deleted" in said(again)


def test_in_a_topic_that_was_created_again_nothing_is_judged(asking: Asking) -> None:
    committed = asking.cluster.group("t.workers").offsets[POSTS]
    asking.cluster.delete("posts")
    asking.cluster.create(NewTopic("posts", 2))
    messages = Messages()
    messages.add(None, orjson.dumps({"text": unlike(1)}))
    asking.cluster.write(POSTS, messages)
    assert asking.of("posts[0]@0").outcome is Outcome.WAITS
    asking.cluster.group("t.workers").offsets[POSTS] = committed
    account = asking.of("posts[0]@0")
    assert account.outcome is Outcome.UNKNOWN
    assert account.lines == [
        "posts was deleted and created again since the app read it: it judges nothing of the new one before "
        "`twinsieve reset`"
    ]


def test_a_message_that_the_app_skipped(asking: Asking) -> None:
    messages = Messages()
    for number in range(4):
        messages.add(None, orjson.dumps({"text": unlike(30 + number)}))
    asking.cluster.write(POSTS, messages)
    topic_id = asking.cluster.topics["posts"].topic_id
    asking.cluster.group("t.workers").offsets[POSTS] = Committed(10, Mark(topic_id, 0, 7, reset=True).text())
    asking.process.again()
    asking.process.settle()
    account = asking.of("posts[0]@8")
    assert account.outcome is Outcome.UNKNOWN
    assert "asks for it: the app began behind it, or retention took the block" in said(account)
    assert asking.of("posts[0]@10").outcome is Outcome.KEPT
    assert asking.of("posts[0]@2").outcome is Outcome.DROPPED


def test_a_drop_whose_leader_only_the_filter_knows(scheme: Scheme, tmp_path: Path) -> None:
    small = {"window": {"messages": 1_000, "age": "none"}}
    asking = Asking(settings_of(tmp_path, near=small), scheme)
    asking.process.posts(POSTS, map(unlike, range(1_100)))
    asking.process.posts(POSTS, [unlike(0)])
    account = asking.of("posts[0]@1100")
    assert account.drop is not None
    assert (account.drop.stage, account.drop.leader, account.drop.flags) == ("exact", None, ("unconfirmed",))


def test_it_stops_at_the_limit_and_says_so(asking: Asking) -> None:
    account = asking.of("posts[0]@1", most=1)
    assert account.outcome is Outcome.UNKNOWN
    assert account.lines == [
        "its verdict was not among the first 1 records that were read; --read-at-most N reads more"
    ]


def test_another_app_and_a_broker_that_is_away(asking: Asking) -> None:
    with pytest.raises(
        BrokerError, match=r"topic u\.fingerprints does not exist, so there are no decisions of app u"
    ):
        verdict_of(
            asking.settings.model_copy(update={"app": "u"}),
            MemoryBroker(asking.cluster),
            asking.process.clock,
            InputPosition(POSTS, 0),
        )
    asking.cluster.reachable = False
    with pytest.raises(BrokerError, match="does not answer"):
        asking.of("posts[0]@0")


def test_asking_changes_nothing_on_the_broker(asking: Asking) -> None:
    def state() -> Iterator[object]:
        for name, topic in sorted(asking.cluster.topics.items()):
            yield name, [log.end for log in topic.logs]
        for name, group in sorted(asking.cluster.groups.items()):
            yield name, dict(group.offsets), sorted(group.members)

    before = list(state())
    for offset in range(7):
        asking.of(f"posts[0]@{offset}")
    assert list(state()) == before


def test_the_command_explains_a_drop(on_memory: Asking, run: Run) -> None:
    found = run("why", "posts[0]@1", *SET)
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0] == "posts[0]@1 was dropped, near: 0.9666 similar to posts[0]@0, which was kept"
    assert lines[1].startswith("judged 2020-09-13 ")
    assert any(line.startswith("verdict") and "near" in line for line in lines)
    assert f"earlier text  {unlike(1)}" in lines
    read = found.err.splitlines()
    assert read[0] == "read 2 records of posts[0], from 0 to 1"
    assert [line.split()[4] for line in read[1:]] == ["t.fingerprints[0],", "t.decisions[0],"]
    assert all(int(line.split()[1]) < 10 for line in read)
    other = run("why", "posts[0]@1", *SET, "--set", "near.similarity=0.99")
    assert "the app said near, these settings say unique: give the settings of the app, by -c" in other.err


def test_the_command_tells_kept_apart_and_waiting_by_its_exit_code(on_memory: Asking, run: Run) -> None:
    apart = run("why", "posts[0]@4", *SET)
    assert apart.code == 1
    assert apart.out.startswith("posts[0]@4 was kept, though it is similar to posts[0]@3: number 9/11\n")
    assert "keep them apart" in apart.out
    assert run("why", "posts[0]@0", *SET).out.startswith("posts[0]@0: was kept\n")
    assert run("why", "posts[0]@5", *SET).out.startswith("posts[0]@5: is a dead letter, and was not judged\n")
    assert run("why", "posts[0]@9", *SET).code == 1


def test_the_command_as_json(on_memory: Asking, run: Run) -> None:
    told = json.loads(run("why", "posts[0]@1", *SET, "--json").out)
    assert told["outcome"] == "dropped"
    assert (told["leader"], told["similarity"], told["stage"]) == ("posts[0]@0", 0.9666, "near")
    assert (told["text"], told["leader_text"]) == (edited(unlike(1)), unlike(1))
    assert told["came_out"] is True
    assert set(told["read"]) == {"posts[0]", "t.fingerprints[0]", "t.decisions[0]"}
    assert json.loads(run("why", "posts[0]@4", *SET, "--json").out)["kept_apart_by"] == "number 9/11"


def test_texts_of_strangers_act_on_no_terminal(on_memory: Asking, run: Run) -> None:
    evil = "\x1b[2J\u202e<script> [bold]" + unlike(8)
    on_memory.process.posts(POSTS, [evil, evil])
    for at in ("posts[0]@7", "posts[0]@8"):
        found = run("why", at, *SET)
        assert "\x1b" not in found.out
        assert "\u202e" not in found.out
    assert "\\x1b[2J\\u202e<script> [bold]" in run("why", "posts[0]@8", *SET).out
    long = b'{"id": "\\u001b[2J", "text": "\\ud800 %s"}' % (unlike(9).encode() * 9_000)
    on_memory.process.write(POSTS, [long, long])
    at = "posts[0]@10"
    assert len(run("why", at, *SET).out) < 20_000
    assert run("why", at, *SET).out.startswith(
        "posts[0]@10 (id \\x1b[2J) was dropped, exact: equal to posts[0]@9 "
    )
    told = run("why", at, *SET, "--json").out
    assert told.isascii()
    assert "\x1b" not in told
    assert json.loads(told)["outcome"] == "dropped"
    on_memory.cluster.log(POSTS).trim(10)
    on_memory.cluster.log(OUT).trim(1_000)
    assert len(run("why", at, *SET).out) < 20_000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("posts[0]17", *SET), "'posts[0]17' is not a position; write topic[partition]@offset"),
        (("posts@17", *SET), "'posts@17' is not a position"),
        (("posts[0]@1" + "0" * 30, *SET), "is not a position"),
        (("po\x1bsts[0]@1", *SET), "'po\\x1bsts[0]@1' is not a position"),
        (("posts[0]@1",), "'posts[0]@1' is a message on Kafka: give the settings of the app, by -c FILE"),
        (
            ("--id", "x"),
            "'x' is a message on Kafka: give the settings of the app, by -c FILE; or --duplicates",
        ),
        (
            (),
            "name a message on Kafka, as in why 'posts[0]@17' -c FILE, or by --id; or a file by --duplicates",
        ),
        (("posts[0]@1", "--id", "x", *SET), "name a message on Kafka, as in"),
        (("--position", "1", *SET), "or a file by --duplicates"),
        (("posts[0]@1", "--since", "1h", *SET), "--since goes with --id"),
        (("posts[0]@1", "--duplicates", "x.jsonl"), "a position in a topic stands alone"),
        (("--id", "x", "--duplicates", "x", "--json"), "--since, --read-at-most and --json are for messages"),
        (("--id", "x", "--duplicates", "x", "--since", "1h"), "--since, --read-at-most and --json are for"),
        (("--id", "x", *SET, "--since", "soon"), "--since 'soon' is neither a duration, as 24h, nor a time"),
    ],
)
def test_misuse_is_told(run: Run, arguments: tuple[str, ...], told: str) -> None:
    found = run("why", *arguments)
    assert (found.code, found.out) == (2, "")
    assert told in found.err


def test_the_limit_of_the_outputs_is_told(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    asking.cluster.log(POSTS).trim(7)
    monkeypatch.setattr(verdict, "_MOST_COPIES", 0)
    account = asking.of("posts[0]@1")
    assert account.outcome is Outcome.DROPPED
    assert "0 records of the outputs were read, and posts[0]@1 was not found" in account.lines
