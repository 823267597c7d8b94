"""simhash: an index of 64-bit SimHashes of characters and pairs, at most 3 bits apart."""

from __future__ import annotations

from itertools import count

from simhash import Simhash, SimhashIndex

from bench.peers.bodies import grams
from bench.peers.loop import Near

_BITS_APART = 3


def near() -> Near:
    """See `bench.peers.loop`."""
    index = SimhashIndex([], k=_BITS_APART)
    numbers = count()

    def repeats(body: str) -> bool:
        simhash = Simhash(grams(body))
        if index.get_near_dups(simhash):
            return True
        index.add(str(next(numbers)), simhash)
        return False

    return repeats
