"""`kafka.options`: those that are allowed reach the client library, and all others are refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from twinsieve.pipeline.kafka.options import common_options
from twinsieve.pipeline.settings.client_options import ALLOWED, SAME_AS, options_faults
from twinsieve.pipeline.settings.load import check_tree, tree_of_file
from twinsieve.pipeline.settings.model import KafkaSettings


def _kafka(options: Mapping[str, object]) -> KafkaSettings:
    return KafkaSettings.model_validate({"options": options})


def _faults(options: Mapping[str, object]) -> dict[str, str]:
    return dict(options_faults(_kafka(options)))


def _bounds(name: str) -> list[str]:
    values = ALLOWED[name]
    return [str(values[0]), str(values[-1])]


@pytest.mark.parametrize("name", ALLOWED)
def test_the_library_knows_each_of_its_options(name: str) -> None:
    assert all(name in client.DEFAULT_CONFIG for client in (KafkaConsumer, KafkaProducer, KafkaAdminClient))
    for value in _bounds(name):
        assert _faults({name: value}) == {}
        given = common_options(_kafka({name: value}), "c", 1.0)
        assert given[name] == (int(value) if value.isdigit() else value)


@pytest.mark.parametrize("former", [name for name, same in SAME_AS.items() if same is not None])
def test_options_of_the_library_of_before_are_translated(former: str) -> None:
    name = SAME_AS[former] or ""
    for value in _bounds(name):
        assert _faults({former: value}) == {}
        given = common_options(_kafka({former: value}), "c", 1.0)
        assert given == common_options(_kafka({name: value}), "c", 1.0)


def test_an_option_that_is_named_twice_is_refused() -> None:
    twice = {"socket.send.buffer.bytes": "65536", "send_buffer_bytes": "131072"}
    assert "send_buffer_bytes" in _faults(twice)["kafka.options.socket.send.buffer.bytes"]


def test_options_that_the_library_does_not_have_are_ignored_with_a_warning(tmp_path: Path) -> None:
    without = [name for name, same in SAME_AS.items() if same is None]
    path = tmp_path / "s.yaml"
    path.write_text("kafka:\n  options:\n" + "".join(f"    {name}: '1'\n" for name in without))
    settings, findings = check_tree(tree_of_file(path))
    assert findings == []
    assert settings is not None
    assert common_options(settings.kafka, "c", 1.0) == common_options(KafkaSettings(), "c", 1.0)
    assert all(warning.startswith(f"{path}:") for warning in settings.warnings)
    told = [warning.split()[1:4] for warning in settings.warnings]
    assert told == [[f"kafka.options.{name}", "has", "no"] for name in without]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("isolation.level", "aborted"),
        ("isolation_level", "aborted"),
        ("enable.auto.commit", "passed over"),
        ("AUTO.OFFSET.RESET", "passed over"),
        ("acks", "lost"),
        ("enable.idempotence", "twice"),
        ("max_in_flight_requests_per_connection", "order"),
        ("partitioner", "another partition"),
        ("group.instance.id", "place in the group"),
        ("queued.max.messages.kbytes", "memory"),
        ("fetch_max_bytes", "memory"),
        ("sasl.password", "kafka.security"),
        ("ssl_context", "kafka.security"),
        ("debug", "secrets"),
        ("client.rack", "not tested"),
        ("client_rack", "not tested"),
        ("statistics.interval.ms", "nobody has tried"),
    ],
)
def test_others_are_refused_with_what_they_would_break(name: str, why: str) -> None:
    assert why in _faults({name: "1"})[f"kafka.options.{name}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client_dns_lookup", "never"),
        ("connections.max.idle.ms", "-1"),
        ("connections.max.idle.ms", "59999"),
        ("connections.max.idle.ms", "９９９９９９"),
        ("send_buffer_bytes", "99999999999999999999"),
        ("send_buffer_bytes", "64KiB"),
    ],
)
def test_wrong_values_are_refused_with_the_right_ones(name: str, value: str) -> None:
    assert "; use " in _faults({name: value})[f"kafka.options.{name}"]
