"""The keyword arguments of `Sieve` as settings: one schema and one set of refusals for files and programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from twinsieve.api.user_columns import a_type
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.load import Override, check_tree, tree_of, tree_of_file
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.settings.yaml_tree import Finding
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import UsageError

WINDOW = 200_000
EXACT_WINDOW = 2_000_000
"""Kept texts remembered by default: some 58 MB for the near stage, 9 MB for the exact
one."""


@dataclass(frozen=True, slots=True)
class Options:
    """Keyword arguments of `Sieve`, None where not given; each stands for the settings named in `_KEYS`."""

    similarity: float | None = None
    profile: Literal["plain", "microblog", "titles", "sms"] | None = None
    window: int | None = None
    exact_window: int | None = None
    max_age: str | timedelta | None = None
    near: Literal["text", "hamming", "none"] | None = None
    exact: Literal["bloom", "trie", "none"] | None = None
    distance: int | None = None
    error_rate: float | None = None
    differences: Literal["off", "guards", "full"] | None = None
    seed: int | None = None
    threads: int | None = None


_KEYS: dict[str, tuple[str, ...]] = {
    "similarity": ("near.similarity",),
    "profile": ("profile",),
    "window": ("near.window.messages",),
    "exact_window": ("exact.window.messages",),
    "max_age": ("near.window.age", "exact.window.age"),
    "near": ("near.method",),
    "exact": ("exact.method",),
    "distance": ("near.distances",),
    "error_rate": ("exact.error_rate",),
    "differences": ("near.differences",),
    "seed": ("digest.seed",),
    "threads": ("near.shards",),
}

_WHOLE = frozenset({"window", "exact_window", "distance", "threads"})
"""Counts, which may come as floats: 1e5."""

_DEFAULTS: dict[str, object] = {
    "profile": "plain",
    "near.window": {"messages": WINDOW, "age": None},
    "exact.window": {"messages": EXACT_WINDOW, "age": None},
}
"""Defaults of a sieve without `settings`: rules safe in any language, little memory, no age limit."""


def settings_of(options: Options, given: str | os.PathLike[str] | Mapping[str, object] | None) -> Settings:
    """The settings of a sieve. Keyword arguments count before `given`.

    given: a YAML file (with the environment, as for commands), a mapping of the same keys, or None for the
        defaults of the face
    raises: ConfigError with every problem, UsageError for settings that a sieve of texts cannot follow
    """
    if options.threads is not None and not _is_count(options.threads):
        raise UsageError(
            f"threads is {options.threads!r}; give a whole number from 1 on, or None for one a core"
        )
    overrides = list(_overrides(options))
    if given is None or isinstance(given, Mapping):
        tree, environ = tree_of(_DEFAULTS if given is None else given), None
    elif isinstance(given, (str, os.PathLike)):
        tree, environ = tree_of_file(Path(given)), os.environ
    else:
        raise UsageError(f"settings is {a_type(given)}; give the path of a YAML file, or a mapping")
    settings, findings = check_tree(tree, environ, overrides, on_files=True)
    if findings or settings is None:
        raise ConfigError(_by_argument(findings, options))
    _refuse_fields(settings)
    hamming = settings.near.method == "hamming"
    if options.distance is not None and not hamming:
        raise UsageError("distance is for near='hamming'; give similarity, or near='hamming'")
    if options.similarity is not None and settings.near.method != "text":
        raise UsageError(
            f"similarity is for near='text', but near is {settings.near.method!r}; remove one of them"
        )
    return settings


def engine_config(settings: Settings, scheme_id: str) -> SieveConfig:
    """All that verdicts depend on beside the input.

    Scoped whether scopes will come or not: a text without scope has scope 0, so the rules are the same.
    """
    return replace(sieve_config(settings, scheme_id), scoped=True)


def _overrides(options: Options) -> list[Override]:
    overrides = []
    for option in fields(options):
        value: Any = getattr(options, option.name)
        if value is None:
            continue
        if option.name in _WHOLE and isinstance(value, float) and value.is_integer():
            value = int(value)
        if option.name == "distance":
            value = f"8:{value}"
        elif isinstance(value, timedelta):
            value = f"{value // timedelta(milliseconds=1)}ms"
        overrides += [Override(key, str(value).lower(), option.name) for key in _KEYS[option.name]]
    return overrides


def _by_argument(findings: list[Finding], options: Options) -> list[str]:
    """The findings, one for each keyword argument, even if it stands for several settings."""
    lines: dict[str, None] = {}
    for finding in findings:
        name, line = finding.place.source, str(finding)
        for key in _KEYS.get(name, ()):
            if finding.message.startswith(f"{key} "):
                value = getattr(options, name)
                line = f"{name}{finding.message.removeprefix(key)}".replace(repr(str(value)), repr(value))
        lines[line] = None
    return list(lines)


def _is_count(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float, np.integer)) and bool(value >= 1)


def _refuse_fields(settings: Settings) -> None:
    """A column of texts has no fields. If they were ignored, verdicts would differ from those on a file."""
    if settings.exact.fields:
        raise UsageError("exact.fields names fields of messages, but a sieve of texts has none; remove it")
    if settings.scope:
        raise UsageError(
            "scope names fields of messages, but a sieve of texts has none; give judge(…, scopes=…)"
        )
