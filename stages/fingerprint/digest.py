"""128-bit digests of the exact stage."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import Bodies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.hashing import Hash, hash_bytes, hash_code_points, hash_texts, joined_texts

Keys = Sequence[bytes] | Sequence[str]
"""One exact key for each row: bytes, which are digested as they are, or raw texts, each as its `text_key`."""


def text_key(text: str) -> bytes:
    """The bytes of a raw text as an exact key: its type, its length in bytes, and UTF-8.

    >>> text_key("é")
    b's2:\\xc3\\xa9'
    """
    content = text.encode("utf-8", "surrogatepass")
    return b"s%d:%b" % (len(content), content)


def digests(config: DigestConfig, bodies: Bodies, keys: Keys | None = None) -> NDArray[np.uint64]:
    """uint64[n, 2]: digest of each row's key text, or of keys[i] if there are keys.

    A key text is hashed as its code points in little-endian uint32, because then lone surrogates and NUL need
    no encoding. The two words are the halves of the 16 digest bytes, little-endian.
    raises: UsageError if there is not one key per row

    >>> import mmh3
    >>> bodies = Bodies(np.array([97], np.uint32), np.array([0, 1]), *[np.zeros(1, np.uint8)] * 5)
    >>> digests(DigestConfig(), bodies).tobytes() == mmh3.mmh3_x64_128_digest(b"a\\0\\0\\0")
    True
    """
    if keys is not None and len(keys) != len(bodies):
        raise UsageError(f"{len(keys)} keys for {len(bodies)} rows; give one key per row")
    made = np.empty((len(bodies), 2), np.uint64)
    secret = config.secret.bytes
    by = Hash.of("digest", secret)
    is_fast = config.method == "mmh3"
    if keys is None:
        chars = np.ascontiguousarray(bodies.chars)
        if is_fast:
            hash_code_points(chars, bodies.starts, by, made)
            return made
        view = chars.astype("<u4", copy=False).view(np.uint8).data
        cuts = (bodies.starts * 4).tolist()
        values: Sequence[bytes | memoryview] = [view[start:end] for start, end in pairwise(cuts)]
    elif _are_texts(keys):
        if is_fast and hash_texts(joined_texts(keys), by, made, as_keys=True):
            return made
        values = [text_key(key) for key in keys]
    else:
        values = cast("Sequence[bytes]", keys)
    if is_fast:
        hash_bytes(values, by, made)
        return made
    digested = [blake2b(value, digest_size=16, key=secret).digest() for value in values]
    return np.frombuffer(b"".join(digested), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _are_texts(keys: Keys) -> TypeGuard[Sequence[str]]:
    return len(keys) > 0 and isinstance(keys[0], str)
