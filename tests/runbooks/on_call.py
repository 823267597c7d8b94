"""Somebody on call: an app of real processes on a real broker, and who runs the commands of a page as they stand."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from tests.broker.deployment import Deployment, poll_until
from tests.broker.distribution import TOOLS, tools_path
from tests.broker.server import free_ports
from tests.broker.stranger import delete_topics, produce
from tests.broker.worlds import fresh, read_all
from tests.deploy.scraping import Prometheus
from tests.runbooks.pages import Command, alert_of, commands, questions
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings

_DEADLINE_S = 120.0
_COMMAND_S = 120.0
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_FAILED = "(failed)"
_SCRAPED_S = 12.0
_FIRES_S = 120.0
_LASTS_S = {"SettingsDiffer": 15 * 60.0}
"""How long a state lasts before it is no change that is on its way."""
_CLEARS_S = 180.0
_COUNTED_S = dict.fromkeys(
    ("MessagesLost", "SnapshotsFail", "DeadLetters", "ForeignConsumer", "Restarts"), 10 * 60.0
)
"""What happened within this time is counted, so the alert stays on for as long after the last event."""


class OnCall:
    """An app with processes of its own, by member name, and what stands for each word of a page.

    alerts: scrapes the processes; then nobody looks before the alert of a page fires, and it has to clear
    app: its name (a new one); deployment: further arguments of Deployment
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        alerts: Prometheus | None = None,
        *,
        app: str = "",
        partitions: int = 1,
        **deployment: object,
    ) -> None:
        self._alerts = alerts
        self._ports: dict[str, int] = {}
        self.deployment = Deployment(
            bootstrap,
            app or fresh("page"),
            partitions=partitions,
            **deployment,  # type: ignore[arg-type]
        )
        self.bootstrap = bootstrap
        self.posts = 0
        self.words: dict[str, str] = {}
        self.name(FILE=self.deployment.file, STATE=self.deployment.folder / "state")
        self.name(**{"KAFKA:9092": bootstrap})
        self._programs = folder / "bin"
        self._programs.mkdir()
        self._write_program("twinsieve", f'exec {shlex.quote(sys.executable)} -m twinsieve "$@"')

    def name(self, **words: object) -> None:
        """From now on, these words of a page stand for that."""
        self.words |= {word: str(value) for word, value in words.items()}

    def start(
        self, role: str, member: str = "", sets: Sequence[str] = (), program: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a process; pages then call it by its role. program: its command line, if it is another one"""
        name = member or role
        port = self._ports.get(name) or free_ports(1)[0]
        listen = f"127.0.0.1:{port}"
        process = self.deployment.start(name, role, listen=listen, program=program, sets=sets)
        self.watch(port, name)
        for each in ("worker", "index", "shard"):
            if role in (each, "both") and (role != "both" or each != "shard"):
                self.name(**{f"{each.upper()}:8080": f"127.0.0.1:{port}"})
        return process

    def move(self, bootstrap: str) -> None:
        """From now on, commands, posts and processes are those of another cluster."""
        self.bootstrap = bootstrap
        self.name(**{"KAFKA:9092": bootstrap})
        self.deployment.set("kafka", bootstrap=bootstrap)

    def watch(self, port: int, name: str) -> None:
        """The Prometheus scrapes this port too. name: of the process"""
        self._ports[name] = port
        if self._alerts is not None:
            self._alerts.scrape(self._ports.values())

    def post(self, *texts: str, partition: int = 0) -> None:
        """Write posts to the input, in one partition."""
        topic = f"{self.deployment.app}.in"
        produce(self.bootstrap, topic, *(text.encode() for text in texts), partition=partition)
        self.posts += len(texts)

    def trim(self, topic: str) -> None:
        """All records are deleted that the first partition of a topic of the app, named without it, has."""
        broker = KafkaBroker(KafkaSettings(bootstrap=self.bootstrap))
        admin, at = broker.admin(), Partition(f"{self.deployment.app}.{topic}", 0)
        admin.delete_records(admin.end_offsets([at]))
        broker.close()

    def delete(self, *topics: str) -> None:
        """Somebody deletes these topics of the app, named without it."""
        delete_topics(self.bootstrap, *(f"{self.deployment.app}.{name}" for name in topics))

    def came_out(self) -> int:
        """Number of messages in the output."""
        broker = KafkaBroker(KafkaSettings(bootstrap=self.bootstrap))
        try:
            return len(read_all(broker, Partition(f"{self.deployment.app}.out", 0)))
        finally:
            broker.close()

    def look(self, name: str, *, by_tree: bool = False) -> None:
        """Run what a page says to look at, once its alert fires; each must say what stands there.

        by_tree: then the decision tree for "nothing comes out" has to lead to this page
        """
        self._wait_for_alert(name, fires=True)
        self._run(commands(name, "Look"))
        if by_tree:
            assert name in self.find_page()

    def find_page(self) -> list[str]:
        """The pages to which the decision tree for "nothing comes out" leads now."""
        say = functools.cache(self.say)
        for question in questions():
            if all(self._filled(each) in say(asked.line) for asked in question.asked for each in asked.shows):
                return question.leads_to
        return ["no answer is yes"]

    def do(self, name: str) -> None:
        """Run what a page says to do."""
        self._run(commands(name, "Do"))

    def see_the_end(self, name: str) -> None:
        """Run what a page says to look at when it is over; then its alert clears."""
        self._run(commands(name, "It is over"))
        self._wait_for_alert(name, fires=False)

    def _wait_for_alert(self, name: str, *, fires: bool) -> None:
        server, alert = self._alerts, alert_of(name)
        if server is None or alert is None:
            return
        began_s = time.monotonic()
        # What was there before is scraped at least once.
        time.sleep(_SCRAPED_S)
        kind = alert.removeprefix("Twinsieve")
        limit_s = _LASTS_S.get(kind, 0.0) + _FIRES_S if fires else _COUNTED_S.get(kind, 0.0) + _CLEARS_S
        assert poll_until(lambda: (alert in server.firing()) == fires, limit_s), (alert, server.firing())
        print(f"{alert} {'fires' if fires else 'is off'} after {time.monotonic() - began_s:.0f} s")

    def follow(self, name: str, *, by_tree: bool = False) -> None:
        """The whole page. by_tree: as in `look`"""
        self.look(name, by_tree=by_tree)
        self.do(name)
        self.see_the_end(name)

    def _run(self, listed: Iterable[Command]) -> None:
        for command in listed:
            line = self._filled(command.line)
            if line.startswith("twinsieve run ") and "--dry-run" not in line:
                words = shlex.split(line)
                role = words[words.index("--role") + 1] if "--role" in words else "both"
                sets = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
                before = self.deployment.processes.get(role)
                has_ended = before is not None and before.poll() is not None
                self.start(role, member=role if has_ended else f"{role}{time.monotonic_ns()}", sets=sets)
                continue
            deadline_s = time.monotonic() + _DEADLINE_S
            while not self._shows(said := self.say(line), command.shows):
                assert time.monotonic() < deadline_s, f"{line}\nshould show {command.shows}, and says\n{said}"
                time.sleep(0.5)

    def _shows(self, said: str, wanted: Sequence[str]) -> bool:
        """A command that says nothing of what it shows has to succeed."""
        if not wanted:
            return _FAILED not in said
        return all(self._filled(each) in said for each in wanted)

    def _filled(self, line: str) -> str:
        app = self.deployment.app
        of_topics = {
            "posts.unique": f"{app}.out",
            "posts.duplicates": f"{app}.dup",
            "posts.dead": f"{app}.dead",
            "weibo.": f"{app}.",
            "weibo2": f"{app}2",
            "posts": f"{app}.in",
        }
        words = self.words | of_topics
        pattern = "|".join(
            rf"(?<![\w-]){re.escape(word)}" + (r"\b" if word[-1].isalnum() else "") for word in words
        )
        return re.sub(pattern, lambda found: words[found[0]], line)

    def say(self, line: str) -> str:
        """What a line of a page says, on both streams."""
        line = self._filled(line)
        for tool, class_name in TOOLS.items():
            if tool in line:
                self._write_program(tool, f'exec java {_QUIET} -cp "{tools_path()}" {class_name} "$@"')
        environment = os.environ | {"PATH": f"{self._programs}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=_COMMAND_S,
            check=False,
            text=True,
        )
        return done.stdout if done.returncode == 0 else f"{done.stdout}{_FAILED}"

    def _write_program(self, name: str, command: str) -> None:
        path = self._programs / name
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.deployment.close()
