"""gaoya: an index of strings, with pairs of characters and 128 hashes."""

from __future__ import annotations

from itertools import count

from gaoya.minhash import MinHashStringIndex

from bench.peers.bodies import SIMILARITY
from bench.peers.loop import Near


def near() -> Near:
    """See `bench.peers.loop`."""
    index = MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=SIMILARITY,
        num_bands=16,
        band_size=8,
        analyzer="char",
        ngram_range=(1, 2),
    )
    numbers = count()

    def repeats(body: str) -> bool:
        if index.query(body):
            return True
        index.insert_document(next(numbers), body)
        return False

    return repeats
