"""The example settings that come with the program: the files of `config/`, which the package contains as
data."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath

from twinsieve.pipeline.basics.closest import closest
from twinsieve.stages.errors import UsageError

_ENDING = ".yaml"


def example_names() -> list[str]:
    """Names of the examples, sorted.

    >>> "kafka" in example_names()
    True
    """
    return sorted(_files())


def example_bytes(name: str) -> bytes:
    """The example's file, unchanged, with its comments. raises: UsageError for an unknown name"""
    found = _files()
    if name not in found:
        close = closest(name.lower().removesuffix(_ENDING), found)
        advice = f"did you mean {close!r}?" if close else f"there are {', '.join(sorted(found))}"
        raise UsageError(f"no example {name!r}; {advice}")
    return found[name].read_bytes()


def example_about(name: str) -> str:
    """What the example is for: its first comment line."""
    return example_bytes(name).decode().partition("\n")[0].removeprefix("# ")


def example_meant(path: str) -> str | None:
    """The example that a user probably meant with this missing settings file; None if none has its name.

    >>> example_meant("config/kafka.yaml"), example_meant("kafka"), example_meant("my.yaml")
    ('kafka', 'kafka', None)
    """
    name = PurePath(path).name.removesuffix(_ENDING)
    return name if name in _files() else None


def _files() -> dict[str, Traversable]:
    folder = files("twinsieve.examples")
    return {
        entry.name.removesuffix(_ENDING): entry for entry in folder.iterdir() if entry.name.endswith(_ENDING)
    }
