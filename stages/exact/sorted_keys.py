"""`SortedKeys`: the keys of a tier that was read from a file, in place of a trie.

marisa-trie reads the bytes of a saved trie unchecked, and some make it read foreign memory. So a file has
the digests, in ascending order, and these are searched until the tier is merged into one with a trie. They
take a byte a key more, and building a trie would take a second and more for a million keys.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray


class SortedKeys:
    """What a `SealedTier` asks of a trie; the ids are the ranks of the digests.

    digests: uint64[n, 2], ascending

    >>> keys = SortedKeys(np.array([[1 << 32, 5], [7 << 32, 6]], np.uint64))
    >>> keys.get((7).to_bytes(4, "big"), -1), keys.get((8).to_bytes(4, "big"), -1)
    (1, -1)
    """

    def __init__(self, digests: NDArray[np.uint64]) -> None:
        self._prefixes = (digests[:, 0] >> np.uint64(32)).astype(np.uint32)
        # Indexing it is ten times as fast as indexing the array.
        self._searched = memoryview(self._prefixes)
        equal = self._prefixes[1:] == self._prefixes[:-1]
        shared = np.flatnonzero(np.append(equal, False) | np.insert(equal, 0, False))
        self._shared = {digests[at].astype(">u8").tobytes(): at for at in shared.tolist()}
        """The few digests that share their first 4 bytes, whole."""

    def get(self, key: bytes, default: int) -> int:
        """The id of a key: of the first 4 bytes of a digest that alone has them, else of all 16."""
        if len(key) > 4:
            return self._shared.get(key, default)
        prefix, searched = int.from_bytes(key, "big"), self._searched
        at = bisect_left(searched, prefix)
        if (
            at == len(searched)
            or searched[at] != prefix
            or (at + 1 < len(searched) and searched[at + 1] == prefix)
        ):
            return default
        return at

    def restore_key(self, number: int) -> bytes:
        """The first 4 bytes of the digest of an id."""
        return self._searched[number].to_bytes(4, "big")

    def __len__(self) -> int:
        return len(self._prefixes)

    @property
    def nbytes(self) -> int:
        """Bytes of the prefixes."""
        return self._prefixes.nbytes
