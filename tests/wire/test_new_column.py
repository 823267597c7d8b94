"""A new column is declared in one file and filled in another; everything between carries it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.wire.trial_column import FINGERPRINT, VERDICT


def test_a_new_column_comes_from_the_file_to_the_answer(root: Path, tmp_path: Path) -> None:
    texts = ["今天武汉下雨了，大家出门记得带伞", "北京的天气晴朗，适合到公园里走一走", "ab"]
    file = tmp_path / "posts.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    said = subprocess.run(
        [sys.executable, "-m", "tests.wire.trial_column", str(file)],
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    trial = [1_015, 1_016, 1_002]
    less = [value - 2_000 for value in trial]
    assert json.loads(said) == {
        "file": trial,
        "block": trial,
        "index": less,
        "snapshot": less,
        "answer": less,
    }


def test_each_column_touches_two_files() -> None:
    assert len(FINGERPRINT) == len(VERDICT) == 2
