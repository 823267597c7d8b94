"""`twinsieve run` on an input that is no longer what it was judged as: it says so, in one line, and ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.services import POSTS, Service, origins, until_ended, wait_for, written_settings
from tests.broker.worlds import DEADLINE_S, until
from tests.logfmt import last_words
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.settings.model import Settings

_COMMAND = [sys.executable, "-m", "twinsieve"]


class Operator:
    """Runs the command on a service's topics, and does to its input what brokers and people do."""

    def __init__(self, client: str, bootstrap: str, folder: Path) -> None:
        written = written_settings(client, bootstrap, folder)
        self.service = Service(Settings.model_validate(written))
        self.input = self.service.settings.input.topics[0]
        self._file = folder / "settings.yaml"
        self._file.write_text(yaml.safe_dump(written))
        self._log = folder / "run.log"
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """A `twinsieve run` process begins."""
        command = [*_COMMAND, "run", "--member", "one", "-c", str(self._file)]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_S)

    def refusal(self) -> str:
        """Why the process ends by itself, with exit code 3: a new start would end so too."""
        assert self._process is not None
        process = self._process
        until(lambda: process.poll() is not None, self._log.read_text)
        said = self._log.read_text()
        assert process.returncode == 3, said
        (line,) = last_words(said)
        return line.replace(self.input, "input")

    def wait_for(self, uniques: int) -> None:
        """So many have come out, and the process lives."""
        assert self._process is not None
        process = self._process

        def out() -> bool:
            assert process.poll() is None, self._log.read_text()
            return self.service.count("out") == uniques

        until(out)

    def trim_input(self, before: int) -> None:
        """What retention does, at once."""
        (done,) = self._admin.delete_records([TopicPartition(self.input, 0, before)]).values()
        assert done.result().low_watermark == before

    def reset(self, target: str) -> None:
        """`twinsieve reset --to`, again and again while the group has its member of before."""
        command = ["reset", "-c", str(self._file), "--to", target, "--yes"]
        until(lambda: main(command) == 0)


@pytest.fixture
def operator(client: str, bootstrap: str, tmp_path: Path) -> Iterator[Operator]:
    made = Operator(client, bootstrap, tmp_path)
    yield made
    made.kill()
    made.service.end()


def test_a_topic_created_again_ends_a_run_and_every_next_one_until_a_reset(operator: Operator) -> None:
    operator.service.post(*POSTS[:3])
    operator.start()
    operator.wait_for(3)
    operator.service.make_input_again()
    operator.service.post(*POSTS[3:])
    running = operator.refusal()
    assert running.startswith("input[0]: ")
    assert "created again" in running
    assert "with `twinsieve reset`" in running
    # From here on in this process: a start of the program takes as much of a core as the rest.
    operator.service.start()
    # The broker forgets a group's offsets together with their topic: the log of blocks remembers it.
    assert str(until_ended(operator.service)).replace(operator.input, "input") == (
        "input[0]: the topic was deleted and created again since the app read it; "
        "set the offset to begin at with `twinsieve reset`"
    )
    assert operator.service.count("out") == 3
    operator.reset("earliest")
    operator.service.error = None
    operator.service.start()
    wait_for(lambda: operator.service.count("out") == 5, operator.service)
    operator.service.stop()
    assert operator.service.count("dup") == 0


def test_an_input_trimmed_beyond_the_committed_offset_ends_a_run(operator: Operator) -> None:
    operator.service.post(*POSTS[:2])
    operator.service.start()
    wait_for(lambda: operator.service.count("out") == 2, operator.service)
    operator.service.stop()
    operator.service.post(*POSTS[2:])
    operator.trim_input(4)
    operator.start()
    assert operator.refusal() == (
        "input[0]: retention deleted 2 messages from 2 on before they were judged; "
        "to go on without them set input.trimmed: continue, or restore them"
    )
    assert sorted(origins(operator.service.read("out"))) == [0, 1]
