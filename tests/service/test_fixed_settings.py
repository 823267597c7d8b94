"""An app that has judged refuses other settings of its scheme, scope and exact keys, and names those that differ."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.memory.broker import MemoryCluster
from tests.service.running import Service, came_out, patient_cluster, wait_for
from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Committed, Messages, Partition
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.settings.fixed import (
    decode_fixed,
    differing,
    encode_fixed,
    fixed_settings,
    profile_cost,
)
from twinsieve.pipeline.settings.load import Override, load_settings
from twinsieve.pipeline.settings.model import PROFILES, Settings
from twinsieve.pipeline.settings.proposal import ON_KAFKA
from twinsieve.pipeline.settings.stage_config import scheme_config
from twinsieve.stages.errors import StateError
from twinsieve.stages.fingerprint.secret import Secret

SECRET = 3_141_592_653
LOG = Partition("t.fingerprints", 0)
ADVICE = "; set it as it was, or start a new app and seed it (docs/OPERATIONS.md, Change the profile)"


def _settings(folder: Path, **changed: object) -> Settings:
    written = {
        "app": "t",
        "digest.seed": SECRET,
        "near.window.messages": 100,
        "exact.window.messages": 100,
        "kafka.idle_report": "50ms",
        "topics.auto_create": "true",
        "state.dir": folder,
        "http.listen": "none",
    }
    values = written | {key.replace("__", "."): value for key, value in changed.items()}
    return load_settings(None, {}, [Override(key, str(value), "settings") for key, value in values.items()])


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = patient_cluster()
    cluster.create(NewTopic("posts", 1))
    return cluster


def _judge(cluster: MemoryCluster, settings: Settings) -> None:
    before = came_out(cluster, "posts.unique", "posts.duplicates")
    messages = Messages()
    messages.add(None, json.dumps({"text": "今天武汉下雨了，大家出门记得带伞", "tenant": "a"}).encode())
    cluster.write(Partition("posts", 0), messages)
    service = Service(settings, cluster)
    outputs = ("posts.unique", "posts.duplicates")
    wait_for(lambda: came_out(cluster, *outputs) > before or not service.running, "one")
    service.end()


def _refusal(cluster: MemoryCluster, settings: Settings) -> str:
    service = Service(settings, cluster)
    service.join()
    assert isinstance(service.error, StateError)
    assert service.error.lasting
    return str(service.error)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"profile": "plain"}, "profile: was default, is plain"),
        (
            {"profile": "sms", "scope": "tenant", "text.compare": "tags,links", "near.layout.bands": 24},
            "profile: was default, is sms; text.compare: was [], is [links, tags]; near.layout.bands: was 28, is 24; "
            "scope: was [], is [tenant]",
        ),
        ({"near.method": "signatures"}, "near.method: was another, is signatures"),
        ({"digest.seed": 1}, "digest.seed, or the version of twinsieve, jieba or OpenCC, is another one"),
    ],
)
def test_a_refusal_names_all_settings_that_differ(
    cluster: MemoryCluster, tmp_path: Path, changed: dict[str, object], named: str
) -> None:
    _judge(cluster, _settings(tmp_path))
    refusal = _refusal(cluster, _settings(tmp_path, **changed))
    assert refusal.startswith(f"app t has judged under other settings: {named}")
    assert refusal.endswith(ADVICE)
    # The settings that it is fixed to are taken again.
    _judge(cluster, _settings(tmp_path))


def test_what_is_no_part_of_the_scheme_may_change(cluster: MemoryCluster, tmp_path: Path) -> None:
    _judge(cluster, _settings(tmp_path, profile="plain"))
    _judge(cluster, _settings(tmp_path, profile="titles", near__similarity=0.9))


def test_an_app_of_an_older_version_is_refused_by_its_decisions(
    cluster: MemoryCluster, tmp_path: Path
) -> None:
    _judge(cluster, _settings(tmp_path))
    offsets = cluster.group("t.index").offsets
    offsets[LOG] = Committed(offsets[LOG].offset, "2 1 0 posts.unique")
    refusal = _refusal(cluster, _settings(tmp_path, profile="plain"))
    assert refusal.startswith("t.decisions[0]@0: fingerprint scheme is ")


def test_no_secret_is_on_record(cluster: MemoryCluster, tmp_path: Path) -> None:
    _judge(cluster, _settings(tmp_path))
    held = cluster.group("t.index").offsets[LOG].metadata.encode()
    held += b"".join(path.read_bytes() for path in (tmp_path / "t").iterdir())
    for secret in (str(SECRET), f"{SECRET:x}"):
        assert secret.encode() not in held
    assert b'{"profile":"default","digest.key":"seed"}' in held


def test_another_key_is_named_in_the_refusal(cluster: MemoryCluster, tmp_path: Path) -> None:
    own = _settings(tmp_path, digest__seed=0)
    _judge(cluster, own)
    (held,) = cluster.values("t.key")
    assert held is not None
    name = Secret.of_key(held[1:]).name
    assert f'"digest.key":"own {name}"' in cluster.group("t.index").offsets[LOG].metadata
    cluster.delete("t.key")
    cluster.create(NewTopic("t.key", 1, settings={"cleanup.policy": "compact"}))
    other = Messages()
    other.add(b"key", b"\1" + bytes(16))
    cluster.write(Partition("t.key", 0), other)
    refusal = _refusal(cluster, own)
    assert f"digest.key: was own {name}, is own {Secret.of_key(bytes(16)).name}" in refusal
    assert "digest.key: was own" in _refusal(cluster, _settings(tmp_path))


def test_a_snapshot_of_another_scheme_is_ignored_by_name(
    cluster: MemoryCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _judge(cluster, _settings(tmp_path))
    # Kafka has forgotten the group.
    cluster.group("t.index").offsets.clear()
    _refusal(cluster, _settings(tmp_path, profile="plain"))
    assert "another fingerprint scheme (profile: was default, is plain)" in caplog.text


def test_the_record_fits_beside_an_offset_whatever_is_set(tmp_path: Path) -> None:
    words = ",".join(f"字段{number}" for number in range(1_000))
    stop_words = tmp_path / "words.txt"
    stop_words.write_text("one\ntwo\n")
    settings = _settings(
        tmp_path,
        scope=words,
        exact__fields=words,
        near__method="signatures",
        text__drop="^a+" * 500,
        features__kind="keywords",
        features__stop_words_file=stop_words,
        features__drop="latin,digits",
        **{f"near__layout__{name}": 8 for name in ("bands", "rows", "tables", "key_bits", "simhash_from")},
    )
    fixed = fixed_settings(settings, scheme_config(settings))
    text = encode_fixed(fixed)
    assert len(text.encode()) < 3_000
    assert decode_fixed(text) == fixed
    stop_words.write_text("one\nthree\n")
    again = fixed_settings(settings, scheme_config(settings))
    assert differing(fixed, again).startswith("features.stop_words_file: was content ")


def test_the_cost_of_a_profile_names_those_of_the_same_scheme(tmp_path: Path) -> None:
    made = {name: make_scheme(_settings(tmp_path, profile=name)).scheme_id for name in PROFILES}
    for name, scheme_id in made.items():
        line = profile_cost(_settings(tmp_path, profile=name))
        named = re.match("an app on Kafka may change its profile to ([a-z or]+); any other", line)
        assert set(named[1].split(" or ") if named else ()) == {
            other for other, its_id in made.items() if its_id == scheme_id and other != name
        }


def test_a_worker_proposes_a_profile_with_what_it_costs(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    process = Stepped(settings, make_scheme(settings), {"posts": 1})
    texts = (f"@anna look at this, number {number}! http://t.co/x and so good" for number in range(ON_KAFKA))
    process.write(Partition("posts", 0), (json.dumps({"text": text}).encode() for text in texts))
    (notice,) = [line for line in process.worker.notices if "look like" in line]
    assert notice.endswith(f"; {profile_cost(settings)}")
    assert "near.window.age 24h, exact.window.age 7d" in notice
