"""What the documents say can be typed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.generate.stream import generate
from twinsieve.pipeline.messages.fields import to_json
from twinsieve.pipeline.worker.emit import (
    DISTANCE,
    KEPT_APART,
    LEADER,
    NOTE,
    ORIGIN,
    REASON,
    SIMILARITY,
    STAGE,
)

_BLOCK = re.compile(r"^```(?P<kind>[a-z]*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(root: Path, kind: str) -> list[str]:
    return [
        match["text"]
        for match in _BLOCK.finditer((root / "README.md").read_text("utf-8"))
        if match["kind"] == kind
    ]


def _commands(root: Path) -> list[str]:
    """Lines of `sh` blocks, continuations joined, comments dropped."""
    lines = "".join(_blocks(root, "sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def test_make_knows_the_targets_that_documents_name(root: Path) -> None:
    makefile = (root / "Makefile").read_text("utf-8")
    for name in ("README.md", "CONTRIBUTING.md"):
        named = set(
            re.findall(
                r"\bmake ([a-z]+)\b(?=[`\s])",
                " ".join(re.findall(r"`[^`]+`|```.*?```", (root / name).read_text("utf-8"), re.DOTALL)),
            )
        )
        for target in named:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{name}: make {target}"


def test_the_commands_of_the_readme_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Commands on files run in a folder with the files they name; `make` and Kafka have tests of their own."""
    commands = [line for line in _commands(root) if line.startswith("twinsieve ")]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(root / "config")
    posts = [to_json(post) for post in generate(300, seed=1)]
    (tmp_path / "posts").mkdir()
    for name in ("posts.jsonl", "monday.jsonl", "tuesday.jsonl", "posts/1.jsonl"):
        (tmp_path / name).write_bytes(b"\n".join(posts) + b"\n")
    (tmp_path / "posts.csv").write_text("id,text\n1,一条很短的消息\n", "utf-8")
    (tmp_path / "pairs.tsv").write_text("later\tearlier\tsimilarity\tkind\n" + _pair(posts))
    for command in commands:
        words = shlex.split(command)
        if words[1] in ("run", "topics", "reset", "seed"):
            continue
        code = main(words[1:])
        said = capfd.readouterr()
        assert code == 0, f"{command}: {said.err}"


def test_the_headers_that_the_readme_names_are_all_there_are(root: Path) -> None:
    named = set(re.findall(r"`(twinsieve-[a-z-]+)[:`]", (root / "README.md").read_text("utf-8")))
    assert named == {ORIGIN, REASON, STAGE, LEADER, SIMILARITY, DISTANCE, NOTE, KEPT_APART}


@pytest.mark.parametrize(
    ("settings", "apart"),
    [
        ((), False),
        (("--set", "exact.fields=text"), True),
        (("--set", "scope=picture"), True),
    ],
)
def test_what_the_limits_say_of_links_holds_and_can_be_changed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], settings: tuple[str, ...], apart: bool
) -> None:
    rows = [
        {"text": "The bridge over the river is closed until Friday https://t.example/a1", "picture": "a"},
        {"text": "The bridge over the river is closed until Friday https://t.example/b2", "picture": "b"},
        {"text": "The bridge over the river is closed until Friday @bob", "picture": "c"},
    ]
    assert _kept(tmp_path, rows, settings) == (3 if apart else 1), capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "apart"),
    [
        ((), False),
        (("--set", "scope=picture"), True),
        (("--set", "exact.fields=text,picture", "--set", "near.method=text"), True),
    ],
)
def test_what_the_limits_say_of_empty_texts_holds_and_can_be_changed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], settings: tuple[str, ...], apart: bool
) -> None:
    rows = [{"text": "", "picture": name} for name in "abc"]
    assert _kept(tmp_path, rows, settings) == (3 if apart else 1), capfd.readouterr().err


def _kept(folder: Path, rows: list[dict[str, str]], settings: tuple[str, ...]) -> int:
    (folder / "in.jsonl").write_bytes(b"".join(to_json(row) + b"\n" for row in rows))
    out = folder / "out.jsonl"
    assert main(["dedup", "-q", str(folder / "in.jsonl"), "-o", str(out), *settings]) == 0
    return len(out.read_bytes().splitlines())


def _pair(posts: list[bytes]) -> str:
    import orjson

    first, second = (orjson.loads(post)["id"] for post in posts[:2])
    return f"{second}\t{first}\t0.9000\tnear\n"


def test_the_command_line_starts_as_an_installed_script_would(root: Path) -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from twinsieve.pipeline.commands.cli import main; sys.exit(main())",
            "--help",
        ],
        capture_output=True,
        text=True,
        cwd=root,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert "dedup" in ran.stdout


def test_ci_calls_what_a_user_would_call(root: Path) -> None:
    script = (root / ".ci" / "run").read_text("utf-8")
    assert os.access(root / ".ci" / "run", os.X_OK)
    assert script.rstrip().endswith("exec make test")
