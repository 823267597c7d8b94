"""datasketch: MinHashLSH with 128 hashes; its candidates count as similar."""

from __future__ import annotations

from itertools import count

from datasketch import MinHash, MinHashLSH

from bench.peers.bodies import SIMILARITY, grams
from bench.peers.loop import Near

_HASHES = 128


def near() -> Near:
    """See `bench.peers.loop`."""
    index = MinHashLSH(threshold=SIMILARITY, num_perm=_HASHES)
    numbers = count()

    def repeats(body: str) -> bool:
        minhash = MinHash(_HASHES)
        minhash.update_batch([gram.encode() for gram in grams(body)])
        if index.query(minhash):
            return True
        index.insert(next(numbers), minhash)
        return False

    return repeats
