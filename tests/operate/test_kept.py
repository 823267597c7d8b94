"""How long internal topics are kept: as long as a restore needs them, and whoever wants more is told what it takes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.commands.cli import cli
from twinsieve.pipeline.commands.kafka import connect
from twinsieve.pipeline.operate.topic_checks import check, create
from twinsieve.pipeline.operate.topic_plan import internal_topic, plan_of
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.service.start_checks import check_app
from twinsieve.pipeline.settings.checks import shadow
from twinsieve.pipeline.settings.model import Settings

HOUR_MS = 3_600_000
POSTS = Partition("posts", 0)
AGELESS = {"near": {"window": {"age": "none"}}}
SHARED = {"state": {"dir": "s3://bucket/app"}}


def settings_of(**more: object) -> Settings:
    return Settings.model_validate({"app": "t", **more})


def cluster_with(settings: Settings, clock: ManualClock | None = None) -> MemoryCluster:
    """The input, and what `topics create` makes for these settings."""
    cluster = MemoryCluster(clock or ManualClock())
    cluster.create(NewTopic("posts", 1))
    create(settings, MemoryBroker(cluster).admin())
    return cluster


def retention(settings: Settings) -> dict[str, str]:
    """What the created internal topics say."""
    topics = MemoryBroker(cluster_with(settings)).admin().topics(plan_of(settings).names, settings=True)
    internal = {need.name.partition(".")[2]: topics[need.name] for need in plan_of(settings).internal}
    return {name: info.settings["retention.ms"] for name, info in internal.items() if info is not None}


@given(near=st.integers(1, 10**7), exact=st.integers(1, 10**7))
def test_log_and_decisions_are_kept_for_the_longest_window_and_a_quarter(near: int, exact: int) -> None:
    ages = {"near": {"window": {"age": f"{near}s"}}, "exact": {"window": {"age": f"{exact}s"}}}
    settings = settings_of(**ages)
    kept = str(max(near, exact) * 1250)
    found = {need.name: internal_topic(settings, need).settings for need in plan_of(settings).internal}
    days = [found[f"t.{name}"]["retention.ms"] for name in ("fingerprints", "decisions", "verdicts")]
    assert days == [kept, kept, "86400000"]


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({"exact": {"method": "none"}}, 30 * HOUR_MS),
        ({"near": {"method": "none"}}, 210 * HOUR_MS),
        ({"near": {"method": "none", "window": {"age": "none"}}}, 210 * HOUR_MS),
        (AGELESS, -1),
        (SHARED, -1),
        ({**AGELESS, **SHARED}, -1),
    ],
)
def test_topics_are_created_so_and_pass_their_own_check(more: dict[str, object], kept: int) -> None:
    for settings in (settings_of(**more), shadow(settings_of(**more))):
        assert retention(settings) == {
            "fingerprints": str(kept),
            "decisions": str(kept),
            "verdicts": str(24 * HOUR_MS),
            "key": "-1",
        }
        findings = check(settings, MemoryBroker(cluster_with(settings)).admin())
        told = [finding.topic for finding in findings]
        assert told == (
            [f"{settings.app}.fingerprints", f"{settings.app}.decisions"] if more == AGELESS else []
        )


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs `topics` on a cluster of its own, which is made with the first call."""
    clusters: list[MemoryCluster] = []

    def run(word: str, **more: object) -> Result:
        if not clusters:
            clusters.append(MemoryCluster(ManualClock()))
            clusters[0].create(NewTopic("posts", 1))
        monkeypatch.setattr(connect, "connect_by_settings", lambda _: MemoryBroker(clusters[0]))
        file = tmp_path / "settings.yaml"
        file.write_text(yaml.safe_dump({"app": "t", **more}))
        return CliRunner().invoke(cli, ["topics", word, "-c", str(file)])

    return run


def test_whoever_asks_for_a_log_without_end_is_told_what_a_day_takes(command: Callable[..., Result]) -> None:
    made = command("create", **AGELESS)
    assert made.exit_code == 0
    assert set(made.stdout.split()) == {
        *(f"posts.{name}" for name in ("unique", "duplicates", "dead")),
        *(f"t.{name}" for name in ("fingerprints", "decisions", "verdicts", "key")),
    }
    said = [line for line in made.stderr.splitlines() if line.startswith("t.fingerprints: ")]
    assert [
        ("kept forever" in line, "151.2 GB" in line, "5,000 messages a second" in line) for line in said
    ] == [(True, True, True)]
    assert command("create", **AGELESS).output == ""
    checked = command("check", **AGELESS)
    assert (checked.exit_code, checked.stdout.splitlines()) == (0, made.stderr.splitlines())


def test_where_the_settings_have_changed_check_says_what_they_ask_now(command: Callable[..., Result]) -> None:
    assert command("create").exit_code == 0
    assert command("check").output == ""
    longer = command("check", exact={"window": {"age": "30d"}})
    assert longer.exit_code == 1
    assert longer.stdout.count("deleted after 8.75 d, but the windows reach back further") == 2
    shorter = command("check", exact={"window": {"age": "1d"}})
    assert shorter.exit_code == 1
    assert shorter.stdout.count("kept for 8.75 d, but a restore reads back no further than 30 h") == 2


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"exact": {"window": {"age": "30d"}}}, "deleted after 8.75 d"),
        ({"exact": {"window": {"age": "1d"}}}, "kept for 8.75 d"),
        (AGELESS, "deleted after 8.75 d"),
    ],
)
def test_no_retention_keeps_run_from_starting(
    now: dict[str, object], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A window may be changed in the file at any time; its topics are changed after that."""
    cluster = cluster_with(settings_of())
    broker = MemoryBroker(cluster)
    check_app(settings_of(**now), lambda: broker, ManualClock(), auto_create=False)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line.partition(": ")[2].partition(": ")[0] for line in warned] == [
        "t.fingerprints",
        "t.decisions",
    ]
    assert all(said in line for line in warned)


def test_run_says_what_a_log_without_end_takes(caplog: pytest.LogCaptureFixture) -> None:
    settings = settings_of(**AGELESS)
    broker = MemoryBroker(cluster_with(settings))
    check_app(settings, lambda: broker, ManualClock(), auto_create=False)
    assert [record.levelno for record in caplog.records if "151.2 GB" in record.getMessage()] == [
        logging.WARNING
    ]


def old_records_go(process: Stepped, settings: Settings) -> int:
    """What a broker does that looks at `retention.ms`; returns how many records went."""
    gone = 0
    for need in plan_of(settings).internal:
        kept_ms = int(process.cluster.topics[need.name].settings["retention.ms"])
        for log in process.cluster.topics[need.name].logs:
            limit_ms = process.clock.now_ms() - kept_ms
            places = enumerate(log.entries, log.beginning)
            # Control markers have no time of their own.
            young = (at for at, entry in places if not entry.control and entry.timestamp_ms >= limit_ms)
            before = log.beginning
            log.trim(next(young, log.end))
            gone += log.beginning - before
    return gone


TEXTS = [
    "今天武汉下雨了，大家出门记得带伞",
    "图书馆周末延长开放到晚上十点，欢迎大家",
    "地铁二号线早高峰晚点十分钟，请换乘公交",
    "新店开张三天，凉皮和奶茶都打八折哦",
]


def test_a_restore_from_a_log_that_is_kept_so_long_knows_the_whole_window(tmp_path: Path) -> None:
    window = {"window": {"messages": 1000, "age": "2h"}}
    settings = settings_of(near=window, exact=window, state={"dir": str(tmp_path)})
    process = Stepped(settings, make_scheme(settings), {"posts": 1})
    for text in TEXTS:
        process.post(POSTS, text)
        process.clock.sleep(3600.0)
    assert old_records_go(process, settings) > 0
    assert process.cluster.log(Partition(Names("t").fingerprints, 0)).beginning > 0
    process.again()
    process.posts(POSTS, TEXTS)
    assert process.texts("posts.duplicates") == TEXTS[-1:], "one hour old"
    assert sorted(process.texts("posts.unique")) == sorted([*TEXTS, *TEXTS[:-1]])
    process.clock.sleep(30 * 24 * 3600.0)
    old_records_go(process, settings)
    process.again()
    process.posts(POSTS, TEXTS[:1])
    assert process.texts("posts.unique")[-1] == TEXTS[0], "it goes on when all is gone"


def test_answers_that_are_gone_before_they_are_read_are_asked_for_again(tmp_path: Path) -> None:
    settings = settings_of(state={"dir": str(tmp_path)})
    process = Stepped(settings, make_scheme(settings), {"posts": 1})
    process.post(POSTS, TEXTS[0])
    answers = process.cluster.topics[Names("t").verdicts].logs
    told = sum(log.end for log in answers)
    messages = Messages()
    for text in (TEXTS[1], TEXTS[0]):
        messages.add(None, f'{{"text": "{text}"}}'.encode())
    process.cluster.write(POSTS, messages)
    while sum(log.end for log in answers) == told:
        if not process.worker.unanswered:
            process.worker.step(0.05)
        process.index.step(0.05)
    for log in answers:
        log.trim(log.end)
    process.settle()
    assert process.texts("posts.unique") == TEXTS[:2]
    assert process.texts("posts.duplicates") == TEXTS[:1]
