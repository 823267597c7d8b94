"""Peak memory of an index that writes a snapshot, and of one that restores it.

    python -m bench.snapshot_memory [--near 200000] [--exact 2000000]

A sieve of full windows holds random bytes, which no compression makes smaller. Each of the two steps has a
process of its own; what is printed is its growth over a process that only holds the sieve (writing), or holds
nothing yet (restoring), divided by the bytes of the sieve.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile

import numpy as np

from bench.machine import machine_line
from twinsieve.pipeline.index.ledger import Ledger, ledger_to_bytes
from twinsieve.pipeline.index.snapshot_store import Snapshot, SnapshotReader, SnapshotStore
from twinsieve.pipeline.settings.named_files import file_system
from twinsieve.stages.contract import ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve

_LOG_ID = bytes(16)


def peak_bytes() -> int:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def random_sieve(config: SieveConfig) -> BatchSieve:
    """A sieve whose columns hold random bytes where that harms nothing that is only written and read."""
    sieve = BatchSieve(config)
    random = np.random.default_rng(0)
    for name, column in sieve._chunk_judge.to_sections().items():
        if column.nbytes > 4096 and name != "ring.tags":
            flat = column.reshape(-1).view(np.uint8)
            flat[:] = random.integers(0, 256, flat.size, dtype=np.uint8)
    if sieve._filters is not None:
        for column in sieve._bloom[:3]:
            if column.nbytes > 4096:
                flat = column.reshape(-1).view(np.uint8)
                flat[:] = random.integers(0, 256, flat.size, dtype=np.uint8)
    return sieve


def write(config: SieveConfig, folder: str) -> None:
    """Prints what a snapshot costs beyond the sieve itself."""
    before = peak_bytes()
    sieve = random_sieve(config)
    held = sieve.stats().bytes_used
    frozen = sieve.freeze()
    ledger = ledger_to_bytes(Ledger())
    snapshot = Snapshot(1, 0, _LOG_ID, _LOG_ID, _LOG_ID, ledger, frozen)
    SnapshotStore(file_system(folder), "bench", keep=1).write(snapshot)
    print(f"  writing: peak {(peak_bytes() - before) / held:.2f} times the sieve of {held / 2**20:.0f} MiB")


def restore(config: SieveConfig, folder: str) -> None:
    """Prints what a restore costs."""
    before = peak_bytes()
    snapshots = SnapshotStore(file_system(folder), "bench", keep=1).read(_LOG_ID)
    found = next(snapshots)
    if not isinstance(found, SnapshotReader):
        raise found
    sieve = BatchSieve.load(found.sieve(), config)
    held = sieve.stats().bytes_used
    print(f"  restoring: peak {(peak_bytes() - before) / held:.2f} times the sieve of {held / 2**20:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--near", type=int, default=200_000)
    parser.add_argument("--exact", type=int, default=2_000_000)
    parser.add_argument("--step", choices=["write", "restore"])
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    config = SieveConfig(
        near=NearConfig(window=Window(arguments.near)), exact=ExactConfig(window=Window(arguments.exact))
    )
    if arguments.step:
        {"write": write, "restore": restore}[arguments.step](config, arguments.folder)
        return
    print(machine_line())
    print(f"near window {arguments.near:,}, exact window {arguments.exact:,}, random content:", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for step in ("write", "restore"):
            again = [sys.executable, "-m", "bench.snapshot_memory", *sys.argv[1:]]
            subprocess.run([*again, "--step", step, "--folder", folder], check=True)


if __name__ == "__main__":
    main()
