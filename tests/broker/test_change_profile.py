"""The section "Change the profile" of OPERATIONS, run from the page on a real broker while messages come in."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.broker.services import Service, origins, value_of, written_settings
from tests.broker.worlds import fresh, read_all, until
from tests.docs.documents import blocks
from tests.logfmt import last_words
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.model import ExactSettings, NearSettings, Settings

_PROGRAM = [sys.executable, "-m", "twinsieve"]
_TIMEOUT_S = 120.0
_WORDS = (
    *("harbour", "ferry", "bridge", "market", "library", "station", "museum", "garden", "stadium", "airport"),
    *("closes", "opens", "floods", "moves", "reopens"),
)


def _post(number: int) -> str:
    """A post that is similar to no other one."""
    place, event = _WORDS[number % 10], _WORDS[10 + number // 10 % 5]
    return f"{place * 2} {fresh('x')[-8:]} {event} because {fresh('y')[-8:]} and {fresh('z')[-8:]} say so"


def _section(root: Path) -> str:
    page = (root / "docs" / "OPERATIONS.md").read_text("utf-8")
    return page.partition("\n## Change the profile\n")[2].partition("\n## ")[0]


def _run(words: list[str], *exit_codes: int) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode in (0, *exit_codes), done.stdout + done.stderr
    return done.stdout


@contextmanager
def _running(words: list[str]) -> Iterator[None]:
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=_TIMEOUT_S)
    assert process.returncode == 0, said


class _Output:
    """What came out of an app so far, as a consumer reads it: input offset and text."""

    def __init__(self, service: Service, written: Mapping[str, Any]) -> None:
        self._service = service
        self._output = written["output"]

    def kept(self) -> dict[int, str]:
        records = read_all(self._service.broker, Partition(self._output["topic"], 0))
        rows = origins(records)
        return {at: json.loads(records.values[row] or b"")["text"] for at, row in sorted(rows.items())}

    def dropped(self) -> list[dict[str, bytes | None]]:
        records = read_all(self._service.broker, Partition(self._output["duplicates"], 0))
        return [dict(headers) for headers in records.headers]

    def stage_of(self, offset: int) -> bytes | None:
        """The stage that dropped an input message; None if it was kept."""
        rows = origins(read_all(self._service.broker, Partition(self._output["duplicates"], 0)))
        return self.dropped()[rows[offset]]["twinsieve-stage"] if offset in rows else None

    def count(self) -> int:
        return len(self.kept()) + len(self.dropped())


def test_a_profile_is_changed_as_the_page_says(root: Path, tmp_path: Path, bootstrap: str) -> None:
    start, stop = blocks(_section(root), "sh")
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    was = written_settings("kafka-python", bootstrap, tmp_path / "state")
    app = was["app"]
    outputs = {key: f"{topic}2" for key, topic in was["output"].items()}
    now = {**was, "app": f"{app}2", "profile": "plain", "output": outputs}
    old.write_text(yaml.safe_dump(was))
    new.write_text(yaml.safe_dump(now))
    settings = Settings.model_validate(was)
    service = Service(settings)
    before, after = _Output(service, was), _Output(service, now)
    places = {"FILE": str(old), "NEW-FILE": str(new), "posts.unique": settings.output.topic}

    def commands(block: str, **more: str) -> list[list[str]]:
        lines = [shlex.split(line) for line in block.splitlines()]
        assert all(words[0] == "twinsieve" for words in lines)
        return [[*_PROGRAM, *({**places, **more}.get(word, word) for word in words[1:])] for words in lines]

    def post(*texts: str) -> None:
        service.produce(*[(b"k", value_of(text), []) for text in texts])

    first, second, third = ([_post(number) for number in range(count)] for count in (40, 20, 10))
    tagged = [(bare := _post(0)), f"#武汉# {bare}"]
    with ExitStack() as running:
        with _running([*_PROGRAM, "run", "-c", str(old), "--member", "old"]):
            post(*first)
            until(lambda: before.count() == 40)
            _is_refused([*_PROGRAM, "run", "-c", str(old), "--set", "profile=plain", "--member", "other"])
            seeded_at = datetime.now(UTC).isoformat(timespec="milliseconds")
            overlap = [_post(number) for number in range(5)]
            post(*overlap)
            until(lambda: before.count() == 45)
            *prepare, run = commands(start, **{"2024-05-08T12:00:00+08:00": seeded_at})
            for words in prepare:
                _run(words)
            running.enter_context(_running([*run, "--member", "new"]))
            post(*first[:20], *second, *tagged)
            until(lambda: before.count() == 87 and after.count() == 47)
        # The old app has stopped, the new one continues.
        (status,) = commands(stop)
        assert f"{service.settings.input.topics[0]}[0]" in _run(status, 3)
        (partition,) = json.loads(_run([*status, "--json"], 3))["inputs"]
        finished = partition["committed"]
        post(*first[20:], *second, *third)
        until(lambda: after.count() == 47 + 50)
    assert finished == 87
    both = before.kept().keys() & after.kept().keys()
    moved = [*before.kept().values(), *(text for at, text in after.kept().items() if at >= finished)]
    counted = Counter(moved)
    assert {text: counted[text] for text in (*first, *overlap, *second, *third)} == dict.fromkeys(
        (*first, *overlap, *second, *third), 1
    )
    assert max(counted.values()) == 1
    # The old profile removes a tag, the new one compares it.
    assert (before.stage_of(86), after.stage_of(86)) == (b"exact", b"near")
    near_h, exact_h = (_age_h(stage) for stage in (settings.near, settings.exact))
    again = sum(counted[text] > 1 for text in (*first, *overlap))
    twice = sum(number > 1 for number in counted.values())
    print(
        f"both apps ran while {finished - 45} messages came: {len(both)} are in both outputs, {twice} reach a "
        f"consumer twice that moves as the page says; of {45} posts kept before, {again} came out again; both "
        f"must run 0 h with a seed of all of them, without a seed {near_h:g} h (near) or {exact_h:g} h (exact)"
    )
    service.end()


def _age_h(stage: NearSettings | ExactSettings) -> float:
    assert stage.window.age_ms is not None
    return stage.window.age_ms / 3_600_000


def _is_refused(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 3, done.stderr
    assert "profile: was default, is plain" in last_words(done.stderr)[0]
