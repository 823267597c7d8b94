"""What the index commits beside its log offset is read by this program, and by one of before."""

from __future__ import annotations

import pytest

from twinsieve.pipeline.broker.records import Committed
from twinsieve.pipeline.index.ends import (
    NOT_ALONE,
    Alone,
    JudgedUnder,
    Late,
    Unanswered,
    committed_record,
    recorded_alone,
    recorded_behind_snapshots,
    recorded_decisions_end,
    recorded_output,
    recorded_pause,
    recorded_under,
)

FIXED = '{"profile":"plain","scope":"[a, b]"}'


def _read_before(metadata: str) -> tuple[str, str, str]:
    """How the program read it that did not record settings yet: end, behind snapshots, output."""
    version, *parts = metadata.split(" ")
    if version == "1":
        parts[1:1] = ["0"]
    end, behind, output, *_ = [*parts, "", "", ""]
    return (end, behind, output) if version in ("1", "2") else ("", "", "")


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("output", ["", "posts.unique"])
@pytest.mark.parametrize("reading", ["", "1f"])
@pytest.mark.parametrize(("scheme", "fixed"), [("", ""), ("2e", FIXED)])
@pytest.mark.parametrize("segments", [(), (Unanswered(0, 50, 1_600_000_000_000),)])
@pytest.mark.parametrize("late", [(), (Late("full@9 :1@2,ü", 3, 99), Late("host-2-shard", 1, 98))])
@pytest.mark.parametrize("paused_ms", [None, 1_600_000_000_000])
def test_a_program_of_before_reads_what_it_knows(
    behind: bool,
    output: str,
    reading: str,
    scheme: str,
    fixed: str,
    segments: tuple[Unanswered, ...],
    late: tuple[Late, ...],
    paused_ms: int | None,
) -> None:
    """With shared snapshots it must see that the log is trimmed, or its windows would begin empty."""
    under = JudgedUnder(reading, scheme, fixed)
    alone = Alone(2 * len(segments), segments, late)
    record = committed_record(
        7, 12, output, behind_snapshots=behind, under=under, alone=alone, paused_ms=paused_ms
    )
    assert _read_before(record.metadata) == ("12", str(int(behind)), output)
    assert recorded_decisions_end(record) == 12
    assert recorded_behind_snapshots(record) == behind
    assert recorded_output(record) == output
    assert recorded_under(record) == under
    assert recorded_alone(record) == alone
    assert recorded_pause(record) == paused_ms


@pytest.mark.parametrize(
    "said", ["2", "2:", "2:0-50", "x:0-50@1", "2:0-50@1:", "2:0-50@" + 15 * "9", "2:0-50@1\x1b"]
)
def test_what_no_index_writes_there_is_not_read(said: str) -> None:
    assert recorded_alone(Committed(7, f"2 12 0 out 1f 2e scope:b5 {said} {FIXED}")) == NOT_ALONE
