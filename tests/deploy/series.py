"""Series of made-up deployments, as promtool takes them: an app of two processes that is well, and what else may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.index.segment_answers import Unused
from twinsieve.pipeline.service.loop import LoopPhase
from twinsieve.pipeline.service.metrics import ProcessPhase
from twinsieve.pipeline.worker.waiting import WaitReason
from twinsieve.stages.differ.rules import Rule

Value = Callable[[int], float | None]
"""Of a series at a time in seconds; None: it is not there."""


def always(value: float) -> Value:
    return lambda _: value


def growing(a_second: float) -> Value:
    """A counter that begins at 0."""
    return lambda at: a_second * at


def then(before: Value, begin_s: int, during: Value, end_s: int) -> Value:
    """Another value from begin_s to before end_s."""
    return lambda at: during(at) if begin_s <= at < end_s else before(at)


def counted(events: float, at_s: int) -> Callable[[Value], Value]:
    """A change of a counter: this many events happen at this time."""
    return lambda before: lambda at: (before(at) or 0.0) + (events if at >= at_s else 0.0)


@dataclass
class Series:
    """All series of a test, by name and labels."""

    held: dict[tuple[str, tuple[tuple[str, str], ...]], Value] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Of all series."""
        return {name for name, _ in self.held}

    def set(self, name: str, value: Value, **labels: str) -> None:
        """Set a series, in place of the one with the same labels."""
        self.held[name, tuple(sorted(labels.items()))] = value

    def lose(self, begin_s: int, end_s: int, **labels: str) -> None:
        """Nothing with these labels is scraped for a time."""
        for key, value in self.held.items():
            if labels.items() <= dict(key[1]).items():
                self.held[key] = then(value, begin_s, lambda _: None, end_s)

    def without(self, name: str) -> None:
        """Take all series of this name out."""
        self.held = {key: value for key, value in self.held.items() if key[0] != name}

    def change(self, name: str, change: Callable[[Value], Value], **labels: str) -> None:
        """Change every series of this name with at least these labels.

        raises: AssertionError if there is none: the test would then show nothing
        """
        found = [key for key in self.held if key[0] == name and labels.items() <= dict(key[1]).items()]
        assert found, f"no {name} with {labels}"
        for key in found:
            self.held[key] = change(self.held[key])

    def written(self, seconds: int, scrape_s: int) -> list[dict[str, str]]:
        """All series in promtool's format for `input_series`: one value every scrape_s seconds."""
        steps = range(0, seconds + 1, scrape_s)
        return [
            {
                "series": name + "{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}",
                "values": " ".join(_spelled(map(value, steps))),
            }
            for (name, labels), value in self.held.items()
        ]


_A_SECOND = 20.0
"""Messages that arrive at an app, and come out."""


def well() -> Series:
    """The series of the app `posts`, which is well."""
    series = Series()
    app(series)
    return series


def app(
    series: Series,
    name: str = "posts",
    *,
    instances: Iterable[str] = ("a:8080", "b:8080"),
    judges: str = "a:8080",
) -> None:
    """Add an app that is well: each instance has both roles, one judges, 40 % of the messages are dropped."""
    instances = tuple(instances)
    for instance in instances:

        def add(name: str, value: Value, at: str = instance, **labels: str) -> None:
            series.set(name, value, job="twinsieve", instance=at, **labels)

        add(
            "twinsieve_info",
            always(1),
            app=name,
            role="worker,index",
            version="0.1.0",
            scheme="5",
            settings="1",
        )
        add("up", always(1))
        add("process_start_time_seconds", always(0))
        for phase in ProcessPhase:
            add("twinsieve_process_phase", always(float(phase == ProcessPhase.RUNNING)), phase=phase)
        for verdict, part in {"unique": 0.6, "exact": 0.25, "near": 0.15}.items():
            add("twinsieve_messages_total", growing(part * _A_SECOND / len(instances)), verdict=verdict)
        for reason in DeadLetterReason:
            add("twinsieve_dead_letters_total", always(0), reason=reason)
        for reason in (DeadLetterReason.REFUSED, WaitReason.UNREADABLE):
            add("twinsieve_skipped_messages_total", always(0), reason=reason)
        for reason in WaitReason:
            add("twinsieve_waiting_partitions", always(0), reason=reason)
        for reason in GivenUp:
            add("twinsieve_index_given_up_messages_total", always(0), reason=reason)
        for reason in Unused:
            add("twinsieve_index_unused_answers_total", always(0), reason=reason)
        for counter in ("trimmed_messages", "foreign_offsets", "snapshot_failures", "segment_failures"):
            add(f"twinsieve_{counter}_total", always(0))
        for partition in range(4):
            place = {"topic": "in", "partition": str(partition)}
            add("twinsieve_oldest_waiting_seconds", lambda at: at // 15 % 3, **place)
            add("twinsieve_input_open_transaction_seconds", lambda at: at // 15 % 4, **place)
            add("twinsieve_input_end_offset", growing(_A_SECOND / 4), **place)
        for role in ("worker", "index"):
            add("twinsieve_broker_answered_timestamp_seconds", float, role=role)
            for phase in LoopPhase:
                add("twinsieve_role_phase", always(float(phase == LoopPhase.WORKING)), role=role, phase=phase)
        for rule in (Rule.NUMBER, Rule.CALENDAR):
            add("twinsieve_index_kept_apart_total", growing(0.1), reason=rule.words)
        add("twinsieve_index_live", always(float(instance == judges)))
        add("twinsieve_index_paused_by_disk", always(0))
        add("twinsieve_window_unwritten_segments", always(0))
        add("twinsieve_foreign_members", always(0))
        add("twinsieve_shard_lag_blocks", lambda at: at // 15 % 5)
        add("twinsieve_unassigned_partitions", always(0))
        add("twinsieve_state_hung_seconds", always(0))
        add("twinsieve_snapshot_every_seconds", always(300))
        add("twinsieve_session_timeout_seconds", always(6))
        add("twinsieve_memory_bytes", always(800 << 20))
        add("twinsieve_memory_limit_bytes", always(1 << 30))
        if instance == judges:
            add("twinsieve_snapshot_age_seconds", lambda at: at % 300)
            add("twinsieve_index_behind_seconds", always(0))
            add("twinsieve_window_messages", growing(0.6 * _A_SECOND))
            add("twinsieve_window_capacity_messages", always(1_000_000))
            add("twinsieve_log_bytes", always(3 << 30), topic=f"{name}.fingerprints")
            add("twinsieve_index_unanswered_segments", always(0))
            add("twinsieve_index_late_segments", lambda _: None, shard="host-2-shard")


def _spelled(values: Iterable[float | None]) -> Iterator[str]:
    """What Prometheus stores: a series that is no longer scraped is marked as stale."""
    before: float | None = None
    for value in values:
        if value is not None:
            yield f"{value:.6f}"
        else:
            yield "_" if before is None else "stale"
        before = value
