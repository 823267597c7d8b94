"""What users are told to do works, or is at least something they can do."""

from __future__ import annotations

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
