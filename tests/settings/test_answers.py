"""Settings of shards: who answers, how long the index waits for it, and what must not depend on them."""

from __future__ import annotations

import pytest

from tests.calling import Run, setting
from tests.shared_store import PROTOCOL
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.common import common_settings
from twinsieve.pipeline.settings.fixed import fixed_settings
from twinsieve.pipeline.settings.load import Override, load_settings
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.stages.judge.rules_digest import rules_digest

SHARDS = {"near.answers": "shards"}


def _loaded(**keys: str) -> Settings:
    flags = [Override(key, text, f"--set {key}") for key, text in keys.items()]
    return load_settings(None, {}, flags)


def _refused(**keys: str) -> str:
    with pytest.raises(ConfigError) as caught:
        _loaded(**keys)
    (line,) = caught.value.findings
    return line


@pytest.mark.parametrize("timeout_s", [1, 6, 45])
def test_the_default_patience_is_the_least_that_is_taken(timeout_s: int) -> None:
    timeout, least = {"kafka.session_timeout": f"{timeout_s}s"}, timeout_s * 1000 + 4000
    assert _loaded(**SHARDS, **timeout).patience_ms == least
    assert _loaded(**SHARDS, **timeout, **{"near.patience": f"{least}ms"}).patience_ms == least
    assert _loaded(**SHARDS, **timeout, **{"near.patience": "1h"}).patience_ms == 3_600_000
    told = _refused(**SHARDS, **timeout, **{"near.patience": f"{least - 1}ms"})
    assert told.startswith("--set near.patience: near.patience is ")
    assert f"{least - 1}ms" in told
    assert f"kafka.session_timeout is {timeout_s}s" in told
    assert f"use {timeout_s + 4}s or more" in told


def test_a_longer_session_timeout_makes_a_written_patience_too_short() -> None:
    written = {**SHARDS, "near.patience": "12s"}
    assert _loaded(**written).patience_ms == 12_000
    assert "near.patience is 12s" in _refused(**written, **{"kafka.session_timeout": "10s"})


@pytest.mark.parametrize(("patience", "auto_ms"), [("10s", 21_000), ("1m", 121_000)])
def test_workers_wait_for_more_than_two_patiences(patience: str, auto_ms: int) -> None:
    written = {**SHARDS, "near.patience": patience}
    assert _loaded(**written).answer_ms == auto_ms
    assert _loaded(**written, **{"kafka.answer_timeout": f"{auto_ms}ms"}).answer_ms == auto_ms
    told = _refused(**written, **{"kafka.answer_timeout": f"{auto_ms - 1_001}ms"})
    assert told.startswith("--set kafka.answer_timeout: kafka.answer_timeout is ")
    assert _loaded(**{"kafka.answer_timeout": "2s"}).answer_ms == 2_000, "without shards any time is right"
    assert _loaded().answer_ms == 10_000


def test_patience_without_shards_disturbs_nobody() -> None:
    assert _loaded(**{"near.patience": "1s"}).near.answers == "none"


@pytest.mark.parametrize("written", ["0s", "0ms", "none", "soon", "-1s"])
def test_a_patience_that_is_no_time_is_refused(written: str) -> None:
    assert "near.patience is" in _refused(**SHARDS, **{"near.patience": written})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("near.method", "hamming"),
        ("near.method", "signatures"),
        ("near.method", "none"),
        ("near.candidates", "scan"),
    ],
)
def test_shards_answer_for_texts_by_an_index_alone(key: str, value: str) -> None:
    assert "near.answers is shards" in _refused(**SHARDS, **{key: value})


@pytest.mark.parametrize(
    ("key", "value"), [("near.replicas", "0"), ("near.replicas", "10"), ("near.answers", "all")]
)
def test_a_value_that_no_key_takes_is_refused(key: str, value: str) -> None:
    assert key in _refused(**{key: value})


def test_processes_may_differ_in_them_and_no_verdict_does() -> None:
    plain = _loaded()
    own = _loaded(
        **SHARDS,
        **{"near.patience": "1m", "near.replicas": "3", "near.grace": "5s", "kafka.session_timeout": "9s"},
    )
    assert common_settings(own) == common_settings(plain)
    assert fixed_settings(own, scheme_config(own)) == fixed_settings(plain, scheme_config(plain))
    assert rules_digest(sieve_config(own, "").near) == rules_digest(sieve_config(plain, "").near)
    assert sieve_config(own, "") == sieve_config(plain, "")


def test_every_value_is_shown_as_it_can_be_given_again(run: Run) -> None:
    for given in ("auto", "90s", "24h"):
        ran = run("lint", "--show", *setting("near.answers=shards", f"near.patience={given}"))
        lines = dict(line.split(maxsplit=2)[:2] for line in ran.out.splitlines())
        assert lines["near.patience"] == given


@pytest.mark.parametrize(
    ("folder", "answers", "warned"),
    [
        ("./state", "shards", True),
        ("file:///var/lib/x", "shards", True),
        (f"{PROTOCOL}:///tmp/x", "shards", False),
        ("./state", "none", False),
    ],
)
def test_lint_warns_of_a_state_that_other_machines_cannot_read(
    run: Run, folder: str, answers: str, warned: bool
) -> None:
    ran = run("lint", *setting(f"state.dir={folder}", f"near.answers={answers}"))
    told = [line for line in ran.out.splitlines() if line.startswith("warning: state.dir")]
    assert ran.code == 0
    assert len(told) == warned
    assert all(folder in line and "shards on other machines cannot read this folder" in line for line in told)
