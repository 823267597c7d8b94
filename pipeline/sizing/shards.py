"""Settings and machines with which shards cover a time that one machine cannot hold.

One machine has the index and a worker, the others have shards, which hold what look-ups read of the segments
that they answer for. A hash deals the segments, so some shards get more than others. A shard looks up in one
thread, so a machine may need several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from twinsieve.pipeline.operate.topic_plan import log_row_bytes
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.segment_bytes import hot_bytes, segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.settings.values import duration_text, size_text
from twinsieve.pipeline.sizing.cover import (
    Asked,
    as_yaml,
    cut_config,
    room_of,
    segment_sizes,
    wanted_settings,
    window_keys,
)
from twinsieve.pipeline.sizing.estimate import exact_bytes, look_ups, open_us, sealed_us
from twinsieve.pipeline.sizing.process_memory import PYTHON_BYTES, held_by, taking_over_bytes
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.near_window import segment_count

LOOK_UP_US = 1.0
"""µs of a look-up in a sealed segment, more than `sealed_us` says: there are blocks of some hundred rows, and
copies among them."""
ANSWER_US = 0.4
"""µs of a shard for a message and segment, beside the look-up: to decode the block, choose and write."""
TAKE_US = 0.1
"""µs of the index for a message and a segment that is answered for."""
ANSWER_BYTES = 0.6
"""Bytes of answers a message and segment."""
CANDIDATE_PAGES = 6
"""Pages of tags, records and texts that a look-up in a file reads for a message and segment, beside one for
each bucket. All five: `python -m bench.shards`."""

WIRE_US = ((5_000, 40.0, 30.0, 15.0), (30_000, 10.0, 20.0, 3.0))
"""Messages a second, and µs of an index, of a worker and of a shard for a message, beside what they do in
segments. A poll and a transaction serve more messages in a faster stream. `python -m bench.kafka_shards
cost`, without what is judged; the second row with --rate 0 for the index, less the index from
`python -m bench.kafka_footprint` for the worker, and an estimate for the shard, which decodes in .6 µs."""

_SIGMAS = 2.0
"""Each shard gets memory for the mean number of segments and this number of standard deviations more."""
_MOST_MACHINES = 1_000
_MOST_PROCESSES = 16
_MIB, _GIB = 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class Role:
    """What one machine of a role needs: bytes of memory and disk, bytes a second in and out, cores.

    looking_up: those of `cores` that look up in segments and judge
    """

    memory: int
    disk: int
    received: float
    sent: float
    looking_up: float
    cores: float


@dataclass(frozen=True, slots=True)
class Plan:
    """An app with shards.

    keys: what to set, dotted keys and values as they are written
    machines, processes: those that have shards, and shards on each of them
    segments: sealed ones; most: of these, those of the shard that has the most, with `near.replicas` of each
    index, shard: what the machine of the index needs, and each of those of shards
    index_memory: bytes that the index may have as `state.memory`, for segments that no shard answers for
    alone_us: µs of the index for a message while no shard answers; cold_reads: pages that it reads from its
        disk for one then, if none of them is in memory; cold_reads_s: that a second
    """

    keys: Mapping[str, str]
    machines: int
    processes: int
    segments: int
    most: int
    index: Role
    shard: Role
    index_memory: int
    alone_us: float
    cold_reads: int
    cold_reads_s: float


def plan_shards(settings: Settings, asked: Asked, machines: int) -> Plan:
    """Settings with shards that cover the time, for this number of machines.

    raises: UsageError if they are too few or too small; it names the machines that are enough
    """
    near = settings.near.model_copy(update={"answers": "shards"})
    wanted, messages = wanted_settings(settings.model_copy(update={"near": near}), asked)
    plan = _plan(settings, wanted, messages, asked, machines)
    if plan is None:
        raise UsageError(_too_few(settings, wanted, messages, asked, machines))
    return plan


def plan_lines(plan: Plan) -> list[str]:
    """The plan as a settings file, with what each machine needs as comments."""
    rows = [
        "each machine of a role, usual texts     memory GiB   disk GB   received MB/s   sent MB/s   cores",
        *(_row(name, role) for name, role in (("index and a worker", plan.index), ("shards", plan.shard))),
    ]
    shards = "1 shard" if plan.processes == 1 else f"{plan.processes} shards"
    lines = [
        f"1 machine for the index and a worker, {plan.machines} with {shards} each; a standby takes one more",
        f"start the index with --set state.memory={size_text(plan.index_memory)}",
        f"{plan.segments:,} full segments; the shard that has the most answers for some {plan.most:,}",
        *rows,
        "state.dir is a folder that all machines have mounted, or an address; it holds the window, too",
        f"while no shard answers, judging takes {plan.alone_us:,.0f} µs a message; with nothing in memory it",
        f"reads {plan.cold_reads:,} pages of the disk for one, {plan.cold_reads_s:,.0f} a second",
    ]
    return [*as_yaml(plan.keys).splitlines(), *(f"# {line}" for line in lines)]


def _row(name: str, role: Role) -> str:
    cells = (
        f"{role.memory / _GIB:>12,.1f}",
        f"{role.disk / 1e9:>9,.0f}",
        f"{role.received / 1e6:>15,.2f}",
        f"{role.sent / 1e6:>11,.2f}",
        f"{role.cores:>7,.2f}",
    )
    return f"  {name:<35}" + " ".join(cells)


def _plan(settings: Settings, wanted: Settings, messages: int, asked: Asked, machines: int) -> Plan | None:
    """The plan with the largest segments that fit."""
    config = sieve_config(wanted, "")
    held = held_by(wanted, asked.partitions)
    beside = asked.usable - room_of(wanted, config, asked)
    shard_beside = PYTHON_BYTES + held.shard - held.segments - held.taking_over
    for segment in segment_sizes(messages):
        cut = cut_config(config, messages, segment)
        if segment_count(cut) < 2:
            continue
        for processes in range(1, _MOST_PROCESSES + 1):
            plan = _with_segments(settings, wanted, cut, asked, machines - 1, processes, beside, shard_beside)
            if plan.shard.memory > asked.usable or plan.index.memory > asked.usable:
                break
            if plan.shard.cores <= processes and plan.index.looking_up <= config.near.threads:
                return plan
    return None


def _with_segments(
    settings: Settings,
    wanted: Settings,
    config: SieveConfig,
    asked: Asked,
    machines: int,
    processes: int,
    beside: int,
    shard_beside: int,
) -> Plan:
    """What these segments need, with `processes` shards on each of `machines`.

    beside: bytes of the index's process beside its near window; shard_beside: those of a shard beside what it
        has in memory of its segments, and beside one more that it copies
    """
    parts = segment_parts(config, asked.texts)
    segment, hot, sealed = sum(parts.values()), hot_bytes(parts), segment_count(config) - 1
    shards = machines * processes
    replicas = min(settings.near.replicas, shards)
    most = _most(sealed * replicas, shards)
    kept = _most(sealed * min(replicas + 1, shards), shards)
    answers = sealed * replicas * ANSWER_BYTES * asked.rate
    log = log_row_bytes(settings) * asked.rate
    written = segment / config.near.segment * asked.kept_a_second
    first_us, each_us = open_us(config, asked.texts), sealed_us(config, asked.texts) + LOOK_UP_US
    judged, looked_up = (
        us * asked.rate / 1e6 for us in (first_us + sealed * TAKE_US, most * (each_us + ANSWER_US))
    )
    index_us, worker_us, shard_us = _wire_us(asked.rate)
    cold_reads = sealed * (look_ups(config) + CANDIDATE_PAGES)
    index = Role(
        beside + 2 * segment,
        (sealed + 2) * segment + exact_bytes(config),
        log + answers,
        log + written,
        judged,
        judged + (index_us + worker_us) * asked.rate / 1e6,
    )
    shard = Role(
        processes * (most * hot + taking_over_bytes(config.near.segment) + shard_beside),
        processes * kept * segment,
        processes * (log + kept / sealed * written),
        answers / machines,
        processes * looked_up,
        processes * (looked_up + shard_us * asked.rate / 1e6),
    )
    keys = window_keys(settings, wanted, config, asked) | {
        "near.answers": "shards",
        "near.replicas": str(replicas),
        "state.memory": size_text(-(-max(most * hot, 2 * segment) // _MIB) * _MIB),
    }
    return Plan(
        keys,
        machines,
        processes,
        sealed,
        most,
        index,
        shard,
        max(0, asked.usable - beside) // _MIB * _MIB,
        first_us + sealed * each_us,
        cold_reads,
        cold_reads * asked.rate,
    )


def _wire_us(rate: float) -> list[float]:
    """WIRE_US of an index, of a worker and of a shard at this rate: on the logarithm of the rate between
    those that were measured, and beyond them as at the nearest one.

    >>> [[round(us, 1) for us in _wire_us(rate)] for rate in (1_000, 12_247, 10**6)]
    [[40.0, 30.0, 15.0], [25.0, 25.0, 9.0], [10.0, 20.0, 3.0]]
    """
    rates, *columns = (np.array(column) for column in zip(*WIRE_US, strict=True))
    return [float(np.interp(math.log(rate), np.log(rates), column)) for column in columns]


def _most(segments: int, shards: int) -> int:
    """Segments of the shard that has the most, with few exceptions; not more than there are."""
    mean = segments / shards
    return min(segments, math.ceil(mean + _SIGMAS * math.sqrt(mean * (1 - 1 / shards))))


def _too_few(settings: Settings, wanted: Settings, messages: int, asked: Asked, machines: int) -> str:
    """Why it cannot be done, with the fewest machines and the least memory that do it."""

    def fits(count: int, memory: int) -> bool:
        each = replace(asked, machine=memory)
        return _plan(settings, wanted, messages, each, count) is not None

    more = _least(machines, _MOST_MACHINES, lambda count: fits(count, asked.machine))
    larger = _least(asked.machine // _GIB, 1 << 14, lambda gib: fits(machines, gib * _GIB))
    ways = [f"{more:,} machines of this size"] if more is not None else []
    ways += [f"{machines:,} machines of {larger:,} GiB"] if larger is not None else []
    return (
        f"{machines} machines of {size_text(asked.machine)} cannot cover {duration_text(asked.cover_ms)} at "
        f"{asked.rate:,.12g} messages/s: {messages:,} kept messages; "
        + (
            "; ".join(ways) + " can"
            if ways
            else "ask for a shorter time, or give the index more near.threads"
        )
    )


def _least(low: int, high: int, is_enough: Callable[[int], bool]) -> int | None:
    """The least number above `low` that is enough; None if `high` is not. More is enough, too."""
    if not is_enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
