"""Mutants of what tells the app's own offsets from those of others."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MARK = "pipeline/broker/mark.py"
FOREIGN = ("tests/model/test_foreign_offsets.py",)
FOREIGN_OFFSETS = (
    Mutant(
        "offsets: one without a mark counts",
        MARK,
        "return record if kept is not None else None",
        "return found or record",
        FOREIGN,
    ),
    Mutant(
        "offsets: a worker commits no record",
        "pipeline/worker/worker.py",
        "self._transactor.send_offsets(offsets, membership, self._config.record)",
        "self._transactor.send_offsets(offsets, membership)",
        FOREIGN,
    ),
    Mutant(
        "offsets: an old order of reset counts",
        MARK,
        "is_newer = (mark.first, mark.end) == (kept.first, kept.end)",
        "is_newer = True",
        FOREIGN,
    ),
    Mutant(
        "offsets: reset is not told from others",
        MARK,
        "_replace(read=0, epoch=NO_EPOCH, reset=True)",
        "_replace(read=0, epoch=NO_EPOCH)",
        FOREIGN,
    ),
    Mutant(
        "offsets: a session forgets that reset moved it",
        "pipeline/worker/openings.py",
        "reset=mark.reset)",
        "reset=False)",
        FOREIGN,
    ),
    Mutant(
        "offsets: an index lets a session leave out what never came out",
        "pipeline/index/ledger.py",
        "return Result.LEFT_OUT",
        "return Result.JUDGED",
        FOREIGN,
    ),
    Mutant(
        "offsets: a foreign offset stays in the group",
        "pipeline/worker/openings.py",
        "commits = opening.commits or committed[partition]",
        "commits = opening.commits",
        FOREIGN,
    ),
)
