"""`twinsieve run` on a real broker whose topics are not what it needs: it says so, a line each, and ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.broker.services import written_settings
from tests.logfmt import last_words, read_line
from twinsieve.pipeline.broker.admin import Admin, NewTopic
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.operate.topic_plan import plan_of
from twinsieve.pipeline.settings.model import Settings

_RUN = [sys.executable, "-m", "twinsieve", "run", "--member", "one"]
_TIMEOUT_S = 120.0


class Operator:
    """Makes topics by hand and starts the command."""

    def __init__(self, client: str, bootstrap: str, folder: Path) -> None:
        settings = written_settings(client, bootstrap, folder / "state")
        settings["output"] |= {"duplicates": "none", "dead_letter": "none"}
        self.app = settings["app"]
        self._file = folder / "settings.yaml"
        self._file.write_text(yaml.safe_dump(settings))
        self.settings = Settings.model_validate(settings)
        self._broker = connect(self.settings.kafka)
        self.warned: list[str] = []
        self.admin: Admin = self._broker.admin()
        self.admin.create_topic(NewTopic(f"{self.app}-in", 2))

    def topic(self, kind: str, partitions: int, **settings: str) -> None:
        """An internal topic of one's own making; dots of settings are written as underscores."""
        held = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topic(NewTopic(f"{self.app}.{kind}", partitions, 1, held))

    def refused(self) -> list[str]:
        """What ends `run` with exit code 3, without the app's name; `warned` is what it warned of before."""
        done = subprocess.run(
            [*_RUN, "-c", str(self._file)], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        assert done.returncode == 3, done.stderr
        assert done.stdout == ""
        records = [read_line(line) for line in done.stderr.splitlines()]
        self.warned = [one["msg"].replace(self.app, "app") for one in records if one["level"] == "warning"]
        return sorted(line.replace(self.app, "app") for line in last_words(done.stderr))

    def close(self) -> None:
        self._broker.close()


@pytest.fixture
def operator(client: str, bootstrap: str, tmp_path: Path) -> Iterator[Operator]:
    made = Operator(client, bootstrap, tmp_path)
    yield made
    made.close()


def test_each_wrong_setting_of_an_internal_topic_is_a_line(operator: Operator) -> None:
    operator.topic("decisions", 1, cleanup_policy="compact")
    operator.topic("verdicts", 1)
    operator.topic("fingerprints", 3, retention_ms="3600000")
    create(operator.settings, operator.admin)
    compact, split = operator.refused()
    (short,) = [line for line in operator.warned if "deleted after" in line]
    (few,) = [line for line in operator.warned if "topics.verdict_partitions" in line]
    assert compact == (
        "app.decisions: cleanup.policy is compact, which drops what is still needed; set it to delete"
    )
    assert split.startswith("app.fingerprints: has 3 partitions, must have 1 ")
    assert short.startswith("run: app.fingerprints: messages are deleted after 1 h, ")
    assert ", or at least 604800000" in short
    assert few.startswith("run: app.verdicts: has 1 partitions, topics.verdict_partitions is 4")


def test_missing_internal_topics_are_named_and_not_created(operator: Operator) -> None:
    operator.topic("decisions", 1)
    said = operator.refused()
    assert said == [
        f"{name}: does not exist; run: twinsieve topics create"
        for name in ("app-out", "app.fingerprints", "app.verdicts")
    ]
    names = plan_of(operator.settings).names
    there = {name for name, info in operator.admin.topics(names).items() if info is not None}
    assert there == {f"{operator.app}-in", f"{operator.app}.decisions"}
