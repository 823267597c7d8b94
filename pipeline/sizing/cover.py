"""Settings whose near window reaches back a given time on a given machine."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from twinsieve.pipeline.basics.shown_amounts import span
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.segment_bytes import Texts, least_memory, segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.settings.values import MAX_DURATION_MS, MAX_SEGMENTS, duration_text, size_text
from twinsieve.pipeline.sizing.cost import is_modelled, load_of
from twinsieve.pipeline.sizing.estimate import REPEATS, Estimate, Memory, estimate, exact_bytes, memory_of
from twinsieve.pipeline.sizing.process_memory import held_by
from twinsieve.stages.contract import MAX_SEGMENT, MAX_WINDOW, SieveConfig, Window
from twinsieve.stages.errors import UsageError

_MIB, _GIB = 1 << 20, 1 << 30
_FOR_THE_CACHE = 8
"""An eighth of the machine's memory is left to the page cache and to the system."""
_SIGNIFICANT = (16, 14, 12, 10, 8, 7, 6, 5, 4, 3.5, 3, 2.5, 2, 1.6)
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What the settings are to do.

    rate: messages a second; repeats: share of them that is dropped; cover_ms: how far the window reaches back
    machine: bytes of memory of the machine; partitions: input partitions of the process
    texts: of the kept messages
    """

    rate: float
    cover_ms: int
    machine: int
    repeats: float = 0.0
    texts: Texts = field(default_factory=Texts)
    partitions: int = 8

    @property
    def kept_a_second(self) -> float:
        """Messages kept a second."""
        return self.rate * (1 - self.repeats)

    @property
    def usable(self) -> int:
        """Bytes of the machine's memory without those of the page cache and the system."""
        return self.machine - self.machine // _FOR_THE_CACHE


@dataclass(frozen=True, slots=True)
class Proposal:
    """Settings that do what is asked.

    keys: what to set, dotted keys and values as they are written; settings: with these keys
    estimates: what they cost, for the shares of repeats of `sizing.estimate.REPEATS` and the asked one
    """

    keys: Mapping[str, str]
    settings: Settings
    estimates: Sequence[Estimate]


def settings_to_cover(settings: Settings, asked: Asked) -> Proposal:
    """The settings with windows, `near.segment` and `state.memory` that cover the time.

    The window is cut into the largest segments with which the machine's memory holds the open segment, the
    one that is written and what look-ups read of all others, beside all else that a process may hold.
    raises: UsageError for a time or a rate that no window can have; if one machine cannot do it, with what it
        can do
    """
    wanted, messages = wanted_settings(settings, asked)
    config = sieve_config(wanted, "")
    room = room_of(wanted, config, asked)
    for segment in segment_sizes(messages):
        cut = cut_config(config, messages, segment)
        memory = _all_hot(cut, asked.texts)
        if memory.needed <= room:
            proposal = _proposal(settings, wanted, cut, memory, room, asked)
            _check_time(proposal.estimates[0], config.near.threads, asked)
            return proposal
    raise UsageError(_too_little(config, messages, room, asked))


def wanted_settings(settings: Settings, asked: Asked) -> tuple[Settings, int]:
    """The settings with windows of the time to cover, and the kept messages of the near window. raises:
    UsageError for a time or a rate that no window can have"""
    if settings.near.method != "text":
        raise UsageError(f"--cover is for near.method: text, and it is {settings.near.method}")
    if not is_modelled(settings):
        raise UsageError(
            "--cover is for near.candidates: index, and it is scan; a scan reads all of a window"
        )
    if not 0 < asked.cover_ms <= MAX_DURATION_MS:
        most = duration_text(MAX_DURATION_MS)
        raise UsageError(f"--cover is {duration_text(asked.cover_ms)}; give a time above 0, {most} at most")
    kept_a_second = asked.kept_a_second
    messages = _rounded_up(kept_a_second * asked.cover_ms / 1000)
    if messages > MAX_WINDOW:
        reach = span(MAX_WINDOW / kept_a_second)
        raise UsageError(
            f"--cover {duration_text(asked.cover_ms)} at {asked.rate:,.12g} messages/s is {messages:,} kept "
            f"messages, and a near window holds at most {MAX_WINDOW:,}: {reach}; ask for a shorter time"
        )
    return _with_windows(settings, asked.cover_ms, messages), messages


def machine_bytes() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def as_yaml(keys: Mapping[str, str]) -> str:
    """The keys as a settings file.

    >>> print(as_yaml({"near.segment": "5", "near.window.age": "24h", "state.memory": "8GiB"}), end="")
    near:
      segment: 5
      window:
        age: 24h
    state:
      memory: 8GiB
    """
    lines: list[str] = []
    above: list[str] = []
    for key, value in keys.items():
        *sections, name = key.split(".")
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(sections, above, strict=False)))
        lines += [f"{'  ' * depth}{section}:" for depth, section in enumerate(sections) if depth >= same]
        lines.append(f"{'  ' * len(sections)}{name}: {value}")
        above = sections
    return "".join(f"{line}\n" for line in lines)


def _with_windows(settings: Settings, cover_ms: int, messages: int) -> Settings:
    """The settings with windows of at least this age and number; `state.memory` is as if it was not set."""
    near, exact = settings.near.window, settings.exact.window
    exact_age = exact.age_ms if exact.age_ms is None else max(exact.age_ms, cover_ms)
    exact_window = exact.model_copy(update={"messages": max(exact.messages, messages), "age_ms": exact_age})
    return settings.model_copy(
        update={
            "near": settings.near.model_copy(
                update={"window": near.model_copy(update={"messages": messages, "age_ms": cover_ms})}
            ),
            "exact": settings.exact.model_copy(update={"window": exact_window}),
            "state": settings.state.model_copy(update={"memory": None}),
        }
    )


def room_of(settings: Settings, config: SieveConfig, asked: Asked) -> int:
    """Bytes that the near window may take, beside all else that a process may hold at worst."""
    held = held_by(settings, asked.partitions)
    return asked.usable - (held.process - held.sieve + exact_bytes(config))


def segment_sizes(messages: int) -> Iterator[int]:
    """Values of `near.segment` for a window, the largest first; the first one does not cut it, if one can."""
    fewest = -(-messages // (MAX_SEGMENTS - 1))
    if messages <= MAX_SEGMENT:
        yield MAX_SEGMENT
    sizes = (round(part * 10**power) for power in range(6, -1, -1) for part in _SIGNIFICANT)
    yield from (size for size in sizes if fewest <= size < messages)


def cut_config(config: SieveConfig, messages: int, segment: int) -> SieveConfig:
    """The configuration with a near window of `messages` kept messages in segments of `segment`."""
    window = Window(messages, config.near.window.age_ms)
    return replace(config, near=replace(config.near, window=window, segment=segment))


def _all_hot(config: SieveConfig, texts: Texts) -> Memory:
    """Memory without the exact stage where look-ups read nothing from files."""
    return memory_of(config, 1 << 62, segment_parts(config, texts), 0)


def _proposal(
    settings: Settings, wanted: Settings, config: SieveConfig, memory: Memory, room: int, asked: Asked
) -> Proposal:
    near, is_cut = config.near, config.near.segment < config.near.window.messages
    limit = None
    if is_cut:
        # The check of `state.memory` knows nothing of the texts that are asked for.
        least = max(memory.total, least_memory(config, Texts()))
        whole = -(-least // _GIB) * _GIB
        limit = whole if whole <= room else -(-least // _MIB) * _MIB
    keys = window_keys(settings, wanted, config, asked)
    keys["state.memory"] = "none" if limit is None else size_text(limit)
    if limit is None and settings.state.memory is None:
        del keys["state.memory"]
    if near.segment == settings.near.segment:
        del keys["near.segment"]
    proposed = wanted.model_copy(
        update={
            "near": wanted.near.model_copy(update={"segment": near.segment}),
            "state": wanted.state.model_copy(update={"memory": limit}),
        }
    )
    proposed_config = sieve_config(proposed, "")
    shares = sorted({*REPEATS, asked.repeats})
    loads = [load_of(proposed, asked.rate, asked.texts, repeats) for repeats in shares]
    return Proposal(keys, proposed, [estimate(proposed_config, load) for load in loads])


def window_keys(settings: Settings, wanted: Settings, config: SieveConfig, asked: Asked) -> dict[str, str]:
    """What to set for these windows and segments, dotted keys and values as they are written."""
    exact, near = wanted.exact.window, config.near
    keys = {
        "exact.window.messages": str(exact.messages),
        "exact.window.age": "none" if exact.age_ms is None else duration_text(exact.age_ms),
        "near.segment": str(near.segment),
        "near.window.messages": str(near.window.messages),
        "near.window.age": duration_text(asked.cover_ms),
    }
    if settings.exact.method == "none":
        del keys["exact.window.messages"], keys["exact.window.age"]
    return keys


def _check_time(costs: Estimate, threads: int, asked: Asked) -> None:
    if costs.busy > threads:
        most = asked.rate * threads / costs.busy
        raise UsageError(
            f"one machine cannot cover {duration_text(asked.cover_ms)} at {asked.rate:,.12g} messages/s: to "
            f"judge takes {costs.us:,.1f} µs a message, {costs.busy:,.1f} threads; near.threads is "
            f"{threads}, enough for {most:,.0f} messages/s"
        )


def _too_little(config: SieveConfig, messages: int, room: int, asked: Asked) -> str:
    kept_a_second = asked.kept_a_second
    low, high = 0, messages
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        fits = any(
            _all_hot(cut_config(config, middle, segment), asked.texts).needed <= room
            for segment in segment_sizes(middle)
        )
        low, high = (middle, high) if fits else (low, middle)
    smallest = min(
        _all_hot(cut_config(config, messages, segment), asked.texts).needed
        for segment in segment_sizes(messages)
    )
    beside = asked.machine - room
    reach = f"it covers {span(low / kept_a_second)} at most" if low else "it covers nothing"
    return (
        f"one machine of {size_text(asked.machine)} cannot cover {duration_text(asked.cover_ms)} at "
        f"{asked.rate:,.12g} messages/s: {messages:,} kept messages take {smallest / _GIB:,.1f} GiB, beside "
        f"{beside / _GIB:,.1f} GiB for all else; {reach}; several machines: --machines N"
    )


def _rounded_up(number: float) -> int:
    """The number with three significant digits, rounded up; at least 1.

    >>> [_rounded_up(number) for number in (0.2, 17, 1_234, 432_000_000, 999_999)]
    [1, 17, 1240, 432000000, 1000000]
    """
    whole = max(1, math.ceil(number))
    unit: int = 10 ** max(0, len(str(whole)) - _DIGITS)
    return -(-whole // unit) * unit


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
