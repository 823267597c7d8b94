"""How many bits of signatures differ in pairs of real posts that are alike: the limits in `window.lengths`.

    python -m bench.signature_limits

The limits for the 24 bits that stand beside the bits of a key are chosen on two sets; the others are left out
of the choice. Pairs: both bodies have at least PARITY_BELOW characters; they are at least as much alike as
the first column says; of pairs with equal band keys one counts.
First table: the least limit that keeps .998 of the pairs of each of the two sets. Printed is the share of
pairs that it keeps.
Second table: the least limit for entries that one look-up alone finds, which loses at most .002 of the pairs
of each of the two sets that look-ups find, if half of all entries were pushed out of their buckets. Printed
is the share that it loses, and behind it the same if no entry was pushed out.
Data: TWINSIEVE_DATA.
"""

from __future__ import annotations

import gzip
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.data_sets import ALPHABETS, POOLED, WEIBO, DataSet
from tests.accuracy.quality import scheme_of
from twinsieve.pipeline.tools.evaluate.truth import read_pairs
from twinsieve.stages.contract import PARITY_BELOW, BandLayout, Fingerprints
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.window.buckets import SIGNATURE_MASK

_CHOSEN_ON = (WEIBO, POOLED[0])
_LEFT_OUT = (*POOLED[1:], *ALPHABETS)
_LEAST_SHARE, _MOST_LOST = 0.998, 0.002
_FLOORS = (9_500, 9_000, 8_500, 8_000, 7_000)


class AlikePairs(NamedTuple):
    """n pairs of one set.

    similarities: int64[n], out of SIMILARITY_SCALE; differing: int64[n], how many of the 24 bits differ
    look_ups: int64[n], how many look-ups of the later one find the earlier one
    """

    similarities: NDArray[np.int64]
    differing: NDArray[np.int64]
    look_ups: NDArray[np.int64]

    def from_floor(self, floor: int) -> AlikePairs:
        """The pairs that are at least `floor` alike."""
        return AlikePairs(*(column[self.similarities >= floor] for column in self))

    def share(self, limit: int) -> float:
        """Share of the pairs of which no more than `limit` bits differ."""
        return float(np.mean(self.differing <= limit))

    def lost(self, limit: int, most: int, left: float) -> float:
        """Share of the found pairs that one look-up alone finds, and of which more than `limit` bits differ.

        most: allowed bits of the others; left: probability that an entry is still in its bucket
        """
        candidates = self.look_ups[self.differing <= most]
        found = 1 - (1 - left) ** candidates
        once = candidates * left * (1 - left) ** np.maximum(candidates - 1, 0)
        return float(once[self.differing[self.differing <= most] > limit].sum() / found.sum())


def alike_pairs(data: DataSet) -> AlikePairs:
    """The pairs of a set whose bodies differ, and are long enough for signatures of MinHash values."""
    with gzip.open(data.texts) as lines:
        rows = [orjson.loads(line) for line in lines]
    numbers = {str(row["id"]): number for number, row in enumerate(rows)}
    config = scheme_of(data)
    bodies, prints = Scheme(config).read([row["text"] for row in rows])
    found: dict[tuple[bytes, bytes], tuple[int, int, int]] = {}
    for pair in read_pairs(data.pairs):
        later, earlier = numbers[pair.later], numbers[pair.earlier]
        if pair.equal or min(bodies.body_lengths[[later, earlier]]) < PARITY_BELOW:
            continue
        bits = (prints.signatures[later] ^ prints.signatures[earlier]) & np.uint32(SIGNATURE_MASK)
        look_ups = int((prints.band_keys[later] == prints.band_keys[earlier]).sum())
        if min(bodies.body_lengths[[later, earlier]]) >= config.layout.simhash_from:
            look_ups += _tables_shared(prints, later, earlier, config.layout)
        keys = (prints.band_keys[later].tobytes(), prints.band_keys[earlier].tobytes())
        found.setdefault(keys, (pair.similarity, int(np.bitwise_count(bits)), look_ups))
    return AlikePairs(*np.array([*found.values()], np.int64).reshape(-1, 3).T)


def _tables_shared(prints: Fingerprints, later: int, earlier: int, layout: BandLayout) -> int:
    """SimHash tables in which a look-up of the later row finds the earlier one."""
    if not prints.has_simhash[[later, earlier]].all():
        return 0
    low, high = (prints.simhashes[later] ^ prints.simhashes[earlier]).tolist()
    differing, shared = low | high << 64, 0
    for table in range(layout.tables):
        first = table * 128 // layout.tables
        turned = differing >> first | differing << 128 - first
        weak = sum(1 << bit for bit in set(prints.weak_bits[later, table].tolist()))
        shared += turned & ((1 << layout.key_bits) - 1) & ~weak == 0
    return shared


def main() -> None:
    """Prints machine, and in each table a row for each floor of similarity."""
    print(machine_line())
    sets = {data.name: alike_pairs(data) for data in (*_CHOSEN_ON, *_LEFT_OUT)}
    chosen_on = [data.name for data in _CHOSEN_ON]
    all_found = Table("at least alike", "limit", *sets, title="differing bits of all pairs")
    once = Table("at least alike", "limit", *sets, title="of pairs that one look-up alone finds")
    all_found.add_row("pairs", "", *(str(len(pairs.similarities)) for pairs in sets.values()))
    for floor in _FLOORS:
        pairs = {name: each.from_floor(floor) for name, each in sets.items()}
        two = [pairs[name] for name in chosen_on]
        limit = next(n for n in range(25) if all(each.share(n) >= _LEAST_SHARE for each in two))
        one = next(n for n in range(25) if all(each.lost(n, limit, 0.5) <= _MOST_LOST for each in two))
        shares = (f"{each.share(limit):.4f}" if len(each.differing) else "no pair" for each in pairs.values())
        all_found.add_row(f"{floor / 10_000:g}", str(limit), *shares)
        lost = (
            f"{each.lost(one, limit, 0.5):.4f} {each.lost(one, limit, 1):.4f}"
            if len(each.differing)
            else "no pair"
            for each in pairs.values()
        )
        once.add_row(f"{floor / 10_000:g}", str(one), *lost)
    for table in (all_found, once):
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
