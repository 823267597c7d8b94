"""What the documents say can be typed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.calling import setting
from tests.docs.documents import DOCUMENTS, code_in, commands, name_of
from twinsieve import Sieve
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.messages.fields import to_json
from twinsieve.pipeline.tools.generate.stream import generate
from twinsieve.pipeline.wire.headers import (
    DISTANCE,
    KEPT_APART,
    LEADER,
    NOTE,
    ORIGIN,
    REASON,
    REFUSAL,
    SHARED,
    SIMILARITY,
    STAGE,
)

_ON_KAFKA = {"run", "topics", "reset", "seed", "status"}


def _on_files(page: Path) -> list[list[str]]:
    """Commands that need no broker and name their files; those with `FILE` are parsed by test_operations.py."""
    return [
        words for words in commands(page, "twinsieve") if words[1] not in _ON_KAFKA and "FILE" not in words
    ]


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_make_knows_the_targets_that_a_page_names(root: Path, page: Path) -> None:
    makefile = (root / "Makefile").read_text("utf-8")
    for target in re.findall(r"\bmake ([a-z][a-z-]*)\b", " ".join(code_in(page.read_text("utf-8")))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_modules_and_options_that_a_page_names_exist(root: Path, page: Path) -> None:
    """As `python -m bench.exact_trie --look-ups`: nothing is measured, the source has the option."""
    for code in code_in(page.read_text("utf-8")):
        for module, rest in re.findall(r"\b((?:bench|scripts|tests)(?:\.[a-z_]+)+)((?: [^\s`]+)*)", code):
            path = root.joinpath(*module.split("."))
            if path.suffix == ".py":
                assert path.exists(), code
                continue
            source = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
            assert source.exists(), code
            for option in re.findall(r"--[a-z-]+", rest):
                assert f'"{option}"' in source.read_text("utf-8"), code


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_extras_that_a_page_installs_exist(root: Path, page: Path) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for names in re.findall(r"install '\.\[([a-z,]+)\]'", page.read_text("utf-8")):
        assert set(names.split(",")) <= set(extras)


@pytest.mark.parametrize(
    "page",
    # Those of the tour are run by test_tour.py.
    [page for page in DOCUMENTS if _on_files(page) and page.name != "TOUR.md"],
    ids=name_of,
)
def test_the_commands_of_a_page_run(
    page: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In one folder with the files that pages name: later commands may read what earlier ones wrote."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(root / "config")
    posts = [to_json(post) for post in generate(300, seed=1)]
    (tmp_path / "posts").mkdir()
    for name in ("posts.jsonl", "monday.jsonl", "tuesday.jsonl", "posts/1.jsonl"):
        (tmp_path / name).write_bytes(b"\n".join(posts) + b"\n")
    (tmp_path / "posts.csv").write_text("id,text\n1,一条很短的消息\n", "utf-8")
    for words in _on_files(page):
        code = main(words[1:])
        printed = capfd.readouterr()
        assert code == 0, f"{words}: {printed.err}"


def test_the_example_of_the_readme_is_what_the_default_settings_do(root: Path) -> None:
    rows = re.findall(
        r"^\| (\d) \| (.*?) \| (.*?) \|$", (root / "README.md").read_text("utf-8"), re.MULTILINE
    )
    texts = [text for _, text, _ in rows]
    sieve = Sieve()
    verdicts = sieve.judge(texts)
    for verdict, (number, _, result) in zip(verdicts, rows, strict=True):
        assert int(number) == verdict.position + 1
        leader = "" if verdict.leader is None else f" copy of {verdict.leader + 1}"
        if verdict.stage == "near":
            leader += f", similarity {verdict.similarity:.4f}"
        if verdict.apart_from is not None:
            similarity = sieve.similarity(texts[verdict.apart_from], texts[verdict.position])
            leader = f": similarity to {verdict.apart_from + 1} is {similarity:.4f}, but"
        assert result.startswith(("kept" if verdict.kept else verdict.stage) + leader), result


def test_the_table_of_headers_names_all_there_are(root: Path) -> None:
    page = (root / "docs" / "OPERATIONS.md").read_text("utf-8")
    table = page.partition("## What comes out")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(twinsieve-[a-z-]+)[:`]", table))
    assert named == {ORIGIN, REASON, REFUSAL, STAGE, LEADER, SIMILARITY, DISTANCE, SHARED, NOTE, KEPT_APART}


def test_the_table_of_headers_shows_those_of_the_first_posts(root: Path) -> None:
    """A test on a real broker prints these again."""
    printed = set(re.findall(r"(twinsieve-[a-z]+):([^,\s]+)", (root / "README.md").read_text("utf-8")))
    page = (root / "docs" / "OPERATIONS.md").read_text("utf-8")
    shown = dict(
        re.findall(
            r"`(twinsieve-[a-z]+): ([^`]+)`", page.partition("## What comes out")[2].partition("\n## ")[0]
        )
    )
    assert {(name, shown[name]) for name in (ORIGIN, REASON, STAGE, LEADER, SIMILARITY)} <= printed


@pytest.mark.parametrize(
    ("settings", "apart"),
    [((), False), (setting("exact.fields=text"), True), (setting("scope=picture"), True)],
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
        (setting("scope=picture"), True),
        (setting("exact.fields=text,picture", "near.method=text"), True),
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
