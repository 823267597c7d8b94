"""`lint` says what settings cost on Kafka to those who use it there, and to nobody else."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from tests.calling import Run, setting
from tests.shared_store import PROTOCOL
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by

_OF_KAFKA = ("log on Kafka:", "on Kafka:", "messages/s, all kept", "memory of one `run`")


@pytest.mark.parametrize(
    "written",
    [
        "",
        "profile: plain\nnear: {similarity: 0.8}\nexact: {window: {age: 2d}}\n",
        "input: {text_field: title, id_field: none, time_field: none, max_bytes: 16MiB}\n",
    ],
)
def test_settings_for_files_show_what_holds_on_files(written: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "files.yaml"
    path.write_text(written)
    ran = run("lint", path)
    assert ran.code == 0
    assert "near window on files" in ran.out
    assert not any(line in ran.out for line in _OF_KAFKA)
    assert run("lint", path, "--rate", "10").out.startswith(ran.out.splitlines()[0])
    for option in (("--rate", "10"), ("--partitions", "2"), setting("kafka.bootstrap=b:9092")):
        asked = run("lint", path, *option)
        assert all(line in asked.out for line in _OF_KAFKA), option


@pytest.mark.parametrize(
    "written",
    [
        "kafka: {compression: zstd}",
        "input: {topics: [news]}",
        "output: {topic: out}",
        "state: {dir: ./state}",
        "topics: {replication: 3}",
        "app: weibo",
    ],
)
def test_settings_for_kafka_show_what_it_costs_there(written: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kafka.yaml"
    path.write_text(written)
    ran = run("lint", path)
    assert ran.code == 0
    assert all(line in ran.out for line in _OF_KAFKA)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["state.snapshot_every=5m"], "151.2 GB a day, at 350 bytes a message; kept for 8.75 d: 1,323.0 GB"),
        (["exact.window.age=1h", "near.window.age=2h"], "; kept for 2.5 h: 15.8 GB on each replica"),
        (
            ["near.window.age=none"],
            "; kept forever, because a window has no age and snapshots are not shared",
        ),
        (["state.dir=memory://x"], "; kept for 8.75 d"),
        (
            ["near.window.age=none", f"state.dir={PROTOCOL}:///tmp/x"],
            "; the index deletes it behind its snapshots",
        ),
    ],
)
def test_it_says_what_the_log_takes_in_all(sets: list[str], said: str, run: Run) -> None:
    ran = run("lint", "--rate", "5000", *setting(*sets))
    assert ran.code == 0
    assert said in ran.out


@pytest.mark.parametrize("answers", ["none", "shards"])
def test_the_parts_of_each_role_add_up_and_a_shard_has_a_limit_of_its_own(answers: str, run: Run) -> None:
    sets = [f"near.answers={answers}", "near.segment=250000", "state.memory=1GiB"]
    ran = run("lint", *setting(*sets))
    table = ran.out.partition("memory of one `run`")[2].partition("both roles")[0]
    shown = [re.findall(r"([\d,]+\.\d)", line) for line in table.splitlines()]
    sums = [float(cell.replace(",", "")) for cell in next(cells for cells in reversed(shown) if cells)]
    parts = [float(cell.replace(",", "")) for cells in shown for cell in cells][: -len(sums)]
    assert sum(parts) == pytest.approx(sum(sums), abs=0.1 * len(parts))
    assert len(sums) == 2 + (answers == "shards")
    near = {"answers": answers, "segment": 250_000}
    held = held_by(Settings.model_validate({"near": near, "state": {"memory": "1GiB"}}), 8)
    limits = re.findall(r"limit of memory .*: ([\d,]+) MiB", ran.out)
    wanted = [held.limit, held.shard_limit][: len(sums) - 1]
    assert limits == [f"{math.ceil(limit / 2**20):,}" for limit in wanted]
