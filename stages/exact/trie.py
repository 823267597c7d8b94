"""`TrieTiers`: finds the newest kept message of a digest, without false hits.

New messages go into a small hash table, the head. A full head is sealed into a tier: an index around a
marisa trie that never changes again.

>>> tiers = TrieTiers(Window(messages=1_000))
>>> digests = np.arange(6, dtype=np.uint64).reshape(3, 2)
>>> columns = np.array([50, 51]), np.array([0, 1]), np.array([9_000, 9_005])
>>> tiers.add(digests[:2], *columns)
>>> is_hit, leaders, kept, times_ms = tiers.find(digests)
>>> is_hit.tolist(), leaders[:2].tolist()
([True, True, False], [50, 51])
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_LEADER, NO_TIME, Window
from twinsieve.stages.exact.runs import FrozenPart, FrozenStage, Run, covering, gone, runs_in, similar
from twinsieve.stages.exact.sections import SectionReader, Sections
from twinsieve.stages.exact.trie_head import Entries, TrieHead
from twinsieve.stages.exact.trie_tier import SealedTier, tier_from_sections, tier_to_sections
from twinsieve.stages.exact.window import check_window

_MAX_HEAD = 2**18
_MAX_TIER = 2**20
_FAN_OUT = 4
_NO_LIMIT = 2**63 - 1
_HEAD = "head"

_BYTES_A_KEY = 34
_BYTES_A_TIER = 8_192
_MERGE_BYTES_A_KEY = 150
"""Greatest memory of a key, of a tier, and of a key during a merge; measured by bench/exact_trie.py."""


class TierSizes(NamedTuple):
    """How many entries the head and the tiers have.

    head: entries of a full head
    fan_out: number of tiers of one level that are merged into one tier of the next level
    largest: greatest number of entries of a merged tier
    """

    head: int
    fan_out: int
    largest: int


def tier_sizes(window: Window) -> TierSizes:
    """The sizes for a window: small parts of the window with a fixed maximum, so that sealing is never slow.

    A full head is sealed. `fan_out` tiers of one level are merged into one tier of the next level, as long as
    the result has at most `largest` entries (a quarter of the window, at most 1,048,576). As a result, each
    entry is built into a trie twice, a look-up searches about 3 + messages / 1,048,576 tiers, and the
    entries of the oldest tier that have left the window are at most a quarter of it.
    """
    head = min(_MAX_HEAD, max(1_024, window.messages // 32))
    return TierSizes(head, _FAN_OUT, min(_MAX_TIER, max(head, window.messages // 4)))


class TrieTiers:
    """For each digest of kept messages: position, kept index and time of its newest message.

    It holds all entries inside the window, and some that have left it, so the caller must check kept index
    and time. The window determines the memory (`bytes_for`). Call it once for a chunk, not for each message.
    raises: UsageError for an invalid window
    """

    def __init__(self, window: Window, sizes: TierSizes | None = None) -> None:
        check_window(window)
        self.window = window
        self.sizes = tier_sizes(window) if sizes is None else sizes
        self.head = TrieHead(self.sizes.head)
        self.tiers: list[SealedTier] = []
        self.kept_count = 0
        self.stream_time_ms = NO_TIME
        self.first_time_ms = NO_TIME

    def find(
        self, digests: NDArray[np.uint64], before: int = _NO_LIMIT
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Look up the newest entry of each digest.

        digests: uint64[n, 2]
        before: entries from this kept index on need not be found, because the caller has them elsewhere
        returns: bool[n], whether there is an entry; int64[n], its position or NO_LEADER; int64[n], its kept
            index or -1; int64[n], its time in ms or NO_TIME
        """
        n = len(digests)
        is_hit = np.zeros(n, dtype=np.bool_)
        leaders = np.full(n, NO_LEADER, dtype=np.int64)
        kept = np.full(n, -1, dtype=np.int64)
        times = np.full(n, NO_TIME, dtype=np.int64)
        if self.head.count and self.head.entries.kept[0] < before:
            rows = self.head.find(digests)
            here = np.flatnonzero(rows >= 0)
            _, leaders[here], kept[here], times[here] = self.head.entries.take(rows[here])
            is_hit[here] = True
        left = np.flatnonzero(~is_hit)
        for tier in reversed(self.tiers):
            if tier.oldest_kept >= before:
                continue
            rows = tier.find(digests[left])
            hits = rows >= 0
            here, rows = left[hits], rows[hits]
            is_hit[here] = True
            leaders[here] = tier.positions.values(rows)
            kept[here] = tier.kept_at(rows)
            times[here] = tier.times.values(rows)
            left = left[~hits]
            if len(left) == 0:
                break
        return is_hit, leaders, kept, times

    def add(
        self,
        digests: NDArray[np.uint64],
        leaders: NDArray[np.int64],
        kept_indices: NDArray[np.int64],
        times_ms: NDArray[np.int64],
    ) -> None:
        """Add kept messages; each becomes the newest of its digest.

        digests: uint64[n, 2]; leaders: int64[n], positions of the messages
        kept_indices: int64[n], ascending, greater than all added before
        times_ms: int64[n], stream times, not less than any added before
        A full head is sealed, which takes about 1 µs for each entry that is merged.
        """
        entries = Entries(digests, leaders, kept_indices, times_ms)
        done = 0
        while done < len(kept_indices):
            if self.head.room == 0:
                self._seal()
            part = entries.take(slice(done, done + self.head.room))
            self.head.add(part)
            done += len(part.kept)
            self.expire(int(part.kept[-1]) + 1, int(part.times_ms[-1]))

    def positions(self) -> list[list[int]]:
        """Smallest and greatest position of each tier and of the head, if they have entries."""
        columns = [tier.positions.values(np.arange(len(tier))) for tier in self.tiers]
        columns.append(self.head.entries.positions[: self.head.count])
        return [[int(column.min()), int(column.max())] for column in columns if len(column)]

    def expire(self, kept_count: int, stream_time_ms: int) -> None:
        """Remove tiers whose newest entry has left the window, and empty the head if its newest entry has.

        stream_time_ms: NO_TIME before the first message with a time; entries added before it count as added
            at the first stream time
        """
        self.kept_count = kept_count
        self.stream_time_ms = stream_time_ms
        if self.first_time_ms == NO_TIME:
            self.first_time_ms = stream_time_ms
        while self.tiers and not self._inside(self.tiers[0].newest_kept, self.tiers[0].newest_time_ms):
            del self.tiers[0]
        head, newest = self.head.entries, self.head.count - 1
        if newest >= 0 and not self._inside(head.kept[newest], head.times_ms[newest]):
            self.head.clear()

    def freeze(self, have: Collection[str] = ()) -> FrozenStage:
        """The state as it is now. Parts are the tiers, and runs of the entries in the head.

        have: names of parts that were written; only what is not in them is copied
        """
        runs, in_files = self._head_runs(have), frozenset(have)
        sections: Sections = {
            "parameters": self._parameters(),
            "clock": np.array(
                [self.kept_count, self.stream_time_ms, self.first_time_ms, len(self.tiers)], dtype=np.int64
            ),
            "runs": np.array(runs, np.int64).reshape(-1, 2),
        }
        parts = {
            str(number): FrozenPart(
                f"tier-{tier.oldest_kept}-{tier.newest_kept}", partial(tier_to_sections, tier)
            )
            for number, tier in enumerate(self.tiers)
        }
        for number, run in enumerate(runs):
            name = run.named(_HEAD)
            if name in in_files:
                parts[f"run{number}"] = FrozenPart(name, partial(gone, name))
                continue
            rows = slice(*np.searchsorted(self._head_kept(), run).tolist())
            entries = Entries(*(column.copy() for column in self.head.entries.take(rows)))
            parts[f"run{number}"] = FrozenPart(name, entries._asdict)
        return FrozenStage(sections, parts)

    def _head_kept(self) -> NDArray[np.int64]:
        return self.head.entries.kept[: self.head.count]

    def _head_runs(self, have: Collection[str]) -> list[Run]:
        """The runs of the head's entries: those that were written, joined where they are many, and the rest
        as another one."""
        if self.head.count == 0:
            return []
        first, newest = self._head_kept()[[0, -1]].tolist()
        runs = covering(runs_in(have, _HEAD, first), first, newest + 1)
        at = runs[-1].end if runs else first
        if at <= newest:
            runs.append(Run(at, newest + 1))
        while group := similar(runs, self.sizes.head):
            start = runs.index(group[0])
            runs[start : start + len(group)] = [Run(group[0].first, group[-1].end)]
        return runs

    @classmethod
    def from_sections(
        cls, sections: Mapping[str, NDArray[np.generic]], window: Window, sizes: TierSizes | None = None
    ) -> TrieTiers:
        """The tiers from a saved state. raises: StateError if it has other settings or is damaged"""
        loaded = cls(window, sizes)
        reader = SectionReader("trie", sections)
        reader.same_parameters(_PARAMETERS, loaded._parameters())
        kept_count, stream_time_ms, first_time_ms, tiers = reader.array("clock", np.int64, (4,)).tolist()
        loaded._restore_head(reader)
        for number in range(tiers):
            loaded.tiers.append(tier_from_sections(reader.within(f"{number}.")))
        if not loaded._is_in_order(kept_count) or tiers < 0:
            raise reader.damaged("tiers are not in order")
        loaded.kept_count = kept_count
        loaded.stream_time_ms = stream_time_ms
        loaded.first_time_ms = first_time_ms
        return loaded

    def _restore_head(self, reader: SectionReader) -> None:
        """Add the entries of the saved runs. raises: StateError"""
        at = -1
        for number, run in enumerate(starmap(Run, reader.array("runs", np.int64, (None, 2)).tolist())):
            part = reader.within(f"run{number}.")
            kept = part.array("kept", np.int64, (None,)).astype(np.int64)
            count = len(kept)
            digests = part.array("digests", np.uint64, (count, 2)).astype(np.uint64)
            positions = part.array("positions", np.int64, (count,)).astype(np.int64)
            times_ms = part.array("times_ms", np.int64, (count,)).astype(np.int64)
            if at >= run.end or not ((kept >= run.first) & (kept < run.end)).all():
                raise reader.damaged("runs of the head are not in order")
            entries = Entries(digests, positions, kept, times_ms).take(np.flatnonzero(kept >= at))
            if len(entries.kept) > self.head.room:
                raise reader.damaged(
                    f"the head has more entries than the {self.sizes.head} that are possible"
                )
            self.head.add(entries)
            at = run.end

    def _is_in_order(self, kept_count: int) -> bool:
        levels = [tier.level for tier in self.tiers]
        newest = [tier.newest_kept for tier in self.tiers]
        newest += self.head.entries.kept[: self.head.count].tolist()
        ascending = all(index < next_index for index, next_index in pairwise([*newest, kept_count]))
        return ascending and levels == sorted(levels, reverse=True)

    def _parameters(self) -> NDArray[np.int64]:
        age_ms = -1 if self.window.age_ms is None else self.window.age_ms
        return np.array([self.window.messages, age_ms, *self.sizes], dtype=np.int64)

    @staticmethod
    def bytes_for(window: Window) -> int:
        """Greatest number of bytes for this window, including the temporary memory of a merge.

        It holds if times within 128 messages are less than 4 hours apart and nobody forged digests; positions
        may have any size. Otherwise a key may take 20 bytes more. raises: UsageError
        """
        check_window(window)
        sizes = tier_sizes(window)
        entries = window.messages + sizes.largest
        tiers = entries // sizes.largest + 3 * sizes.fan_out
        return (
            TrieHead.bytes_for(sizes.head)
            + entries * _BYTES_A_KEY
            + tiers * _BYTES_A_TIER
            + sizes.largest * _MERGE_BYTES_A_KEY
        )

    @property
    def bytes_used(self) -> int:
        """Bytes of the head and all tiers."""
        return TrieHead.bytes_for(self.sizes.head) + sum(tier.bytes_used for tier in self.tiers)

    def __len__(self) -> int:
        return self.head.count + sum(len(tier) for tier in self.tiers)

    def _inside(self, kept: Any, times_ms: Any) -> Any:
        """Whether messages with these kept indices and times are inside the window; scalars or arrays."""
        inside = self.kept_count - kept <= self.window.messages
        if self.window.age_ms is not None and self.stream_time_ms != NO_TIME:
            added = np.where(times_ms == NO_TIME, self.first_time_ms, times_ms)
            inside &= self.stream_time_ms - added <= self.window.age_ms
        return inside

    def _seal(self) -> None:
        """Merge the head with all tiers of consecutive full levels into one new tier. Then empty the head.

        A level is full if it has `fan_out` - 1 tiers; the new tier is the missing one.
        """
        merged = [self.head.entries.take(slice(0, self.head.count))]
        level = 0
        size = self.sizes.head
        fan_out = self.sizes.fan_out
        while size * fan_out <= self.sizes.largest and self._tiers_of(level) == fan_out - 1:
            size *= fan_out
            merged += [self.tiers.pop().entries() for _ in range(fan_out - 1)]
            level += 1
        columns = zip(*reversed(merged), strict=True)
        entries = _newest_of_each(Entries(*(np.concatenate(parts) for parts in columns)))
        entries = entries.take(np.flatnonzero(self._inside(entries.kept, entries.times_ms)))
        if len(entries.kept) > 0:
            self.tiers.append(SealedTier.of(level, entries))
        self.head.clear()

    def _tiers_of(self, level: int) -> int:
        return sum(tier.level == level for tier in self.tiers)


_PARAMETERS = (
    "exact.window.messages",
    "exact.window.age_ms",
    "entries of the head",
    "fan-out",
    "entries of the largest tier",
)


def _newest_of_each(entries: Entries) -> Entries:
    """The entries without those whose digest a later entry has."""
    first = entries.digests[:, 0]
    order = np.argsort(first)
    ascending = first[order]
    if not (ascending[1:] == ascending[:-1]).any():
        return entries
    order = np.lexsort((entries.kept, entries.digests[:, 1], first))
    ordered = entries.digests[order]
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return entries.take(np.sort(order[last]))
