"""Alert rules, played by promtool: each state fires its alert within two minutes, and nothing else does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.deploy.played import RULES, asked_of, play, rules
from tests.deploy.series import Series, Value, always, app, then, well
from tests.deploy.series import counted as counted_at
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.worker.waiting import WaitReason

BEGIN_S, END_S = 420, 720
"""When a state begins, and when it ends."""
FIRES_S = 120
CLEAR_S = 720
"""What counts increases of ten minutes is clear then."""
counted = partial(counted_at, at_s=BEGIN_S)
Firing = dict[str, set[str]]
"""Names of alerts, each with the apps that it names."""


def firing(promtool: str, folder: Path, series: Series, at_s: list[int], scrape_s: int = 15) -> list[Firing]:
    """What fires at these times."""
    query = 'count by (alertname, app) (ALERTS{alertstate="firing"})'
    played = play(promtool, folder, series, [(query, at) for at in at_s], file=RULES, scrape_s=scrape_s)
    return [_parsed(one) for one in played]


def _parsed(samples: str) -> Firing:
    found: Firing = {}
    for labels in re.findall(r"\{([^}]*)\}", samples):
        pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found.setdefault(pairs["alertname"].removeprefix("Twinsieve"), set()).add(pairs.get("app", ""))
    return found


def during(value: Value) -> Callable[[Value], Value]:
    return lambda before: then(before, BEGIN_S, value, END_S)


def waits(at: int) -> float:
    return float(at - BEGIN_S)


def stands_still(series: Series) -> None:
    """No message comes out; they come out at once when the state ends."""
    series.change("twinsieve_messages_total", lambda before: lambda at: before(BEGIN_S if at < END_S else at))
    series.change("twinsieve_oldest_waiting_seconds", during(waits))


def stands_still_in_an_older_version(series: Series) -> None:
    """It does not export its session timeout."""
    series.without("twinsieve_session_timeout_seconds")
    stands_still(series)


def gone(series: Series) -> None:
    series.lose(BEGIN_S, END_S, job="twinsieve")


def partition_waits(series: Series) -> None:
    series.change("twinsieve_oldest_waiting_seconds", during(waits), partition="2")


def partition_waits_beside_late_ones(series: Series) -> None:
    """The others are late too, but not so late that the app is behind."""
    series.change("twinsieve_oldest_waiting_seconds", during(lambda at: min(waits(at), 55.0)))
    partition_waits(series)


def behind(series: Series) -> None:
    series.change("twinsieve_oldest_waiting_seconds", during(waits))


def open_transaction(series: Series) -> None:
    """Nothing behind it can be read, so nothing waits, and nothing comes out."""
    series.change(
        "twinsieve_messages_total", lambda before: lambda at: before(min(at, BEGIN_S) + max(at - END_S, 0))
    )
    series.change("twinsieve_input_open_transaction_seconds", during(waits), partition="1")


def no_index(series: Series) -> None:
    series.change("twinsieve_index_live", during(always(0)), instance="a:8080")
    stands_still(series)


def two_indexes(series: Series) -> None:
    series.change("twinsieve_index_live", during(always(1)), instance="b:8080")


def broker_away(series: Series) -> None:
    series.change("twinsieve_broker_answered_timestamp_seconds", during(always(BEGIN_S)))
    # Who does not know has no series.
    series.change("twinsieve_oldest_waiting_seconds", during(lambda _: None))
    series.change("twinsieve_index_live", during(always(0)))


def waits_for_broker(series: Series) -> None:
    """A process that is started while no broker answers."""
    series.change("twinsieve_process_phase", during(always(1)), instance="b:8080", phase="waiting_for_broker")


def registry_away(series: Series) -> None:
    """Messages of known schemas come out."""
    series.change(
        "twinsieve_waiting_partitions", during(always(2)), instance="a:8080", reason=WaitReason.SCHEMA
    )


def deleted(series: Series) -> None:
    series.change("twinsieve_trimmed_messages_total", counted(50), instance="a:8080")


def skipped(series: Series) -> None:
    series.change("twinsieve_skipped_messages_total", counted(1), instance="b:8080", reason="refused")


def judged_and_deleted(series: Series) -> None:
    series.change("twinsieve_index_given_up_messages_total", counted(3), reason="retention")


def foreign_member(series: Series) -> None:
    series.change("twinsieve_foreign_members", during(always(1)), instance="a:8080")


def foreign_offset(series: Series) -> None:
    series.change("twinsieve_foreign_offsets_total", counted(2), instance="a:8080")


def shards_gone(series: Series) -> None:
    series.change("twinsieve_index_unanswered_segments", during(always(5)))


def shards_differ(series: Series) -> None:
    series.change("twinsieve_index_unused_answers_total", counted(1), instance="a:8080", reason="differs")


def snapshot_fails(series: Series) -> None:
    series.change("twinsieve_snapshot_failures_total", counted(1), instance="a:8080")


def snapshot_old(series: Series) -> None:
    series.change("twinsieve_snapshot_age_seconds", during(always(901)))


def store_hangs(series: Series) -> None:
    series.change("twinsieve_state_hung_seconds", during(lambda at: float(at - BEGIN_S)), instance="b:8080")


def segments_unwritten(series: Series) -> None:
    series.change("twinsieve_window_unwritten_segments", during(always(2)), instance="a:8080")


def paused_by_disk(series: Series) -> None:
    """As long as nothing waits: the next post would."""
    series.change("twinsieve_index_paused_by_disk", during(always(1)), instance="a:8080")


def paused_while_it_follows(series: Series) -> None:
    """The one that judged has ended, and the one that is left has no room to follow it."""
    series.change("twinsieve_index_live", during(always(0)))
    series.change("twinsieve_index_paused_by_disk", during(always(1)), instance="b:8080")


def dead_letter(series: Series) -> None:
    series.change("twinsieve_dead_letters_total", counted(1), instance="a:8080", reason="too_large")


def schema_unanswered(series: Series) -> None:
    reason = DeadLetterReason.SCHEMA_UNANSWERED
    series.change("twinsieve_dead_letters_total", counted(1), instance="a:8080", reason=reason)


def new_reason(series: Series) -> None:
    """As a later version may have it: the series begins with the first count."""
    series.set(
        "twinsieve_dead_letters_total",
        lambda at: 1.0 if at >= BEGIN_S else None,
        job="twinsieve",
        instance="a:8080",
        reason="of_a_later_version",
    )


def all_is_dropped(series: Series) -> None:
    for verdict, part in {"unique": -0.6, "exact": 0.6}.items():
        series.change(
            "twinsieve_messages_total",
            lambda before, part=part: (
                lambda at: (before(at) or 0.0) + part * 10.0 * (min(max(at, BEGIN_S), END_S) - BEGIN_S)
            ),
            verdict=verdict,
        )


def memory_is_full(series: Series) -> None:
    series.change("twinsieve_memory_bytes", during(always(1000 << 20)), instance="b:8080")


def restarts(series: Series) -> None:
    """Every half minute."""
    series.change("process_start_time_seconds", during(lambda at: float(at // 30 * 30)), instance="b:8080")


STATES: list[tuple[Callable[[Series], None], set[str]]] = [
    (gone, {"Gone"}),
    (stands_still, {"NothingComesOut"}),
    (stands_still_in_an_older_version, {"NothingComesOut"}),
    (partition_waits, {"HalfComesOut"}),
    (partition_waits_beside_late_ones, {"HalfComesOut"}),
    (behind, {"Behind"}),
    (open_transaction, {"OpenTransaction"}),
    (no_index, {"NoIndex", "NothingComesOut"}),
    (two_indexes, {"TwoIndexes"}),
    (broker_away, {"BrokerUnreachable", "NoIndex"}),
    (waits_for_broker, {"BrokerUnreachable"}),
    (registry_away, {"SchemaRegistry"}),
    (deleted, {"MessagesLost"}),
    (skipped, {"MessagesLost"}),
    (judged_and_deleted, {"MessagesLost"}),
    (foreign_member, {"ForeignConsumer"}),
    (foreign_offset, {"ForeignConsumer"}),
    (shards_gone, {"SegmentsUnanswered"}),
    (shards_differ, {"AnswersDiffer"}),
    (snapshot_fails, {"SnapshotsFail"}),
    (snapshot_old, {"SnapshotsFail"}),
    (store_hangs, {"SnapshotsFail"}),
    (segments_unwritten, {"SnapshotsFail"}),
    (paused_by_disk, {"PausedByDisk"}),
    (paused_while_it_follows, {"PausedByDisk", "NoIndex"}),
    (dead_letter, {"DeadLetters"}),
    (schema_unanswered, {"DeadLetters"}),
    (new_reason, {"DeadLetters"}),
    (all_is_dropped, {"DropRateJumps"}),
    (memory_is_full, {"MemoryNearLimit"}),
    (restarts, {"Restarts"}),
]


def dry_run(series: Series) -> None:
    """Everything is wrong with an app that emits nothing."""
    app(series, "posts-shadow", instances=("dry:8080",), judges="nobody")
    for counter in ("dead_letters", "snapshot_failures", "trimmed_messages", "foreign_offsets"):
        series.change(f"twinsieve_{counter}_total", counted(9), instance="dry:8080")
    for gauge in (
        "oldest_waiting_seconds",
        "input_open_transaction_seconds",
        "foreign_members",
        "state_hung_seconds",
    ):
        series.change(f"twinsieve_{gauge}", during(always(500)), instance="dry:8080")
    series.change("process_start_time_seconds", during(float), instance="dry:8080")
    series.change("twinsieve_index_unused_answers_total", counted(9), instance="dry:8080")
    series.change(
        "twinsieve_info", lambda _: then(always(1), BEGIN_S + 30, lambda _: None, END_S), app="posts-shadow"
    )


def more_standbys(series: Series) -> None:
    """A process that only stands by, and never emitted."""
    app(series, instances=("a:8080", "b:8080", "standby:8080"), judges="a:8080")
    series.change("twinsieve_messages_total", lambda _: always(0), instance="standby:8080")


def idle_night(series: Series) -> None:
    """Nothing arrives for ten minutes."""
    series.change(
        "twinsieve_messages_total", lambda before: lambda at: before(min(at, BEGIN_S) + max(at - END_S, 0))
    )
    series.change("twinsieve_oldest_waiting_seconds", during(always(0)))


def rolling_restart(series: Series) -> None:
    """One after the other is away for 30 s, and its counters begin anew."""
    for number, instance in enumerate(("a:8080", "b:8080")):
        begin, end = BEGIN_S + 120 * number, BEGIN_S + 120 * number + 30
        for name, labels in list(series.held):
            if dict(labels)["instance"] == instance and name.endswith("_total"):
                series.change(
                    name,
                    lambda before, end=end: lambda at: (before(at) or 0) - (before(end) or 0) * (at >= end),
                    **dict(labels),
                )
        series.change(
            "process_start_time_seconds",
            lambda _, end=end: lambda at: float(end * (at >= end)),
            instance=instance,
        )
        series.lose(begin, end, instance=instance)
        # Prometheus says so of each of its targets.
        series.set("up", then(always(1), begin, always(0), end), job="twinsieve", instance=instance)
    series.change("twinsieve_index_live", lambda _: lambda at: float(at < BEGIN_S), instance="a:8080")
    series.change("twinsieve_index_live", lambda _: lambda at: float(at >= BEGIN_S + 15), instance="b:8080")


def known_reason(series: Series) -> None:
    """The series of a reason appears, and nothing is counted."""
    labels = {"job": "twinsieve", "instance": "a:8080", "reason": "of_a_later_version"}
    series.set("twinsieve_dead_letters_total", lambda at: 0.0 if at >= BEGIN_S else None, **labels)


def few_at_night(series: Series) -> None:
    """Of the few that come, all are copies."""
    for verdict, rate in {"unique": 0.0, "near": 0.0, "exact": 0.2}.items():
        series.change(
            "twinsieve_messages_total",
            lambda before, rate=rate: (
                lambda at: (before(min(at, BEGIN_S)) or 0.0) + rate * max(at - BEGIN_S, 0)
            ),
            verdict=verdict,
        )


def no_shards(series: Series) -> None:
    """An app without shards has no series of unanswered segments."""
    series.without("twinsieve_index_unanswered_segments")


def evenly_late(series: Series) -> None:
    """In no partition do messages wait much longer than in another."""
    series.change("twinsieve_oldest_waiting_seconds", during(always(50)))


def shards_are_late(series: Series) -> None:
    """The index had looked up itself by then."""
    series.change("twinsieve_index_unused_answers_total", counted(9), reason="late")


def handed_over(series: Series) -> None:
    """A standby has no room, and the one that judges has."""
    series.change("twinsieve_index_paused_by_disk", during(always(1)), instance="b:8080")


def new_segment(series: Series) -> None:
    """A segment was sealed, and shards copy it."""
    series.change("twinsieve_index_unanswered_segments", during(always(1)))


def id_without_answer(series: Series) -> None:
    """A partition waits for half a minute before a message of a schema about which the registry says nothing."""
    waits_s = then(always(0), BEGIN_S, always(1), BEGIN_S + 30)
    series.change("twinsieve_waiting_partitions", lambda _: waits_s, reason=WaitReason.SCHEMA)


def shard_is_late_once(series: Series) -> None:
    """Its file was copied, or it was restarted."""
    labels = {"job": "twinsieve", "instance": "a:8080", "shard": "host-2-shard"}
    is_late = lambda at: 3.0 if BEGIN_S <= at < BEGIN_S + 120 else None  # noqa: E731
    series.set("twinsieve_index_late_segments", is_late, **labels)


def shard_catches_up(series: Series) -> None:
    """Again and again."""
    labels = {"job": "twinsieve", "instance": "b:8080"}
    series.set("twinsieve_shard_lag_blocks", lambda at: 64.0 * (at % 120 != 0), **labels)


CALM = [
    *(shard_is_late_once, shard_catches_up),
    *(dry_run, more_standbys, idle_night, rolling_restart),
    *(known_reason, few_at_night, no_shards, new_segment, handed_over, evenly_late, shards_are_late),
    id_without_answer,
]


@pytest.mark.parametrize(("state", "fires"), STATES, ids=[state.__name__ for state, _ in STATES])
def test_state_fires_within_two_minutes_and_clears(
    promtool: str, tmp_path: Path, state: Callable[[Series], None], fires: set[str]
) -> None:
    series = well()
    state(series)
    # What is wrong with one app is not said of another.
    app(series, "other", instances=("c:8080", "d:8080"), judges="c:8080")
    at_s = [BEGIN_S - 15, BEGIN_S + FIRES_S, END_S + CLEAR_S]
    assert firing(promtool, tmp_path, series, at_s) == [{}, {name: {"posts"} for name in fires}, {}]


@pytest.mark.parametrize("calm", CALM, ids=[calm.__name__ for calm in CALM])
def test_nothing_fires(promtool: str, tmp_path: Path, calm: Callable[[Series], None]) -> None:
    series = well()
    calm(series)
    at_s = list(range(BEGIN_S, END_S + CLEAR_S, 60))
    assert firing(promtool, tmp_path, series, at_s) == [{}] * len(at_s)


def test_no_series_at_all(promtool: str, tmp_path: Path) -> None:
    """A Prometheus that scrapes nothing of ours cannot know the names of apps."""
    series = Series()
    series.set("up", always(0), job="twinsieve", instance="a:8080")
    assert firing(promtool, tmp_path, series, [30, FIRES_S]) == [{}, {"Gone": {""}}]


def other_settings(series: Series) -> None:
    """One process was started with them."""
    series.change("twinsieve_info", lambda _: lambda at: None if at >= BEGIN_S else 1.0, instance="b:8080")
    labels = {"app": "posts", "role": "worker,index", "version": "0.1.0", "scheme": "5", "settings": "2"}
    changed = {"job": "twinsieve", "instance": "b:8080"} | labels
    series.set("twinsieve_info", lambda at: 1.0 if at >= BEGIN_S else None, **changed)


def no_shard_for_one(series: Series) -> None:
    """Of the one full segment that there is."""
    series.change("twinsieve_index_unanswered_segments", lambda _: lambda at: float(at >= BEGIN_S))


def late_shard(series: Series) -> None:
    """It is there, and the index looks up itself."""
    labels = {"job": "twinsieve", "instance": "a:8080", "shard": "host-2-shard"}
    series.set("twinsieve_index_late_segments", lambda at: 3.0 if at >= BEGIN_S else None, **labels)


def shard_behind(series: Series) -> None:
    """It is there, and reads nothing."""
    labels = {"job": "twinsieve", "instance": "b:8080"}
    series.set("twinsieve_shard_lag_blocks", lambda at: 64.0 * (at >= BEGIN_S), **labels)


def seldom_answers(series: Series) -> None:
    """A process that ends at each start, and was scraped once in five minutes, by chance."""
    labels = {"job": "twinsieve", "instance": "b:8080"}
    for at_s in range(BEGIN_S, BEGIN_S + 960, 300):
        series.lose(at_s, at_s + 285, **labels)
    series.set("up", lambda at: float(at < BEGIN_S or (at - BEGIN_S) % 300 == 285), **labels)


@pytest.mark.parametrize(
    ("state", "calm_s", "alert"),
    [
        (other_settings, 480, "SettingsDiffer"),
        (no_shard_for_one, 480, "SegmentsUnanswered"),
        (late_shard, 240, "ShardLate"),
        (shard_behind, 240, "ShardBehind"),
        (seldom_answers, 240, "Restarts"),
    ],
)
def test_what_is_usual_for_minutes_fires_when_it_lasts(
    promtool: str, tmp_path: Path, state: Callable[[Series], None], calm_s: int, alert: str
) -> None:
    series = well()
    state(series)
    at_s = [BEGIN_S + calm_s, BEGIN_S + 960]
    assert firing(promtool, tmp_path, series, at_s) == [{}, {alert: {"posts"}}]


@pytest.mark.parametrize(
    ("state", "fires"), [(no_index, {"NoIndex", "NothingComesOut"}), (partition_waits, {"HalfComesOut"})]
)
def test_failover_is_calm_for_the_session_timeout(
    promtool: str, tmp_path: Path, state: Callable[[Series], None], fires: set[str]
) -> None:
    """And for 15 s more, in which another process takes over."""
    series = well()
    series.change("twinsieve_session_timeout_seconds", lambda _: always(120))
    state(series)
    calm_s = list(range(BEGIN_S, BEGIN_S + 135, 15))
    found = firing(promtool, tmp_path, series, [*calm_s, BEGIN_S + 195, END_S + CLEAR_S])
    assert found == [*({} for _ in calm_s), {name: {"posts"} for name in fires}, {}]


@pytest.mark.parametrize(("gib", "fires"), [(5.5, {"LogGrows": {"posts"}}), (4.4, {})])
def test_log_is_held_against_the_day_before(promtool: str, tmp_path: Path, gib: float, fires: Firing) -> None:
    day_s = 86_400
    series = Series()
    labels = {"job": "twinsieve", "instance": "a:8080"}
    series.set("twinsieve_info", always(1), app="posts", settings="1", **labels)
    grows = then(always(3 << 30), 2 * day_s, always(gib * (1 << 30)), 3 * day_s)
    series.set("twinsieve_log_bytes", grows, topic="posts.fingerprints", **labels)
    at_s = [day_s, 2 * day_s - 300, 2 * day_s + 600]
    assert firing(promtool, tmp_path, series, at_s, scrape_s=300) == [{}, {}, fires]


def test_rules_ask_for_metrics_that_exist() -> None:
    assert asked_of(rule["expr"] for rule in rules()) <= well().names


def test_the_page_of_metrics_names_each_alert(root: Path) -> None:
    alerts = {rule["alert"]: rule for rule in rules() if "alert" in rule}
    for rule in alerts.values():
        assert rule["labels"]["severity"] in ("page", "ticket")
    section = (root / "docs/METRICS.md").read_text("utf-8").partition("\n## Alerts\n")[2]
    assert set(re.findall(r"^\| `(Twinsieve\w+)` \|", section, re.MULTILINE)) == alerts.keys()


def test_the_rules_are_an_object_of_the_operator_as_the_page_makes_it(root: Path) -> None:
    page = (root / "docs/DEPLOY.md").read_text("utf-8")
    (block,) = (each for each in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "PrometheusRule" in each)
    shown = block.replace("kubectl apply -f -", "cat")
    assert shown != block
    done = subprocess.run(["sh", "-c", shown], cwd=root, capture_output=True, text=True, check=True)
    made = yaml.safe_load(done.stdout)
    assert made["kind"] == "PrometheusRule"
    assert made["spec"] == yaml.safe_load(RULES.read_text("utf-8"))
