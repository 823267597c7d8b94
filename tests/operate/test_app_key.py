"""The key of an app is drawn once, whoever dies or starts beside it, and never a second time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.memory.broker import CrashError, ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Hook, no_hook
from twinsieve.pipeline.broker.records import BrokerError, Committed, Messages, Partition
from twinsieve.pipeline.index.ends import JudgedUnder, committed_record
from twinsieve.pipeline.operate.app_key import recorded_secret, secret_of
from twinsieve.pipeline.operate.committed_index import committed_by_index
from twinsieve.pipeline.operate.topic_checks import Severity, check, create
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.service.start_checks import check_app
from twinsieve.pipeline.settings.fixed import encode_fixed
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import StateError
from twinsieve.stages.fingerprint.secret import NO_SECRET, Secret

SETTINGS = Settings.model_validate({"app": "t"})
NAMES = Names("t")
LOG, KEY = Partition(NAMES.fingerprints, 0), Partition(NAMES.key, 0)
STEPS = 200
"""More than a start has."""


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster(ManualClock())
    made.create(NewTopic("posts", 1))
    create(SETTINGS, MemoryBroker(made).admin())
    return made


def start(cluster: MemoryCluster, hook: Hook = no_hook, settings: Settings = SETTINGS) -> Secret:
    return secret_of(settings, MemoryBroker(cluster, hook), cluster.clock)


def keys(cluster: MemoryCluster) -> set[bytes | None]:
    return set(cluster.values(NAMES.key))


def at_step(number: int, act: Callable[[], object]) -> Hook:
    """Does this at one step of all that a broker is asked."""
    left = iter(range(number + 1))

    def hook(_step: str) -> None:
        if next(left, None) == number:
            act()

    return hook


def steps(cluster: MemoryCluster) -> int:
    """How many steps the first start of an app has."""
    seen: list[str] = []
    start(cluster, seen.append)
    return len(seen)


def test_a_new_app_draws_a_key_and_each_later_start_reads_it(cluster: MemoryCluster) -> None:
    first = start(cluster)
    assert first == start(cluster) != NO_SECRET
    assert len(cluster.values(NAMES.key)) == 1


def _crash() -> None:
    raise CrashError("killed")


@pytest.mark.parametrize("number", range(40))
def test_a_start_that_is_killed_at_any_step_leaves_one_key_or_none(
    number: int, cluster: MemoryCluster
) -> None:
    crashed = True
    try:
        found = start(cluster, at_step(number, _crash))
        crashed = False
    except CrashError:
        found = start(cluster)
    assert found == start(cluster)
    assert len(cluster.values(NAMES.key)) == 1
    assert crashed or number >= steps_of_a_first_start()


def steps_of_a_first_start() -> int:
    made = MemoryCluster(ManualClock())
    made.create(NewTopic("posts", 1))
    create(SETTINGS, MemoryBroker(made).admin())
    return steps(made)


@pytest.mark.parametrize("number", range(40))
def test_another_start_between_any_two_steps_gets_the_same_key(number: int, cluster: MemoryCluster) -> None:
    others: list[Secret] = []
    found = start(cluster, at_step(number, lambda: others.append(start(cluster))))
    assert [found] * len(others) == others
    assert len(cluster.values(NAMES.key)) == 1


@pytest.mark.parametrize("number", range(40))
def test_another_start_that_has_written_meanwhile_is_no_app_of_before(
    number: int, cluster: MemoryCluster
) -> None:
    def other() -> None:
        start(cluster)
        append(cluster, LOG, b"a block")

    found = start(cluster, at_step(number, other))
    assert found == start(cluster)
    assert len(cluster.values(NAMES.key)) == 1


def test_all_steps_are_among_those_tried() -> None:
    assert 5 < steps_of_a_first_start() <= 40


def test_twenty_first_starts_at_once_draw_one_key() -> None:
    cluster = MemoryCluster(SystemClock())
    cluster.create(NewTopic("posts", 1))
    create(SETTINGS, MemoryBroker(cluster).admin())
    found: list[Secret] = []
    starts = [threading.Thread(target=lambda: found.append(start(cluster))) for _ in range(20)]
    for each in starts:
        each.start()
    for each in starts:
        each.join()
    assert len(found) == 20
    assert len(set(found)) == 1
    assert len(cluster.values(NAMES.key)) == 1


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_would_forget_the_key_stops_a_start(policy: str, cluster: MemoryCluster) -> None:
    cluster.topics[NAMES.key].settings |= {"cleanup.policy": policy, "retention.ms": "1000"}
    (found,) = (each for each in check(SETTINGS, MemoryBroker(cluster).admin()) if each.topic == NAMES.key)
    assert (found.severity, found.text.partition("; ")[2]) == (Severity.STOPS, "set it to compact")


def test_a_seed_or_no_key_takes_its_place(cluster: MemoryCluster) -> None:
    for more, secret in (({"key": "none"}, NO_SECRET), ({"seed": 7}, Secret.of_seed(7))):
        settings = Settings.model_validate({"app": "t", "digest": more})
        assert start(cluster, settings=settings) == secret
    assert cluster.values(NAMES.key) == []


def judged(cluster: MemoryCluster, secret: Secret | None) -> None:
    """The app has a log, and an index has recorded that it judged, with this secret."""
    append(cluster, LOG, b"a block")
    fixed = {"profile": "default"} | ({"digest.key": f"own {secret.name}"} if secret is not None else {})
    record = committed_record(1, 2, under=JudgedUnder(scheme="2e", fixed=encode_fixed(fixed)))
    MemoryBroker(cluster).admin().set_group_offsets(NAMES.index, {LOG: record})


def append(cluster: MemoryCluster, at: Partition, value: bytes | None) -> None:
    transactor = MemoryBroker(cluster).transactor("somebody")
    transactor.begin()
    messages = Messages()
    messages.add(b"key", value)
    transactor.send(at.topic, at.number, messages)
    transactor.commit()


def test_a_key_that_is_gone_is_not_drawn_again(cluster: MemoryCluster) -> None:
    first = start(cluster)
    judged(cluster, first)
    cluster.delete(NAMES.key)
    create(SETTINGS, MemoryBroker(cluster).admin())
    with pytest.raises(
        StateError, match=rf"t\.key holds no key, .* judged with one \({first.name}\).*new names"
    ):
        start(cluster)
    assert cluster.values(NAMES.key) == []


@pytest.mark.parametrize("how", ["judged", "log", "offset"])
def test_an_app_of_an_earlier_version_is_refused_and_left_alone(how: str, cluster: MemoryCluster) -> None:
    if how == "judged":
        judged(cluster, None)
    elif how == "log":
        append(cluster, LOG, b"a block")
    else:
        MemoryBroker(cluster).admin().set_group_offsets(NAMES.index, {LOG: Committed(0, "2 0 0")})
    held, offsets = cluster.values(LOG.topic), dict(cluster.group(NAMES.index).offsets)
    with pytest.raises(StateError, match=r"begun by an earlier version .*seed --topic.*reset --to"):
        start(cluster)
    assert (cluster.values(LOG.topic), dict(cluster.group(NAMES.index).offsets)) == (held, offsets)
    assert cluster.values(NAMES.key) == []


def test_an_app_of_an_earlier_version_gets_no_topic(cluster: MemoryCluster) -> None:
    judged(cluster, None)
    cluster.delete(NAMES.key)
    before = set(cluster.topics)
    with pytest.raises(StateError, match="begun by an earlier version"):
        check_app(SETTINGS, lambda: MemoryBroker(cluster), cluster.clock, auto_create=True)
    assert set(cluster.topics) == before


@pytest.mark.parametrize("value", [None, b"", b"\2" + bytes(16), b"\1" + bytes(15)])
def test_what_is_no_key_is_refused_with_its_place(value: bytes | None, cluster: MemoryCluster) -> None:
    append(cluster, KEY, value)
    with pytest.raises(StateError, match=r"t\.key\[0\]@0: is no key"):
        start(cluster)


def test_a_second_key_in_the_topic_is_refused(cluster: MemoryCluster) -> None:
    start(cluster)
    append(cluster, KEY, b"\1" + bytes(16))
    with pytest.raises(StateError, match="holds 2 keys"):
        start(cluster)


def test_a_broker_that_is_away_is_asked_again(cluster: MemoryCluster) -> None:
    cluster.reachable = False
    with pytest.raises(BrokerError) as caught:
        start(cluster)
    assert caught.value.retryable
    cluster.reachable = True
    start(cluster)


def test_who_makes_no_digests_knows_the_name_alone(cluster: MemoryCluster) -> None:
    admin = MemoryBroker(cluster).admin()
    secret = start(cluster)
    with pytest.raises(BrokerError, match="no index has recorded") as caught:
        recorded_secret(SETTINGS, committed_by_index("t", admin))
    assert caught.value.retryable
    judged(cluster, secret)
    named = recorded_secret(SETTINGS, committed_by_index("t", admin))
    assert (named.name, named.value) == (secret.name, None)
