"""What can go wrong, as a tree. Each room declares what only it and those above it raise.

SieveError
├── UsageError      the caller asked for something that cannot be promised
├── StateError      saved state is damaged, foreign or of another scheme
├── ConfigError     a setting is wrong (path:line:column); `pipeline/settings/`
├── FileError       a file or stream cannot be read or written; `pipeline/files/`
└── BrokerError     the message broker refused or is away; `pipeline/broker/records.py`

Misuse (`UsageError`, `ConfigError`) ends a command with exit code 2, the rest with 1.
Every text says what is wrong, where, and what to do, in one line.
"""

from __future__ import annotations

NEW_STATE = "begin with a state file that does not exist yet"
"""What to do where a saved state fits no more: an empty file is no state, and is refused."""


class SieveError(Exception):
    """Base of everything twinsieve raises on purpose. exit_code: of a command that it ends"""

    exit_code = 1

    def lines(self) -> list[str]:
        """What a terminal shows."""
        return [f"twinsieve: {self}"]


class UsageError(SieveError):
    """The call or command line asks for something impossible; nothing was changed."""

    exit_code = 2


class StateError(SieveError):
    """A saved state cannot be used; the text names the file or section and what to do."""
