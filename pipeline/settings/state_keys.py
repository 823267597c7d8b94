"""The keys that sign the files of a state, as `state.key_file` has them: one a line."""

from __future__ import annotations

from typing import NamedTuple

LEAST_BYTES = 32
"""Bytes of a key at least."""
_UNSIGNED = "unsigned"


class StateKeys(NamedTuple):
    """keys: those that are accepted, the first one signs

    takes_unsigned: whether files without a signature are accepted too
    """

    keys: tuple[str, ...]
    takes_unsigned: bool


def state_keys(text: str) -> StateKeys:
    """The keys in a text.

    >>> state_keys("new key\\nold key\\nunsigned\\n")
    StateKeys(keys=('new key', 'old key'), takes_unsigned=True)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return StateKeys(tuple(line for line in lines if line != _UNSIGNED), _UNSIGNED in lines)


def keys_fault(text: str) -> str | None:
    """Why a text of keys cannot be used, or None."""
    keys = state_keys(text).keys
    if not keys:
        return "has no key"
    if any(len(key.encode()) < LEAST_BYTES for key in keys):
        return f"has a key of fewer than {LEAST_BYTES} bytes"
    return None
