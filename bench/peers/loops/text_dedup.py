"""text-dedup: its command for MinHash, which reads the whole file first. Its words are our characters."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import orjson
from datasets import load_from_disk

from bench.peers.bodies import SIMILARITY, body_of


def write_kept(source: Path, output: Path) -> None:
    """Copy the rows that the command leaves."""
    with source.open("rb") as rows:
        lines = list(rows)
    with tempfile.TemporaryDirectory() as name:
        given, found = Path(name) / "bodies.jsonl", Path(name) / "found"
        with given.open("wb") as bodies:
            for number, line in enumerate(lines):
                words = " ".join(body_of(orjson.loads(line)["text"]))
                bodies.write(orjson.dumps({"number": number, "text": words}) + b"\n")
        command = [sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", given]
        command += [
            "--split",
            "train",
            "--column",
            "text",
            "--output",
            found,
            "--cache_dir",
            Path(name) / "cache",
        ]
        command += ["--ngram", "2", "--min_length", "1", "--threshold", str(SIMILARITY)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr.strip().splitlines()[-1])
        kept = load_from_disk(str(found))["number"]
    with output.open("wb") as written:
        written.writelines(lines[number] for number in kept)
