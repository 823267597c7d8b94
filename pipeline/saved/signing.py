"""`Signing`: keys that sign the files of a saved state, so that files of somebody without a key are refused.

Without a key a checksum is a MurmurHash3, which notices damage, and which anybody can make. With a key, all
checksums are keyed BLAKE2b: those in files, those of files in the manifest that names them, and that of the
manifest. So a manifest vouches for every byte that a restore reads. The digest of a signed file begins with
the number of its key, so that files stay readable that were written under an older key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from hmac import compare_digest
from typing import Protocol

import mmh3

from twinsieve.pipeline.saved import UnreadableError

SEAL_BYTES = 32
"""Bytes at the end of a manifest."""
_SUM_BYTES = 16


class RefusedError(UnreadableError):
    """No key that is accepted signed it. Whoever has another key may need it, and the files that it names."""


class Hasher(Protocol):
    """A hash of all bytes that it was given so far; `digest` has 16 bytes."""

    def update(self, data: bytes | memoryview, /) -> object:
        """Add these bytes."""

    def digest(self) -> bytes:
        """The hash."""


Hashes = Callable[[], Hasher]
"""Makes the hasher of one checksum."""

plain: Hashes = mmh3.mmh3_x64_128


class Signing:
    """How the files of one app are signed.

    keys: those that are accepted, the first one signs; none: nothing is signed
    takes_unsigned: whether files without a signature are accepted
    app: name of the app; files that were signed for another app are refused
    """

    def __init__(self, keys: Sequence[str] = (), *, takes_unsigned: bool = True, app: str = "") -> None:
        self.takes_unsigned = takes_unsigned
        self.keys = [_key_of(key, app) for key in keys]

    @property
    def hashes(self) -> Hashes:
        """For the checksums of a new file."""
        return _keyed(self.keys[0]) if self.keys else plain

    def told(self, checksum: str) -> str:
        """The digest of a new file as a manifest has it. checksum: hexadecimal, made by `hashes`"""
        return f"{_number(self.keys[0])}:{checksum}" if self.keys else checksum

    def not_of_first_key(self, digests: Iterable[str]) -> int:
        """How many of these digests of a manifest are of files that the first key did not sign."""
        newest = self.told("")
        return sum(not digest.startswith(newest) for digest in digests)

    def hashes_of(self, digest: str, name: str) -> Hashes:
        """For the checksums of a file with this digest in a manifest. name: of the file, for errors. raises:
        RefusedError"""
        number, colon, _ = digest.rpartition(":")
        for key in self.keys:
            if number == _number(key):
                return _keyed(key)
        if colon or not self.takes_unsigned:
            raise RefusedError(f"{name}: {_refusal(signed=bool(colon))}")
        return plain

    def sealer(self) -> Sealer:
        """The hash of a new manifest."""
        return _sealer(self.keys[0] if self.keys else b"")

    def check_seal(self, body: Iterable[bytes], end: bytes, name: str) -> None:
        """Check that an accepted key signed a manifest.

        body: the manifest but for its end; end: the hash in it; name: of the manifest, for errors
        raises: RefusedError
        """
        keys = [*self.keys, b""]
        sealers = [_sealer(key) for key in keys]
        for data in body:
            for sealer in sealers:
                sealer.update(data)
        signed_by = [
            key for key, sealer in zip(keys, sealers, strict=True) if compare_digest(sealer.digest(), end)
        ]
        if not signed_by or (not signed_by[0] and not self.takes_unsigned):
            raise RefusedError(f"{name}: {_refusal(signed=not signed_by)}")


class Sealer(Protocol):
    """The hash of a manifest; `digest` has 32 bytes."""

    def update(self, data: bytes, /) -> object:
        """Add these bytes."""

    def digest(self) -> bytes:
        """The hash."""


def _sealer(key: bytes) -> Sealer:
    return hashlib.blake2b(digest_size=SEAL_BYTES, key=key)


def checksum_in(digest: str) -> str:
    """The checksum in a digest of a manifest."""
    return digest.rpartition(":")[2]


def _key_of(key: str, app: str) -> bytes:
    # A key of BLAKE2b has 64 bytes at most.
    whole = hashlib.sha512(key.encode()).digest()
    return hashlib.blake2b(app.encode(), key=whole, digest_size=32, person=b"twinsieve state").digest()


def _keyed(key: bytes) -> Hashes:
    return lambda: hashlib.blake2b(digest_size=_SUM_BYTES, key=key)


def _number(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=4, person=b"number").hexdigest()


def _refusal(*, signed: bool) -> str:
    if not signed:
        return (
            "is not signed with a key of state.key_file; delete it, or add the line "
            "`unsigned` to that file until all files are signed"
        )
    return (
        "is damaged, or signed with a key that state.key_file does not have; delete it, or add that key to "
        "the file"
    )
