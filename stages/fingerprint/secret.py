"""The secret of digests, scopes and ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b, pbkdf2_hmac

from twinsieve.stages.errors import UsageError

KEY_BYTES = 16
"""Bytes of a key of SipHash. This module has no kernel, because settings are read without one."""

# The name of a secret is written to files, logs and topics that others may read. Whoever guesses seeds has
# to hash each guess in this number of rounds, which takes about 20 ms.
_GUESS_ROUNDS = 100_000


@dataclass(frozen=True, slots=True)
class Secret:
    """What keys digests, scopes and ids, and a name that tells nothing about it.

    name: 32 hex digits, the same for the same secret; `none` without one
    value: None if only the name is known, as to a shard, which makes no digests

    >>> Secret.of_seed(7) == Secret.of_seed(7) != Secret.of_seed(8), Secret.of_seed(0), Secret.of_seed(7)
    (True, Secret(name='none'), Secret(name='75edad2126134dba35fa86daae116727'))
    """

    name: str
    value: bytes | None = field(repr=False)

    @classmethod
    def of_key(cls, key: bytes) -> Secret:
        """The secret of 16 random bytes. raises: UsageError for another number"""
        if len(key) != KEY_BYTES:
            raise UsageError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        return cls(pbkdf2_hmac("sha256", key, b"twinsieve secret", _GUESS_ROUNDS, 16).hex(), key)

    @classmethod
    @cache
    def of_seed(cls, seed: int) -> Secret:
        """The secret of an operator's number below 2^64; 0 is none."""
        if not seed:
            return NO_SECRET
        made = blake2b(seed.to_bytes(8, "little"), digest_size=KEY_BYTES, person=b"twinsieve seed")
        return cls.of_key(made.digest())

    @classmethod
    def named(cls, name: str) -> Secret:
        """A secret of which only the name is known."""
        return NO_SECRET if name == NO_SECRET.name else cls(name, None)

    @property
    def bytes(self) -> bytes:
        """The value; empty for none. raises: UsageError if only the name is known"""
        if self.value is None:
            raise UsageError(f"the secret {self.name} is not known here, so nothing can be hashed with it")
        return self.value


NO_SECRET = Secret("none", b"")
