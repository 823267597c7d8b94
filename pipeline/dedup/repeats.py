"""Inputs that an earlier run on the same state has read, known by what they hold.

A run that is repeated, because it was killed after its end or a script began anew, drops every row as a copy
of itself: it would put an empty output in the place of a good one. A copy of the input, or one that was
touched, has the same content, so path, size and time of change say nothing.
"""

from __future__ import annotations

import os
from hashlib import blake2b

from twinsieve.pipeline.files.source import is_stream
from twinsieve.pipeline.files.write import descriptor_of
from twinsieve.stages.errors import UsageError

_BLOCK_BYTES = 1 << 20
_BLOCKS = 64
KEPT_DIGESTS = 10_000
"""How many inputs a state remembers, the newest ones."""


def content_digest(name: str) -> str | None:
    """A digest of what a file holds; None for streams, empty files and what cannot be read.

    Files of more than 64 MiB are read in 64 blocks of 1 MiB, the first, the last and others evenly between.
    """
    if is_stream(name):
        return None
    try:
        with open(name, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if not size:
                return None
            digest = blake2b(size.to_bytes(8, "little"), digest_size=16)
            last = max(size - _BLOCK_BYTES, 0)
            blocks = min(_BLOCKS, -(-size // _BLOCK_BYTES))
            whole = size <= _BLOCKS * _BLOCK_BYTES
            for block in range(blocks):
                stream.seek(block * _BLOCK_BYTES if whole else block * last // (_BLOCKS - 1))
                digest.update(stream.read(_BLOCK_BYTES))
            return digest.hexdigest()
    except (OSError, ValueError):
        return None


def refuse_empty_replacement(repeated: str, state: str, outputs: dict[str, str | None]) -> None:
    """Do nothing if none of these outputs has content that a repeated run would replace.

    repeated: an input that an earlier run on this state has read
    raises: UsageError
    """
    for flag, name in outputs.items():
        if name is not None and descriptor_of(name, writes=True) is None and _has_content(name):
            raise UsageError(
                f"{repeated}: an earlier run on {state} read this content to its end; all its rows would be "
                f"dropped, and {flag} {name} be replaced by the rest; name another output, input or state"
            )


def _has_content(name: str) -> bool:
    return os.path.isfile(name) and os.path.getsize(name) > 0
