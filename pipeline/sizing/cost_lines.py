"""Costs of a sieve as lines of text, for a terminal or for comments of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinsieve.pipeline.basics.shown_amounts import span
from twinsieve.pipeline.settings.segment_bytes import Texts
from twinsieve.pipeline.sizing.cover import Asked, Proposal, as_yaml
from twinsieve.pipeline.sizing.estimate import Estimate, Memory

_MIB = 1 << 20
_LABEL = 44


def cost_lines(estimates: Sequence[Estimate], rate: float, texts: Texts) -> list[str]:
    """The estimates of one sieve for several shares of repeats, ascending. Bytes in memory and on disk are
    shown for the first one, which has the most."""
    first = estimates[0]
    shares = [f"{each.repeats:.4g} dropped" for each in estimates]
    mean = f"texts of {texts.characters:g} characters (--characters)"
    lines = [
        f"sieve at {rate:,.12g} messages/s, windows full, {mean}",
        _row("memory, MiB", "usual", "at worst"),
        *_rows(_memory_rows(first.memory), _memory_rows(first.worst_memory)),
        _row("disk, MiB", "usual", "at worst"),
        *_rows(first.disk, first.worst_disk),
        _row("written an hour, MiB", *shares),
        *_rows(*(each.written for each in estimates)),
        _row("near window covers", *(span(each.hours * 3600) for each in estimates)),
    ]
    us = f"µs a message to judge: {first.us:,.1f} of one thread, {first.busy:.0%} of a core at this rate"
    return [*lines, us]


def proposal_lines(proposal: Proposal, asked: Asked) -> list[str]:
    """The proposal as a settings file, with its costs as comments."""
    costs = cost_lines(proposal.estimates, asked.rate, asked.texts)
    return [*as_yaml(proposal.keys).splitlines(), *(f"# {line}" for line in costs)]


def _memory_rows(memory: Memory) -> dict[str, int]:
    rows = dict(memory.anonymous) | {"all in memory": memory.total}
    if memory.hot or memory.cold:
        rows |= {
            "mapped files: read by each look-up": memory.hot,
            "mapped files: read for candidates alone": memory.cold,
        }
    return rows


def _rows(*columns: dict[str, int]) -> Iterator[str]:
    """A line for each part, and one for all parts if there are several and no sum is among them."""
    for name in columns[0]:
        yield _row(f"  {name}", *(f"{column[name] / _MIB:,.1f}" for column in columns))
    if "all in memory" not in columns[0]:
        yield _row("  all", *(f"{sum(column.values()) / _MIB:,.1f}" for column in columns))


def _row(label: str, *cells: str) -> str:
    return f"{label:<{_LABEL}}" + "".join(f"{cell:>14}" for cell in cells)
