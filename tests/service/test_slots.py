"""Names of processes: the same after a restart, and never those of two at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from twinsieve.pipeline.service import slots as service_slots
from twinsieve.pipeline.service.slots import slot_of, take_slot
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import StateError, UsageError

_CHILD = """
import sys
from twinsieve.pipeline.service.slots import slot_of
from twinsieve.pipeline.settings.model import Settings
slot = slot_of(Settings.model_validate({"app": "a", "state": {"dir": sys.argv[1]}}), None)
print(slot.name, flush=True)
sys.stdin.read()
"""


@contextmanager
def process(state: str, temporary: Path) -> Iterator[str]:
    """Another process that holds a slot until the end of the block; its name."""
    temporary.mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD, state],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        yield child.stdout.readline().strip()


@pytest.mark.parametrize("state", ["s3://bucket/a", "own"])
def test_two_temporary_folders_of_one_host_give_processes_two_names(tmp_path: Path, state: str) -> None:
    states = [state if "://" in state else str(tmp_path / f"{state}{number}") for number in range(2)]
    with process(states[0], tmp_path / "tmp0") as first, process(states[1], tmp_path / "tmp1") as second:
        assert "" not in (first, second)
        assert first != second
        host = service_slots.socket.gethostname()
        assert first.rpartition("-")[0] == second.rpartition("-")[0] == host.replace(".", "-")


def test_a_temporary_folder_that_is_gone_after_a_restart_costs_no_name(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with process(state, tmp_path / "tmp0") as before:
        pass
    with process(state, tmp_path / "tmp1") as after, process(state, tmp_path / "tmp2") as other:
        assert before == after != other


def test_a_freed_slot_is_taken_again_and_a_held_one_is_not(tmp_path: Path) -> None:
    first, second = take_slot("a", [tmp_path]), take_slot("a", [tmp_path])
    name = first.name
    first.release()
    third, other = take_slot("a", [tmp_path]), take_slot("b", [tmp_path])
    assert third.name == name
    assert len({second.name, third.name, other.name}) == 3
    for slot in (second, third, other):
        slot.release()


def test_a_lock_file_that_was_cleaned_away_gives_its_name_to_nobody(tmp_path: Path) -> None:
    first = take_slot("a", [tmp_path])
    for file in tmp_path.iterdir():
        file.unlink()
    second = take_slot("a", [tmp_path])
    assert first.name != second.name
    first.release()
    second.release()


@pytest.mark.parametrize("content", [b"", b"../../x", b"\xff" * 12, b"0" * 500])
def test_a_lock_file_with_something_else_in_it_gets_a_new_number(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a-0.lock").write_bytes(content)
    slot = take_slot("a", [tmp_path])
    assert len(slot.name.rpartition("-")[2]) == 12
    slot.release()
    again = take_slot("a", [tmp_path])
    assert again.name == slot.name
    again.release()


def test_a_state_folder_that_cannot_be_written_leaves_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_slots.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    slot = slot_of(Settings.model_validate({"state": {"dir": str(tmp_path / "file")}}), None)
    assert (tmp_path / f"twinsieve-{os.getuid()}" / "twinsieve-0.lock").exists()
    slot.release()
    assert slot_of(Settings(), "named").name == "named"


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("", "--member is '': is a variable unset? give each process a name of its own, or leave --member out"),
        ("$(POD_NAME)", "the value of POD_NAME is not filled in; define it where the process starts"),
        ("${POD_NAME}", "the value of POD_NAME is not filled in"),
        ("$POD_NAME", "the value of POD_NAME is not filled in"),
        ("sieve-$(ORDINAL)", "the value of ORDINAL is not filled in"),
        ("sieve one", "write up to 200 of the characters A-Z a-z 0-9 . _ -"),
        (" ", "write up to 200"),
        ("武汉", "write up to 200"),
        ("a\nb", "--member is 'a\\nb'"),
        ("a" * 201, "write up to 200"),
    ],
)  # fmt: skip
def test_a_name_that_is_none_or_that_all_would_have_is_refused(member: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        slot_of(Settings(), member)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("member", ["sieve-0", "a", "ip-10-0-0-1.ec2.internal", "A_b.C-9", "a" * 200])
def test_a_name_that_kafka_takes_is_taken_as_it_is(member: str) -> None:
    assert slot_of(Settings(), member).name == member


@pytest.mark.parametrize("made", ["link", "open"])
def test_a_temporary_folder_that_somebody_else_prepared_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    monkeypatch.setattr(service_slots.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"twinsieve-{os.getuid()}"
    if made == "link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    settings = Settings.model_validate({"state": {"dir": "s3://bucket/a"}})
    with pytest.raises(
        StateError, match=r"others may write to it; remove it\); name the process with --member"
    ):
        slot_of(settings, None)


def test_a_link_in_the_place_of_a_lock_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"keep")
    (tmp_path / "a-0.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(StateError, match="no lock file can be made"):
        take_slot("a", [tmp_path])
    assert (tmp_path / "precious").read_bytes() == b"keep"
