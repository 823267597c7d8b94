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
    from twinsieve.api.fingerprints import find_all as find_all
    from twinsieve.api.fingerprints import simhash as simhash
    from twinsieve.api.sieve import Sieve as Sieve
    from twinsieve.api.verdicts import Verdict as Verdict
    from twinsieve.api.verdicts import Verdicts as Verdicts
    from twinsieve.pipeline.files import FileError as FileError
    from twinsieve.pipeline.settings import ConfigError as ConfigError
    from twinsieve.stages.errors import SieveError as SieveError
    from twinsieve.stages.errors import StateError as StateError
    from twinsieve.stages.errors import UsageError as UsageError

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
    "ConfigError": "twinsieve.pipeline.settings",
    "FileError": "twinsieve.pipeline.files",
    "Sieve": "twinsieve.api.sieve",
    "SieveError": "twinsieve.stages.errors",
    "StateError": "twinsieve.stages.errors",
    "UsageError": "twinsieve.stages.errors",
    "Verdict": "twinsieve.api.verdicts",
    "Verdicts": "twinsieve.api.verdicts",
    "find_all": "twinsieve.api.fingerprints",
    "simhash": "twinsieve.api.fingerprints",
}
"""The module that defines each public name."""
_OF_A_SIEVE = ("dedup", "judge", "query", "explain", "save", "load")


def __getattr__(name: str) -> object:
    """The object with this public name; its module is imported at the first use (PEP 562)."""
    if name == "__version__":
        from twinsieve.pipeline.basics.program import program_version

        value: object = program_version()
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        hint = f"; make a sieve: twinsieve.Sieve().{name}(…)" if name in _OF_A_SIEVE else ""
        raise AttributeError(f"module 'twinsieve' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, without what this module itself needs."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
