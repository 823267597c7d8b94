"""The operator's own text rules: patterns to drop, and folding of Han variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import re2

from twinsieve.stages.errors import UsageError

_OPENCC_CONFIGS = {"simplified": "t2s", "traditional": "s2t"}


def _compile(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def check_pattern(name: str, pattern: str) -> None:
    """Check that RE2 accepts the pattern and that it cannot match empty text.

    RE2 has no look-around and no back references, so that no text can make matching explode.
    raises: UsageError, which quotes the pattern under `name`
    """
    try:
        compiled = _compile(pattern)
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"{name} is {pattern!r}, which is not Unicode text; mend or remove the pattern"
        ) from problem
    except re2.error as problem:
        reason = problem.args[0].decode("utf-8", "replace")
        raise UsageError(
            f"{name} is {pattern!r}, which RE2 refuses: {reason}; mend or remove the pattern"
        ) from problem
    if compiled.fullmatch(""):
        raise UsageError(f"{name} is {pattern!r}, which matches empty text; ask for at least one character")


def opencc_version() -> str:
    """Version of the installed OpenCC, whose dictionaries decide what folding does.

    raises: UsageError if it is not installed
    """
    return str(_opencc().__version__)


def _opencc() -> Any:
    # Loading it takes longer than all other imports here, and few configurations fold.
    try:
        import opencc
    except ImportError as problem:
        raise UsageError(
            "text.fold_variants needs OpenCC, which is not installed; "
            "pip install '.[opencc]' in a checkout, or set it to none"
        ) from problem
    return opencc


class DropRules:
    """Drop patterns and variant folding, applied to NFKC text row by row."""

    def __init__(self, drop: tuple[str, ...], fold_variants: str) -> None:
        self._patterns = [_compile(pattern) for pattern in drop]
        self._fold: Callable[[str], str] | None = None
        if fold_variants != "none":
            self._fold = _opencc().OpenCC(_OPENCC_CONFIGS[fold_variants]).convert

    def __bool__(self) -> bool:
        """Whether there is anything to apply."""
        return bool(self._patterns) or self._fold is not None

    def apply(self, texts: list[str]) -> list[str]:
        """The texts, each with its pattern matches replaced by a blank and its variants folded."""
        for pattern in self._patterns:
            # A search that fails costs 1 µs, a substitution that finds nothing several.
            texts = [pattern.sub(" ", text) if pattern.search(text) else text for text in texts]
        if self._fold is not None:
            texts = [self._fold(text) for text in texts]
        return texts
