"""What can go wrong, as a tree.

SieveError
├── UsageError      the caller asked for something that cannot be promised
├── ConfigError     a setting is wrong (path:line:column)
├── FileError       a file or stream cannot be read or written
├── StateError      saved state is damaged, foreign or of another scheme
├── BrokerError     the message broker refused or is away
└── MessageError    one message cannot be judged

Misuse (`UsageError`, `ConfigError`) ends a command with exit code 2, the rest with 1.
Every text says what is wrong, where, and what to do, in one line.
"""

from __future__ import annotations


class SieveError(Exception):
    """Base of everything twinsieve raises on purpose."""


class UsageError(SieveError):
    """The call or command line asks for something impossible; nothing was changed."""


class ConfigError(SieveError):
    """A configuration file has problems; `findings` holds all of them, one line each."""

    def __init__(self, findings: list[str]) -> None:
        super().__init__("\n".join(findings))
        self.findings = findings


class FileError(SieveError):
    """A file or stream failed under us; the text names it and says what became of the output."""


class StateError(SieveError):
    """A saved state cannot be used; the text names the file or section and what to do."""


class BrokerError(SieveError):
    """The broker failed; `retryable` says whether waiting can help."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class MessageError(SieveError):
    """One message cannot be judged; `position` says which, `reason` is a short fixed word."""

    def __init__(self, position: str, reason: str, message: str) -> None:
        super().__init__(f"{position}: {message}")
        self.position = position
        self.reason = reason
