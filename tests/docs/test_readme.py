"""What the documents say can be typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, code_in, commands, name_of
from tests.generated_posts import generate
from twinsieve import Sieve
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.messages.fields import to_json

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


@pytest.mark.heavy
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
