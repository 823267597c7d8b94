"""rensa's LSH (96 hashes in 24 bands), whose candidates rapidfuzz compares: the best loop of one's own."""

from __future__ import annotations

from rapidfuzz import fuzz
from rensa import RMinHash, RMinHashLSH

from bench.peers.bodies import SIMILARITY, grams
from bench.peers.loop import Near

_HASHES, _BANDS = 96, 24


def near() -> Near:
    """See `bench.peers.loop`."""
    index = RMinHashLSH(threshold=0.5, num_perm=_HASHES, num_bands=_BANDS)
    kept: list[str] = []

    def repeats(body: str) -> bool:
        minhash = RMinHash(_HASHES, 42)
        minhash.update(grams(body))
        if any(fuzz.ratio(body, kept[one], score_cutoff=100 * SIMILARITY) for one in index.query(minhash)):
            return True
        index.insert(len(kept), minhash)
        kept.append(body)
        return False

    return repeats
