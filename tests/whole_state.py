"""The whole state of a sieve as bytes: two sieves with equal bytes give equal verdicts from then on."""

from __future__ import annotations

import io
from collections.abc import Iterable

from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.exact.sections import Sections
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.state_bytes import read_state, write_state
from twinsieve.stages.window.segments import SealedSegment


def to_bytes(sieve: BatchSieve) -> bytes:
    """The state, with the memory of the near stage."""
    frozen = sieve.freeze((), sieve.stats().kept)
    sections = dict(frozen.sections)
    for name, read in frozen.parts.items():
        sections |= {f"{name}/{local}": array for local, array in read().items()}
    stream = io.BytesIO()
    write_state(stream, frozen.scheme_id, frozen.parameters, sections)
    return stream.getvalue()


def from_bytes(data: bytes, config: SieveConfig, *, forget_exact: bool = False) -> BatchSieve:
    """The sieve that `to_bytes` saved. forget_exact: as for `BatchSieve.load`"""
    return BatchSieve.load(
        io.BytesIO(data), config, parts=_InBytes(data, config.scheme_id), forget_exact=forget_exact
    )


class _InBytes:
    """The parts in these bytes (`SavedParts`)."""

    def __init__(self, data: bytes, scheme_id: str) -> None:
        self._data = data
        self._scheme_id = scheme_id

    def sections(self, name: str) -> Sections:
        prefix = f"{name}/"
        whole = read_state(io.BytesIO(self._data), self._scheme_id, {})
        return {local.removeprefix(prefix): part for local, part in whole.items() if local.startswith(prefix)}

    def segments(self) -> Iterable[SealedSegment]:
        return ()

    def kept_messages(self) -> Iterable[tuple[int, KeptMessages]]:
        return ()
