"""Somebody has the outputs compacted while messages arrive: those without a key become dead letters, and no text that
was sent with a key is missing. Judged from the topics alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest

from tests.broker.services import Service, value_of, wait_for
from tests.broker.stranger import set_topics
from tests.broker.worlds import fresh
from twinsieve.pipeline.broker.admin import NewTopic, TopicInfo
from twinsieve.pipeline.broker.ports import Broker

_MANY = 50


def texts(name: str) -> list[str]:
    """Texts that are not alike."""
    return [f"{name} {number} {fresh()} {fresh()} {fresh()}" for number in range(_MANY)]


def written(service: Service, kind: str) -> Counter[str]:
    """How often each text is in an output."""
    return Counter(json.loads(value or b"{}").get("text") for value in service.read(kind).values)


@pytest.mark.parametrize("is_shown", [True, False])
def test_messages_without_a_key_cost_themselves_where_outputs_become_compacted(
    serving: Callable[..., Service],
    bootstrap: str,
    broker: Broker,
    *,
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_shown:
        # As where the user may not describe the settings of topics: only the broker's refusal tells.
        monkeypatch.setattr(TopicInfo, "compacts", property(lambda _: False))
    stuck, healthy = fresh("stuck"), fresh("healthy")
    broker.admin().create_topic(NewTopic(healthy, 1))
    service = serving(bootstrap, topics=[stuck, healthy])
    output = service.settings.output
    service.start()
    first = texts("first")
    service.post(*first)
    wait_for(lambda: service.count("out") == _MANY, service)
    outputs = [topic for topic in (output.topic, output.duplicates, output.dead_letter) if topic]
    set_topics(bootstrap, outputs, "cleanup.policy", "compact")
    # A new text, a copy and what cannot be read, none with a key; then texts that come in both inputs.
    keyless, both = texts("keyless")[0], texts("both")
    service.produce(
        (None, value_of(keyless), []), (None, value_of(first[0]), []), (None, b"{", []), (b"k", b"{", [])
    )
    service.post(*both)
    service.post(*both, topic=healthy)
    wait_for(lambda: service.count("out", "dup", "dead") == 3 * _MANY + 4, service)
    out = written(service, "out")
    assert {text: out[text] for text in [*first, *both]} == dict.fromkeys([*first, *both], 1)
    assert written(service, "dup") == Counter(both)
    dead = service.read("dead")
    said = [
        (dict(headers)["twinsieve-reason"], key) for headers, key in zip(dead.headers, dead.keys, strict=True)
    ]
    reason = b"no_key" if is_shown else b"refused"
    places = [f"{stuck}[0]@{_MANY + row}".encode() for row in range(3)]
    assert said == [
        (reason, places[0]),
        (reason, places[1]),
        (b"no_key" if is_shown else b"invalid_json", places[2]),
        (b"invalid_json", b"k"),
    ]
    refusals = [b"without key" in (dict(headers).get("twinsieve-refusal") or b"") for headers in dead.headers]
    if not is_shown:
        assert refusals == [True, True, False, False]
    service.post("behind all")
    wait_for(lambda: written(service, "out")["behind all"] == 1, service)
