"""rensa: its own deduplicator, with 128 hashes."""

from __future__ import annotations

from itertools import count

from rensa import RMinHash, RMinHashDeduplicator

from bench.peers.bodies import SIMILARITY, grams
from bench.peers.loop import Near

_HASHES = 128


def near() -> Near:
    """See `bench.peers.loop`."""
    kept = RMinHashDeduplicator(threshold=SIMILARITY, num_perm=_HASHES, use_lsh=True, num_bands=16)
    numbers = count()

    def repeats(body: str) -> bool:
        minhash = RMinHash(num_perm=_HASHES, seed=42)
        minhash.update(grams(body))
        # `add` keeps it, unless it is a duplicate.
        return not kept.add(str(next(numbers)), minhash)

    return repeats
