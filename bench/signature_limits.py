"""How many bits of signatures differ in pairs of real posts that are alike: the limits in `window.lengths`.

    python -m bench.signature_limits

The limits for the 24 bits that stand beside the bits of a key are chosen on two sets: the least that keeps
.998 of the pairs of each. The other sets are left out of the choice. Pairs: both bodies have at least
PARITY_BELOW characters; they are at least as much alike as the first column says; of pairs with equal band
keys one counts. Printed is the share of pairs that a limit keeps. Data: TWINSIEVE_DATA.
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
from twinsieve.pipeline.evaluate.truth import read_pairs
from twinsieve.stages.contract import PARITY_BELOW
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.window.buckets import SIGNATURE_MASK

_CHOSEN_ON = (WEIBO, POOLED[0])
_LEFT_OUT = (*POOLED[1:], *ALPHABETS)
_LEAST_SHARE = 0.998
_FLOORS = (9_500, 9_000, 8_500, 8_000, 7_000)


class AlikePairs(NamedTuple):
    """n pairs of one set.

    similarities: int64[n], out of SIMILARITY_SCALE; differing: int64[n], how many of the 24 bits differ
    """

    similarities: NDArray[np.int64]
    differing: NDArray[np.int64]

    def share(self, floor: int, limit: int) -> float:
        """Share of the pairs that are at least `floor` alike of which no more than `limit` bits differ."""
        return float(np.mean(self.differing[self.similarities >= floor] <= limit))


def alike_pairs(data: DataSet) -> AlikePairs:
    """The pairs of a set whose bodies differ, and are long enough for signatures of MinHash values."""
    with gzip.open(data.texts) as lines:
        rows = [orjson.loads(line) for line in lines]
    numbers = {str(row["id"]): number for number, row in enumerate(rows)}
    bodies, fingerprints = Scheme(scheme_of(data)).read([row["text"] for row in rows])
    found: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    for pair in read_pairs(data.pairs):
        two = [numbers[pair.later], numbers[pair.earlier]]
        if pair.equal or min(bodies.body_lengths[two]) < PARITY_BELOW:
            continue
        one, other = fingerprints.signatures[two]
        differing = int(np.bitwise_count((one ^ other) & np.uint32(SIGNATURE_MASK)))
        keys = (fingerprints.band_keys[two[0]].tobytes(), fingerprints.band_keys[two[1]].tobytes())
        found.setdefault(keys, (pair.similarity, differing))
    return AlikePairs(*np.array([*found.values()], np.int64).reshape(-1, 2).T)


def main() -> None:
    """Prints machine, and a row for each set and floor of similarity."""
    print(machine_line())
    sets = {data.name: alike_pairs(data) for data in (*_CHOSEN_ON, *_LEFT_OUT)}
    table = Table("at least alike", "limit", *sets)
    table.add_row("pairs", "", *(str(len(pairs.similarities)) for pairs in sets.values()))
    for floor in _FLOORS:
        limit = next(
            limit
            for limit in range(25)
            if all(sets[data.name].share(floor, limit) >= _LEAST_SHARE for data in _CHOSEN_ON)
        )
        shares = [
            f"{pairs.share(floor, limit):.4f}" if (pairs.similarities >= floor).any() else "no pair"
            for pairs in sets.values()
        ]
        table.add_row(f"{floor / 10_000:g}", str(limit), *shares)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
