"""All errors, as a tree. A folder declares the errors that only it and the folders above it raise.

SieveError
├── UsageError      the call cannot be fulfilled
├── StateError      saved state is damaged, foreign or of another scheme
│   └── DamagedError    saved arrays are not what twinsieve writes
├── ConfigError     a setting is wrong (path:line:column); `pipeline/settings/`
├── FileError       a file or stream cannot be read or written; `pipeline/files/`
└── BrokerError     the message broker refused or is away; `pipeline/broker/records.py`

Misuse (`UsageError`, `ConfigError`) ends a command with exit code 2, every other error with 1. A service that
meets a lasting error ends with 3.
Each message says what is wrong, where, and what to do, in one line. Addresses can contain secrets. Errors
remove them from their messages here; other texts for people pass through `without_secrets`. So one place
decides what is shown.
"""

from __future__ import annotations

import re

# The patterns that are not compiled here would take a part of every start, and few names are addresses.
_SCHEME = r"[a-z][a-z0-9+.-]*"
_ADDRESS = rf"(?:{_SCHEME}::)*{_SCHEME}://"
_BEGIN = rf"(?:{_SCHEME}::){{0,8}}{_SCHEME}(?<=..):/+"
"""How an address begins, even if a path function has shortened `//` to `/`. A scheme has at least two
characters, so that a Windows drive (`C:/`) is not an address."""
_IN_TEXT = rf"(?:{_BEGIN}|://)[^\s'\"]*"
_PLACE = re.compile(r"([^:\[\]]*|\[[0-9a-f:.]+\])(:\d*)?", re.IGNORECASE)
_ENDS_PATH = re.compile(r"[?#;]")
_ENCODED = re.compile(r"%(?:25)*(?:40|3f|23|3b|3a)", re.IGNORECASE)
"""`@`, `?`, `#`, `;` or `:`, percent-encoded once or several times. A secret may stand before or after it."""
_NAMED = re.compile(r"(?:sig|signature|token|key|secret|passw\w*|pwd|credential|auth\w*)=", re.IGNORECASE)


def is_address(name: str) -> bool:
    """Whether a file name is an address and not a path.

    >>> is_address("s3://bucket/a.csv"), is_address("simplecache::s3://bucket/a.csv"), is_address("C:/a.csv")
    (True, True, False)
    """
    return "://" in name and re.match(_ADDRESS, name, re.IGNORECASE) is not None


def shown(name: str) -> str:
    """The address without its parts that may be secret: user, password, query, fragment. A path is unchanged.

    >>> shown("https://me:secret@host/posts.csv?token=abc#x"), shown("a?b.csv")
    ('https://host/posts.csv', 'a?b.csv')
    >>> shown("filecache::s3://key:secret@bucket/posts.csv")
    'filecache::s3://bucket/posts.csv'

    If it is not clear which part is secret, only the scheme is left.
    >>> shown("https://me:sec/ret@host/posts.csv"), shown("s3://key%3Asecret%40bucket/x"), shown("az://c/sig=secret/x")
    ('https://…', 's3://…', 'az://…')
    """
    match = re.match(_BEGIN, name, re.IGNORECASE) if ":/" in name else None
    if match is None:
        return name
    rest = name[match.end() :]
    # An IPv6 address in brackets contains `::` itself. So look for the `::` of a chain after the bracket.
    end_of_host = rest.find("]") + 1 if rest.rpartition("@")[2].startswith("[") else 0
    first, chain, _ = rest[end_of_host:].partition("::")
    rest = rest[:end_of_host] + first
    place, slash, path = rest.partition("/")
    place = _ENDS_PATH.split(place.rpartition("@")[2], maxsplit=1)[0]
    if not _PLACE.fullmatch(place) or "@" in path or _ENCODED.search(place) or _ENCODED.search(path):
        return f"{match[0]}…"
    path = _ENDS_PATH.split(path, maxsplit=1)[0]
    if _NAMED.search(path):
        return f"{match[0]}…"
    return f"{match[0]}{place}{slash}{path}{chain and '::…'}"


def without_secrets(text: str) -> str:
    """The text in which each address is replaced by `shown(address)`.

    >>> without_secrets("cannot read 's3://key:secret@bucket/x': denied")
    "cannot read 's3://bucket/x': denied"
    """
    return re.sub(_IN_TEXT, _shown_in_text, text, flags=re.IGNORECASE) if ":/" in text else text


def _shown_in_text(match: re.Match[str]) -> str:
    # A match without a scheme is the rest of an address that was cut. For example, YAML cuts at `&`.
    return shown(match[0]) if match[0][0] != ":" else "://…"


NEW_STATE = "begin with a new state"
"""Advice for a saved state that no longer fits. An empty file would not help: it is not a state either."""


class SieveError(Exception):
    """Base of all errors that twinsieve raises on purpose.

    exit_code: exit code of a command that this error ends
    lasting: the error comes back if the service is started again
    """

    exit_code = 1
    lasting = False

    def __init__(self, *args: object) -> None:
        super().__init__(
            *(without_secrets(argument) if isinstance(argument, str) else argument for argument in args)
        )

    def lines(self) -> list[str]:
        """The lines that a terminal shows."""
        return [f"twinsieve: {self}"]


class UsageError(SieveError):
    """The call or command line cannot be fulfilled; nothing was changed."""

    exit_code = 2


class StateError(SieveError):
    """A saved state cannot be used; the message names the file or section, and says what to do."""

    def __init__(self, message: str, *, lasting: bool = True) -> None:
        super().__init__(message)
        self.lasting = lasting


class DamagedError(StateError):
    """Saved arrays cannot be what twinsieve wrote, although their checksums may be right.

    problem: what is wrong
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}; the state is damaged, {NEW_STATE} or an older snapshot")
