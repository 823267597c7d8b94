"""twinsieve drops exact and near duplicates from message streams.

>>> from twinsieve import Sieve
>>> sieve = Sieve(similarity=0.85)
>>> texts = ["The ferry leaves at nine today.", "Rain until Friday.", "The ferry leaves at nine, today!"]
>>> verdicts = sieve.judge(texts)
>>> verdicts.kept.tolist(), verdicts[2].leader
([True, True, False], 0)

Names are imported when they are first used, so that `import twinsieve` takes a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinsieve.api.exports import ConfigError as ConfigError
    from twinsieve.api.exports import FileError as FileError
    from twinsieve.api.exports import SieveError as SieveError
    from twinsieve.api.exports import StateError as StateError
    from twinsieve.api.exports import UsageError as UsageError
    from twinsieve.api.fingerprints import find_all as find_all
    from twinsieve.api.fingerprints import simhash as simhash
    from twinsieve.api.sieve import Sieve as Sieve
    from twinsieve.api.verdicts import Verdict as Verdict
    from twinsieve.api.verdicts import Verdicts as Verdicts

    __version__: str

__all__ = [
    "ConfigError",
    "FileError",
    "Sieve",
    "SieveError",
    "StateError",
    "UsageError",
    "Verdict",
    "Verdicts",
    "__version__",
    "find_all",
    "simhash",
]

_MODULES = {
    "ConfigError": "twinsieve.api.exports",
    "FileError": "twinsieve.api.exports",
    "Sieve": "twinsieve.api.sieve",
    "SieveError": "twinsieve.api.exports",
    "StateError": "twinsieve.api.exports",
    "UsageError": "twinsieve.api.exports",
    "Verdict": "twinsieve.api.verdicts",
    "Verdicts": "twinsieve.api.verdicts",
    "find_all": "twinsieve.api.fingerprints",
    "simhash": "twinsieve.api.fingerprints",
}
"""Where each public name is defined."""


def __getattr__(name: str) -> object:
    """The public name, imported at its first use (PEP 562)."""
    if name == "__version__":
        from twinsieve.api.exports import program_version

        value: object = program_version()
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module 'twinsieve' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
