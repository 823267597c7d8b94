"""Say which argument a caller probably meant, where Python would only say that there is none of that name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from twinsieve.api.user_columns import shown
from twinsieve.pipeline.basics.closest import closest
from twinsieve.stages.errors import UsageError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

_ELSEWHERE = {
    "threshold": "similarity",
    "cutoff": "similarity",
    "column": "text",
    "text_column": "text",
    "text_key": "text",
    "text_field": "text",
    "jobs": "threads",
    "n_jobs": "threads",
    "num_proc": "threads",
    "max_distance": "distance",
    "k": "distance",
    "config": "settings",
    "batch_size": "chunk",
}
"""Arguments of other libraries, each with the argument that does the same here."""


def names_what_was_meant(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The function; arguments that it does not take are a UsageError that names the nearest one it takes."""
    signature = inspect.signature(function)
    names = [
        name
        for name, parameter in signature.parameters.items()
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    ]
    is_made = function.__name__ == "__init__"
    called = function.__qualname__.partition(".")[0] if is_made else function.__name__

    @wraps(function)
    def checked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = [name for name in kwargs if name not in names]
            if unknown:
                raise UsageError(_unknown(called, unknown[0], names)) from error
            if is_made and len(args) > 1:
                raise UsageError(_positional(called, args[1])) from error
            raise UsageError(f"{called}: {error}; it takes {', '.join(names)}") from error
        return function(*args, **kwargs)

    return checked


def _unknown(called: str, name: str, names: list[str]) -> str:
    meant = _ELSEWHERE.get(name.lower())
    if meant not in names:
        meant = closest(name, names)
    advice = f"did you mean {meant}=?" if meant else f"it takes {', '.join(names)}"
    return f"{called} has no argument {shown(name)}; {advice}"


def _positional(called: str, value: object) -> str:
    name = "similarity" if isinstance(value, float) else "settings"
    return (
        f"{called} takes arguments by name alone, but {shown(value)} has none; "
        f"did you mean {called}({name}={shown(value)})?"
    )
