"""Places with a saved state: one is forged, loaded, and judges on, in a process of its own.

A process of its own shows a crash (SIGSEGV) and a hang, and what memory a load takes.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from pydantic import SecretStr

from tests.crash.members import MESSAGES, Member, run, settings_at
from tests.crash.snapshot_steps import small_pieces
from tests.forged.forger import Forger
from tests.generated_posts import generate
from tests.service.test_changed_settings import deployment, posts
from twinsieve import Sieve
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.saved.signing import Signing
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact import trie
from twinsieve.stages.exact.trie import TierSizes
from twinsieve.stages.judge.scheme import Scheme

MORE = 60
HANGS_S = 60
MOST_BYTES = 700 << 20
"""Memory that a load may take: the states are of some hundred messages."""

_KEY = "0123456789abcdef" * 4

KINDS = {
    "index": ("segment", "piece", "bloom", "keys", "ledger", "files", "header", "sieve"),
    "index of a trie": ("tier", "head", "sieve"),
    "dedup": ("manifest", "piece", "entries", "rows", "sieve", "bloom"),
    "Sieve.save": ("near", "manifest", "sieve", "ids"),
    "Sieve.save of hamming": ("near", "sieve"),
    "Sieve.save of signatures": ("near",),
}
"""Kinds of files by place."""


class Outcome(NamedTuple):
    """What came of one forged file.

    how: "refused" with a line that names it, "used", or a broken promise: "crash", "hang", "wrong", "memory"
    did: what was changed; said: lines of the program
    """

    how: str
    did: str
    said: str


def small(patch: pytest.MonkeyPatch) -> None:
    """Pieces and tiers of some messages."""
    small_pieces(patch)
    patch.setattr(trie, "tier_sizes", lambda _: TierSizes(16, 4, 64))


class Place:
    """A state in a folder, and what judges on from a copy of it.

    go_on: loads the state in a folder and judges; returns the lines in which it refused something
    """

    def __init__(self, name: str, folder: Path, scheme: Scheme) -> None:
        self.template, self.work = folder / "template", folder / "work"
        self.signing = Signing([_KEY], app="t") if name == "index with a key" else None
        self.go_on: Callable[[], list[str]] = {
            "index": lambda: self._index(scheme, "bloom"),
            "index with a key": lambda: self._index(scheme, "bloom", key=_KEY),
            "index of a trie": lambda: self._index(scheme, "trie"),
            "dedup": self._dedup,
            "Sieve.save": lambda: self._sieve(near_window=300),
            "Sieve.save of hamming": lambda: self._sieve(near_method="hamming", near_window=300),
            "Sieve.save of signatures": lambda: self._sieve(near_method="signatures", near_window=300),
        }[name]()

    def play(self, kind: str, seed: int, *, alone: bool = False) -> Outcome:
        """Forge a file of a kind in a copy of the state, and go on from it in another process.

        alone: what names the file stays as it was
        """
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.template, self.work)
        inside = next((path.parent for path in sorted(self.work.rglob("*")) if path.is_file()), self.work)
        forger = Forger(inside, seed, self.signing)
        manifests = {path: path.read_bytes() for path in forger.manifests()}
        name = forger.forge(kind).name
        for path, content in manifests.items() if alone else ():
            path.write_bytes(content)
        how, said = _in_a_process(lambda: self.go_on())
        if forger.did.startswith(" near.rules"):
            # A digest of the right size is believed: it decides about nothing but this line.
            said = [line for line in said if "judged by other rules" not in line]
        if how == "" and said:
            how = "refused" if any(name in line or _names(line) for line in said) else "wrong"
            if any(line.startswith("WRONG") for line in said):
                how = "wrong"
        return Outcome(how or "used", f"{name}:{forger.did}", " | ".join(said)[:2000])

    def _index(self, scheme: Scheme, method: str, key: str | None = None) -> Callable[[], list[str]]:
        def settings(folder: Path, **state: object) -> Settings:
            made = settings_at(str(folder), method, segment=25)
            secret = None if key is None else SecretStr(key)
            return made.model_copy(update={"state": made.state.model_copy(update={"key": secret, **state})})

        before = list(posts(1, MESSAGES))
        twin = deployment(settings(self.template), scheme)
        twin.produce(iter([*before, *_alike(before), *posts(2, MORE)]))
        undisturbed = Member(twin, settings(self.template.parent / "other"), "one")
        run(twin, undisturbed)
        undisturbed.end()
        unbroken = twin.judged()
        world = deployment(settings(self.template), scheme)
        world.produce(iter(before))
        first = Member(world, settings(self.template), "one")
        run(world, first)
        first.end()
        world.clock.sleep(20.0)
        world.produce(iter([*_alike(before), *posts(2, MORE)]))
        world.notices.clear()
        old = world.judged()

        # A snapshot at the end alone.
        later = settings(self.work, snapshot_every_ms=3_600_000)

        def go_on() -> list[str]:
            member = Member(world, later, "one")
            run(world, member)
            member.end()
            said = [line for line in world.notices if "the exact window passed it" not in line]
            judged = world.judged()
            if said and judged != unbroken:
                said.append(f"WRONG: other verdicts than from the log {_differing(judged, unbroken)}")
            if {at: judged[at] for at in old} != old:
                said.append("WRONG: what was judged did not stay judged")
            return said

        return go_on

    def _dedup(self) -> Callable[[], list[str]]:
        self.template.mkdir(parents=True)
        lines = [orjson.dumps(message) for message in generate(900, seed=5)]
        one, two = self.template.parent / "one.jsonl", self.template.parent / "two.jsonl"
        one.write_bytes(b"\n".join(lines[:700]) + b"\n")
        two.write_bytes(b"\n".join(lines[500:]) + b"\n")

        def call(source: Path, folder: Path) -> tuple[int, str]:
            out = self.template.parent / "out"
            said = StringIO()
            files = ("-o", f"{out}.jsonl", "--duplicates", f"{out}.dropped")
            args = ("dedup", str(source), *files, "--state", str(folder / "state"), *SMALL)
            with redirect_stderr(said), redirect_stdout(StringIO()):
                code = main(list(args))
            return code, said.getvalue()

        code, said = call(one, self.template)
        assert code == 0, said

        def go_on() -> list[str]:
            code, said = call(two, self.work)
            lines = [line for line in said.splitlines() if line.startswith("twinsieve:")]
            if code not in (0, 1) or (code and len(lines) != 1):
                lines.append(f"WRONG: code {code}: {said}")
            return lines if code else []

        return go_on

    def _sieve(self, near_method: str = "text", near_window: int = 100) -> Callable[[], list[str]]:
        texts = list(posts(1, MESSAGES))
        settings = {
            "near": {"method": near_method, "window": {"messages": near_window}},
            "exact": {"window": {"messages": 500}},
        }
        sieve = Sieve(settings=settings)
        sieve.judge(texts, ids=list(range(len(texts))))
        self.template.mkdir(parents=True)
        sieve.save(self.template / "state")

        def go_on() -> list[str]:
            try:
                loaded = Sieve.load(self.work / "state")
            except StateError as error:
                return [str(error)] if "\n" not in str(error) else [f"WRONG: {error}"]
            for _ in range(3):
                loaded.judge([*_alike(texts), *posts(2, MORE)])
            return []

        return go_on


def _alike(texts: list[str]) -> list[str]:
    """Posts that find those in the window: the last ones again, and with another character."""
    return [text for each in texts[-60:] for text in (each, f"{each[:9]}山{each[10:]}")]


SMALL = (
    "--set", "near.window.messages=200", "--set", "exact.window.messages=300", "-q",
)  # fmt: skip


def _differing(one: dict[int, Kind], other: dict[int, Kind]) -> list[int]:
    return [at for at in sorted(one.keys() | other.keys()) if one.get(at) != other.get(at)][:9]


def _names(line: str) -> bool:
    """Whether a line names a place: a file of the state, its manifest, or the snapshot that failed."""
    words = (".snapshot", "snapshot cannot be written", ".piece", ".part", ".segment", "state", "leaders-")
    return any(word in line for word in words)


def _in_a_process(work: Callable[[], list[str]]) -> tuple[str, list[str]]:
    """("", lines that `work` returned), or a broken promise and what is known of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.alarm(HANGS_S)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        try:
            how, said = "", work()
        except BaseException as error:  # noqa: BLE001 (whatever it is, it would have ended the program)
            where = "; ".join(
                f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-5:]
            )
            how, said = "raised", [f"{type(error).__name__}: {error} ({where})"]
        took = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if took > MOST_BYTES:
            how, said = "memory", [f"{took >> 20} MiB", *said]
        with os.fdopen(writing, "wb") as stream:
            stream.write(orjson.dumps((how, said)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        told = stream.read()
    _, status = os.waitpid(child, 0)
    if told:
        how, said = orjson.loads(told)
        return how, said
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGALRM:
        return "hang", [f"{HANGS_S} s"]
    return "crash", [signal.Signals(number).name if number else f"status {status}"]
