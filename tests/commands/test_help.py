"""`--help`: quick, and with examples that can be typed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from tests.calling import Run
from tests.generated_posts import generate
from twinsieve.pipeline.commands.cli import cli, main
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.pipeline.settings.examples import example_bytes

_ON_KAFKA = ("run", "seed", "reset", "status", "topics")
_NAMES = list(cli.list_commands(click.Context(cli)))


def test_no_help_loads_a_kernel(root: Path) -> None:
    code = (
        "import sys\n"
        "from twinsieve.pipeline.commands.cli import main\n"
        f"for name in {_NAMES}:\n"
        "    assert main([name, '--help']) == 0\n"
        "    assert not {'numba', 'llvmlite', 'jieba'}.intersection(sys.modules), name\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def _examples(run: Run, name: str) -> list[str]:
    _, _, lines = run(name, "--help").out.partition("\n  Examples:\n")
    return [line.strip() for line in lines.splitlines()]


@contextmanager
def _stdout_to(name: str | None) -> Iterator[None]:
    """What a shell does with `> name`."""
    if name is None:
        yield
        return
    ran_in = sys.stdout
    with Path(name).open("w", encoding="utf-8") as stream:
        sys.stdout = stream
        try:
            yield
        finally:
            sys.stdout = ran_in


@pytest.mark.heavy
@pytest.mark.parametrize("name", [name for name in _NAMES if name not in _ON_KAFKA])
def test_the_examples_run(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    posts = list(generate(60, seed=1))
    monkeypatch.chdir(tmp_path)
    Path("posts").mkdir()
    for file in ("posts.jsonl", "monday.jsonl", "posts/1.jsonl"):
        Path(file).write_bytes(b"".join(to_json(post) + b"\n" for post in posts))
    Path("posts.csv").write_text("id,text\n1,a very short post\n", "utf-8")
    Path("posts.txt").write_text("one line\nanother line\none more line\n", "utf-8")
    Path("pairs.tsv").write_text(
        f"later\tearlier\tsimilarity\tkind\n{posts[1]['id']}\t{posts[0]['id']}\t0.9\tnear\n"
    )
    Path("labels.tsv").write_text(f"later_id\tearlier_id\tlabel\n{posts[1]['id']}\t{posts[0]['id']}\tsame\n")
    Path("my.yaml").write_bytes(example_bytes("microblog"))
    Path("cases.yaml").write_text("cases: [{name: one, in: [a text of one], out: [unique]}]")
    if name in ("audit", "why"):
        outputs = ("-o", "unique.jsonl", "--duplicates", "dropped.jsonl", "--kept-apart", "apart.jsonl")
        run("dedup", "posts.jsonl", *outputs)
    for line in _examples(run, name):
        if "kafka.yaml" in line:
            continue  # test_the_examples_on_kafka_are_understood
        words, _, into = line.partition(" > ")
        with _stdout_to(into or None):
            code = main(shlex.split(words)[1:])
        assert code == 0, line


@pytest.mark.parametrize("name", [*_ON_KAFKA, "audit", "why"])
def test_the_examples_on_kafka_are_understood(run: Run, name: str) -> None:
    for line in _examples(run, name):
        _parse(cli, shlex.split(line)[1:])


def _parse(command: click.Command, words: list[str]) -> None:
    """Fail where click would; nothing is called."""
    context = command.make_context("twinsieve", list(words), resilient_parsing=False)
    if isinstance(command, click.Group):
        rest: list[Any] = [*context._protected_args, *context.args]
        _, below, left = command.resolve_command(context, rest)
        assert below is not None
        _parse(below, left)
