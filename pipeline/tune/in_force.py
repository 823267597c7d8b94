"""What the user's settings do with a sample: clusters, reasons, windows, and how similar the pairs are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.tune.alone import similarities_of
from twinsieve.pipeline.tune.label_pairs import Candidate, candidates_of
from twinsieve.pipeline.tune.sweep import SIMILARITIES, Judgement, Prepared, WithKeys, judge
from twinsieve.stages.contract import (
    NO_LEADER,
    OFF,
    SIMILARITY_SCALE,
    Kind,
    SieveConfig,
    Verdicts,
    largest_window,
)
from twinsieve.stages.differ.rules import counts_by_name

AGES = ("1h", "6h", "24h", "7d")
_SHORTEST_AGE_MS = 3_600_000
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
SIZES = (2, 3, 4, 6, 11, 31, 101, 1_001)
"""First sizes of the classes of clusters; the last class has no end."""


@dataclass(frozen=True, slots=True)
class WindowDrops:
    """What a window drops.

    name: for people; keys: the settings that make it
    """

    name: str
    keys: dict[str, str]
    exact: int
    near: int

    @property
    def dropped(self) -> int:
        """Number of dropped messages."""
        return self.exact + self.near


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of pairs by similarity, a message beside the kept one that it is like.

    edges: low ends of the bins, out of SIMILARITY_SCALE
    dropped: pairs whose later message is dropped at the least similarity tried
    apart: pairs that a rule keeps apart there; not_compared: those of them that have no similarity
    """

    edges: list[int]
    dropped: list[int]
    apart: list[int]
    not_compared: int


@dataclass(frozen=True, slots=True)
class Clusters:
    """Kept messages with the messages that were dropped for them.

    sizes: (first size of a class, number of clusters, messages dropped), the kept message counted in a size
    biggest: (position of the kept message, messages dropped for it), most first
    leaderless: dropped messages whose leader has left the window, so that it is unknown
    """

    sizes: list[tuple[int, int, int]]
    biggest: list[tuple[int, int]]
    leaderless: int


@dataclass(slots=True)
class InForce:
    """What the user's settings do. Filled by `look`, which `sweep` calls."""

    settings: Settings
    with_keys: WithKeys
    time_span_ms: int | None
    messages: int = 0
    exact: int = 0
    near: int = 0
    kept_apart: dict[str, int] = field(default_factory=dict)
    read_s: float = 0.0
    judge_s: float = 0.0
    bytes_used: int = 0
    clusters: Clusters = field(default_factory=lambda: Clusters([], [], 0))
    histogram: Histogram = field(default_factory=lambda: Histogram([], [], [], 0))
    windows: list[WindowDrops] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def drop_share(self) -> float:
        """Share of the messages that are dropped, 0 to 1."""
        return (self.exact + self.near) / self.messages if self.messages else 0.0

    @property
    def by_age(self) -> bool:
        """Whether windows are tried by time: the messages have times, and cover more than the first age."""
        return self.time_span_ms is not None and self.time_span_ms > _SHORTEST_AGE_MS

    def caught(self, window: WindowDrops) -> float:
        """Share of the duplicates that a window catches, of those that the widest window catches."""
        return window.dropped / self.windows[-1].dropped if self.windows[-1].dropped else 1.0

    def look(self, prepared: Prepared, pool: ThreadPoolExecutor) -> None:
        """Judge with the user's settings, if this is their scheme and they were not judged before."""
        own = sieve_config(self.settings, prepared.scheme_id)
        if self.messages or not any(curve.is_own for curve in prepared.curves):
            return
        config = replace(own, near=replace(own.near, threads=1))
        at_least = replace(config, near=replace(config.near, similarity=SIMILARITIES[0]))
        widest = replace(
            at_least,
            near=replace(at_least.near, differences=at_least.near.differences._replace(level=OFF)),
        )
        judged = pool.submit(judge, prepared.batches, config)
        low = pool.submit(judge, prepared.batches, at_least)
        free = pool.submit(judge, prepared.batches, widest)
        self._count(judged.result(), prepared.read_s)
        positions = np.concatenate([batch.positions for batch in prepared.batches])
        self.histogram = _histogram(prepared, positions, low.result().verdicts, at_least)
        self.candidates = candidates_of(prepared.batches, free.result().verdicts)
        asked = windows_of(self.settings, self.messages, by_age=self.by_age)
        self.windows = list(pool.map(lambda each: self._window(prepared, *each), asked))

    def _count(self, judgement: Judgement, read_s: float) -> None:
        verdicts = judgement.verdicts
        self.messages = len(verdicts)
        self.exact = int(np.count_nonzero(verdicts.kinds == Kind.EXACT))
        self.near = int(np.count_nonzero(verdicts.kinds == Kind.NEAR))
        self.kept_apart = counts_by_name(verdicts.reasons[verdicts.kinds == Kind.UNIQUE])
        self.read_s, self.judge_s, self.bytes_used = read_s, judgement.cpu_s, judgement.bytes_used
        self.clusters = clusters_of(verdicts)

    def _window(self, prepared: Prepared, name: str, keys: dict[str, str]) -> WindowDrops:
        config = sieve_config(self.with_keys(keys), prepared.scheme_id)
        config = replace(config, near=replace(config.near, threads=1))
        kinds = judge(prepared.batches, config).verdicts.kinds
        exact, near = (int(np.count_nonzero(kinds == kind)) for kind in (Kind.EXACT, Kind.NEAR))
        return WindowDrops(name, keys, exact, near)


def windows_of(settings: Settings, messages: int, *, by_age: bool) -> list[tuple[str, dict[str, str]]]:
    """The windows that are tried, as (name, keys), the widest one last: it holds the whole sample.

    messages: number of messages in the sample
    by_age: whether windows are times, or else numbers of kept messages

    >>> [name for name, _ in windows_of(Settings(), 5000, by_age=False)]
    ['1,000 kept', 'no limit']
    >>> [name for name, _ in windows_of(Settings(), 5000, by_age=True)]
    ['1 h', '6 h', '24 h', '7 d', 'no limit']
    """
    largest = largest_window(settings.near.method)
    # The index of a larger window finds a little more. So a window that time limits has the user's size.
    holds_all = {
        "near.window.messages": str(min(max(messages, settings.near.window.messages), largest)),
        "exact.window.messages": str(max(messages, settings.exact.window.messages)),
    }
    if by_age:
        asked = [(f"{age[:-1]} {age[-1]}", holds_all | _aged(age)) for age in AGES]
    else:
        asked = [
            (
                f"{count:,} kept",
                {"near.window.messages": str(count), "exact.window.messages": str(count)} | _aged("none"),
            )
            for count in COUNTS
            if count < messages
        ]
    return [*asked, ("no limit", holds_all | _aged("none"))]


def _aged(age: str) -> dict[str, str]:
    return {"near.window.age": age, "exact.window.age": age}


def clusters_of(verdicts: Verdicts, most: int = 10) -> Clusters:
    """The clusters of these verdicts. most: how many of the biggest ones are named"""
    dropped = verdicts.kinds != Kind.UNIQUE
    leaders = verdicts.leaders[dropped]
    known, counts = np.unique(leaders[leaders != NO_LEADER], return_counts=True)
    sizes = counts + 1
    classes: NDArray[np.int64] = np.searchsorted(SIZES, sizes, side="right") - 1
    by_class = [
        (first, int(np.count_nonzero(classes == number)), int(counts[classes == number].sum()))
        for number, first in enumerate(SIZES)
    ]
    # Equal counts stand in the order of the sample.
    order = np.argsort(-counts, kind="stable")[:most]
    return Clusters(
        [one for one in by_class if one[1]],
        list(zip(known[order].tolist(), counts[order].tolist(), strict=True)),
        int(np.count_nonzero(leaders == NO_LEADER)),
    )


def _histogram(
    prepared: Prepared, positions: NDArray[np.int64], low: Verdicts, config: SieveConfig
) -> Histogram:
    near = low.kinds == Kind.NEAR
    matched, compared = low.matched[near].astype(np.int64), low.compared[near].astype(np.int64)
    apart = (low.kinds == Kind.UNIQUE) & (low.reasons > 0) & (low.apart_from != NO_LEADER)
    alike = similarities_of(prepared.batches, positions[apart], low.apart_from[apart], config)
    edges = np.arange(SIMILARITIES[0], SIMILARITY_SCALE, 100)
    return Histogram(
        edges.tolist(),
        _binned(matched * SIMILARITY_SCALE // compared, edges),
        _binned(alike[alike >= 0], edges),
        int(np.count_nonzero(alike < 0)),
    )


def _binned(similarities: NDArray[np.int64], edges: NDArray[np.int64]) -> list[int]:
    """The last bin holds 1 too."""
    bins = np.clip(np.searchsorted(edges, similarities, side="right") - 1, 0, len(edges) - 1)
    counts: list[int] = np.bincount(bins, minlength=len(edges)).tolist()
    return counts
