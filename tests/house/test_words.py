"""What the sources may not hold: leftovers, skipped tests, private places, modules without a subject."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

_LEFTOVERS = re.compile(r"\b(?:T[O]DO|FIX[M]E|X[X]X|H[A]CK)\b")
"""Each with a letter in brackets, so that this file is looked at like any other."""
_SKIPS = re.compile(r"\bpytest\.(?:s[k]ip|imp[o]rtorskip|x[f]ail)\b|\bmark\.(?:s[k]ip|s[k]ipif|x[f]ail)\b")
_PLACES = re.compile(
    r"(?<![\w.])/(?:work|root|home)/|https?://(?!t\.cn|weibo\.|www\.apache|keepachangelog)[^\s/]*\b(?:local|internal|registry|mirror)\b"
)
_BESIDE = re.compile(r"\.\./sh[a]red")
_TEXT = frozenset({".py", ".md", ".toml", ".yaml", ".yml", ".lock", ".xml", ".txt", ""})


def _tracked(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if listed.returncode:
        return [
            path for path in root.rglob("*") if path.is_file() and not {".venv", ".git"} & set(path.parts)
        ]
    return [root / name for name in listed.stdout.decode().split("\0") if name and (root / name).is_file()]


@pytest.fixture(scope="session")
def sources(root: Path) -> dict[str, str]:
    """Every text file of the project by its name."""
    return {
        str(path.relative_to(root)): path.read_text("utf-8")
        for path in _tracked(root)
        if path.suffix in _TEXT and path.name != "LICENSE"
    }


def _found(sources: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for name, text in sources.items()
        for match in pattern.finditer(text)
    ]


def test_there_is_something_to_look_at(sources: dict[str, str]) -> None:
    assert {"pyproject.toml", "Makefile", "stages/contract.py", "README.md"} <= set(sources)


def test_nothing_is_left_for_later(sources: dict[str, str]) -> None:
    assert _found(sources, _LEFTOVERS) == []


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"])
def test_a_leftover_is_found_where_it_stands(word: str) -> None:
    assert _found({"a.py": f"x = 1\n# {word}: later"}, _LEFTOVERS) == [f"a.py:2: {word}"]


def test_no_test_skips_itself(sources: dict[str, str]) -> None:
    """What a test needs and cannot get stands in tests/needs.py, which alone skips it, or fails it in CI."""
    others = {name: text for name, text in sources.items() if name != "tests/needs.py"}
    assert _found(others, _SKIPS) == []


def test_no_private_place_is_named(sources: dict[str, str]) -> None:
    assert _found(sources, _PLACES) == []


def test_only_ci_knows_a_folder_beside_the_checkout(sources: dict[str, str]) -> None:
    assert not {name for name, text in sources.items() if _BESIDE.search(text)} - {".ci/run"}


def test_no_module_is_a_drawer(sources: dict[str, str]) -> None:
    assert not [name for name in sources if Path(name).stem in {"utils", "helpers", "common", "misc", "util"}]


def test_every_module_of_the_program_says_what_it_is(sources: dict[str, str]) -> None:
    silent = [
        name
        for name, text in sources.items()
        if name.startswith(("stages/", "pipeline/", "twinsieve/", "bench/"))
        and name.endswith(".py")
        and text
        and not text.startswith(('"""', 'r"""'))
    ]
    assert not silent, silent


_DIALECT = re.compile(
    r'"""(?:N[o]thing;|As `p[o]rts)|\b_?(?:M[O]ST|L[A]RGEST|L[O]NGEST)(?:_[A-Z]\w*)?\b|\bso (?:m[a]ny|l[o]ng|o[f]ten)\b'
)
"""Turns of phrase that a reader takes three times; each with a letter in brackets, as above."""


def test_sources_are_written_in_the_terms_of_the_field(sources: dict[str, str]) -> None:
    code = {name: text for name, text in sources.items() if name.endswith((".py", ".yaml"))}
    assert _found(code, _DIALECT) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('    """Noth' + 'ing; the file is closed."""', ['"""Noth' + "ing;"]),
        ('    """As `po' + 'rts.Reader.poll`."""', ['"""As `po' + "rts"]),
        ("MO" + "ST_BYTES = 5", ["MO" + "ST_BYTES"]),
        ("_LONG" + "EST = 5", ["_LONG" + "EST"]),
        ("# waits so l" + "ong", ["so l" + "ong"]),
        ('    """Nothing is left."""\nMAX_BYTES = 1  # as long as', []),
    ],
)
def test_a_turn_of_phrase_is_found(line: str, found: list[str]) -> None:
    assert [match[0] for match in _DIALECT.finditer(line)] == found
