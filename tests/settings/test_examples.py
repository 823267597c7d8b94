"""Example settings come with the program, and a wrong name of one is met with the right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calling import Run
from twinsieve.pipeline.settings.examples import example_names
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.stages.judge.batch_sieve import worst_case_bytes


def test_the_list_names_every_file_of_the_folder_and_its_first_line(root: Path, run: Run) -> None:
    ran = run("config", "list")
    assert (ran.code, ran.err) == (0, "")
    listed = dict(line.split(maxsplit=1) for line in ran.out.splitlines())
    assert listed == {
        path.stem: path.read_text("utf-8").splitlines()[0].removeprefix("# ")
        for path in (root / "config").glob("*.yaml")
    }
    assert all(about.endswith(".") for about in listed.values()), "an example begins with one whole sentence"


@pytest.mark.parametrize("name", example_names())
def test_what_is_shown_is_the_file_lints_and_needs_less_than_4_gib(
    root: Path, tmp_path: Path, run: Run, name: str
) -> None:
    ran = run("config", "show", name)
    assert (ran.code, ran.err) == (0, "")
    mine = tmp_path / "my.yaml"
    mine.write_text(ran.out, "utf-8")
    assert mine.read_bytes() == (root / "config" / f"{name}.yaml").read_bytes()
    assert run("lint", mine).code == 0
    held = worst_case_bytes(sieve_config(load_settings(mine), ""))
    assert sum(held.values()) < 4 << 30


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("kafak", "no example 'kafak'; did you mean 'kafka'?"),
        ("Production.yaml", "no example 'Production.yaml'; did you mean 'production'?"),
        ("../kafka", "no example '../kafka'; did you mean 'kafka'?"),
        ("x", f"no example 'x'; there are {', '.join(example_names())}"),
    ],
)
def test_an_unknown_example_is_misuse(run: Run, given: str, said: str) -> None:
    ran = run("config", "show", given)
    assert (ran.code, ran.out, ran.err) == (2, "", f"twinsieve: {said}\n")


@pytest.mark.parametrize("given", ["kafka", "kafka.yaml", "config/kafka.yaml"])
def test_a_missing_settings_file_with_an_examples_name_leads_to_the_example(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("dedup", "posts.jsonl", "-c", given)
    advice = "to get the example: twinsieve config show kafka > kafka.yaml"
    assert (ran.code, ran.err) == (2, f"{given}:1:1: cannot be read (No such file or directory); {advice}\n")


def test_another_missing_settings_file_leads_to_no_example(run: Run, tmp_path: Path) -> None:
    missing, folder = tmp_path / "mine.yaml", tmp_path / "kafka.yaml"
    folder.mkdir()
    for given in (missing, folder):
        assert run("lint", given).out.endswith("; name a readable file\n")


@pytest.mark.parametrize("given", ["tell", "restart", "send", "set", "delete", "re", "x"])
def test_a_command_that_acts_on_kafka_is_no_guess(run: Run, given: str) -> None:
    ran = run(given)
    assert ran.code == 2
    assert ran.err.startswith(f"twinsieve: no command {given!r}; there are dedup, ")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("rest", "reset"), ("resett", "reset"), ("seeed", "seed"), ("eval", "evaluate"),
     ("topic", "topics"), ("conf", "config"), ("dedpu", "dedup")],
)  # fmt: skip
def test_a_slip_is_met_with_the_command_meant(run: Run, given: str, meant: str) -> None:
    assert run(given).err == f"twinsieve: no command {given!r}; did you mean {meant!r}?\n"
