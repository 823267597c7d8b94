"""What users are told to do works, or is at least something they can do."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.calling import SMALL, Run, setting


def test_a_section_is_set_as_a_message_shows_it(tmp_path: Path, run: Run) -> None:
    """The message of a state under another layout shows such a line to copy."""
    source, state = tmp_path / "in.jsonl", tmp_path / "state"
    source.write_text('{"text": "a row"}\n')
    call = ("dedup", "-q", source, "--state", state, *SMALL)
    assert run(*call, "-o", tmp_path / "a").code == 0
    layout = "near.layout={bands: 36, rows: 3}"
    refused = run(*call, "-o", tmp_path / "b", *setting(layout))
    shown = refused.err.partition("written with ")[2].partition(", the configuration says ")
    assert refused.code == 1
    assert shown[0].startswith("near.layout={bands: 28, rows: 3")
    assert "near.layout={bands: 36, rows: 3" in shown[2]
    (tmp_path / "more.jsonl").write_text('{"text": "another row"}\n')
    files = (tmp_path / "more.jsonl", "-o", tmp_path / "c", "--state", state)
    again = run("dedup", "-q", *files, *SMALL, *setting(shown[0]))
    assert (again.code, again.err) == (0, "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("near.layout={bands: 36, row: 3}", "--set near.layout: unknown key 'near.layout.row'; did you mean 'rows'?"),
        ("near.layout=5", "--set near.layout: near.layout holds other keys; name one, as near.layout.bands"),
        ("near={window: {messages: x}}", "--set near: near.window.messages is 'x'"),
        ("near.layout={bands: 36", "--set near.layout: "),
    ],
)  # fmt: skip
def test_a_section_that_is_set_wrongly_is_told_by_its_key(run: Run, given: str, said: str) -> None:
    ran = run("dedup", "in.jsonl", *setting(given))
    assert (ran.code, ran.err.splitlines()[0].startswith(said)) == (2, True), ran.err


@pytest.mark.parametrize("name", ["x.xlsx", "x.csv", "x"])
def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path: Path, run: Run, name: str) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    said = ("--format", "csv") if name == "x" else ()
    ran = run("dedup", "-q", tmp_path / name, "-o", tmp_path / "out", *said, *SMALL)
    assert ran.code in (1, 2)
    assert "save it as CSV in UTF-8 first" in ran.err
    assert "unzip" not in ran.err


@pytest.mark.parametrize("option", ["-o", "--duplicates", "--state", "--stats"])
def test_an_output_in_a_folder_that_is_not_there_names_the_folder(
    tmp_path: Path, run: Run, option: str
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a row"}\n')
    output = tmp_path / "no such" / "x" / "output"
    ran = run("dedup", "-q", source, option, output, *SMALL)
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"twinsieve: {output}: cannot be written: there is no folder {output.parent}; ")
    assert line.endswith(f"mkdir -p '{output.parent}'")


def test_a_key_that_is_indented_wrongly_is_said_in_plain_words(tmp_path: Path, run: Run) -> None:
    settings = tmp_path / "b.yaml"
    settings.write_text("near:\n  similarity: 0.9\n method: text\n")
    ran = run("dedup", "-c", settings)
    said = "the line is not indented like the others of its section; give keys of one section one indent"
    assert (ran.code, ran.err) == (2, f"{settings}:3:2: {said}\n")
    settings.write_text("near: similarity: 0.9\n")
    assert "not indented like" not in run("dedup", "-c", settings).err


@pytest.mark.parametrize("first", ["a\tb\n", "later_id\tearlier_id\tlabel\n", ""])
def test_a_file_that_holds_no_pairs_says_which_columns_it_must_have(
    tmp_path: Path, run: Run, first: str
) -> None:
    posts, pairs = tmp_path / "in.jsonl", tmp_path / "pairs.tsv"
    posts.write_text('{"id": 1, "text": "a row"}\n')
    pairs.write_text(first)
    ran = run("evaluate", posts, pairs)
    assert ran.code == 2
    said = "its first line must name the columns later, earlier, similarity, kind, with tabs between"
    assert said in ran.err
    assert ("--judged FILE" in ran.err) == ("label" in first)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--threshold", "--similarity SHARE"),
        ("--sep", "--delimiter CHAR"),
        ("--jobs", "--threads N"),
        ("--no-header", "CSV with a header"),
    ],
)
def test_an_option_of_other_tools_leads_to_ours(run: Run, given: str, said: str) -> None:
    ran = run("dedup", "in.csv", f"{given}=5")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"twinsieve dedup: no option {given}; use {said}")
    assert "use" not in run("dedup", "in.csv", "--nothing-like-it").err


def test_short_and_long_ask_for_the_version(run: Run) -> None:
    assert run("-V") == run("--version")
    assert run("-V").code == 0


def test_the_flag_threads_sets_the_key(run: Run) -> None:
    shown = run("lint", "--show", "--threads", "3").out
    (line,) = [line for line in shown.splitlines() if line.startswith("near.threads")]
    assert line.split()[1] == "3"
    refused = run("dedup", "in.jsonl", "--threads", "no")
    assert (refused.code, refused.err.startswith("--threads: near.threads is 'no'")) == (2, True)


def test_explain_says_what_its_signs_mean(run: Run) -> None:
    nine = "The ferry leaves at nine today, do not be late."
    out = run("explain", nine, nine.replace("nine", "ten"), *SMALL).out
    assert "[nine|ten]!" in out
    assert "[earlier|later]; ! where it decides" in out
