"""Read what `dedup --stats` wrote about a run: its number of rows, and the settings that judged them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinsieve.pipeline.files.source import InputSource
from twinsieve.stages.errors import UsageError, shown

_MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class RunStats:
    """What made the drops.

    rows: number of rows of the run, None if it is not known; dropped: number of drops, None as well
    version: of twinsieve; inputs: their names; settings: those that decide, by key, as in a file
    """

    rows: int | None
    dropped: int | None
    version: str
    inputs: Sequence[str]
    settings: Mapping[str, str]


def read_run_stats(name: str) -> RunStats:
    """The run of a file of `dedup --stats`. raises: UsageError for another file; FileError"""
    content = bytearray()
    with InputSource(name) as source:
        for block in source.blocks():
            content += block
            if len(content) > _MAX_BYTES:
                raise UsageError(
                    f"{shown(name)}: has more than {_MAX_BYTES >> 20} MiB unpacked, too much for a file of "
                    "dedup --stats; give that file"
                )
    try:
        said = json.loads(content)
        run = RunStats(
            said["rows"],
            said["exact"] + said["near"],
            said["version"],
            said["inputs"],
            said["settings"],
        )
        texts = [run.version, *run.inputs, *run.settings, *run.settings.values()]
        right = all(isinstance(text, str) for text in texts) and type(run.rows) is type(run.dropped) is int
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        right = False
    if not right:
        raise UsageError(f"{shown(name)}: is not a file of dedup --stats of this version; give that file")
    return run


def check_same_run(run: RunStats, drops: int, name: str) -> None:
    """raises: UsageError if this run had another number of drops. name: of its file"""
    if run.dropped != drops:
        raise UsageError(
            f"{shown(name)}: is of another run: it counts {run.dropped:,} drops, the file of duplicates has "
            f"{drops:,}"
        )
