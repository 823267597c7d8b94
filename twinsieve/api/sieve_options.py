"""Convert the keyword arguments of `Sieve` to settings, so that configuration files and programs share one
schema and its checks."""

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
from twinsieve.pipeline.settings.model import ExactSettings, NearSettings, Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.settings.tree import Finding
from twinsieve.stages.contract import SieveConfig, largest_window
from twinsieve.stages.errors import UsageError


@dataclass(frozen=True, slots=True)
class Options:
    """Keyword arguments of `Sieve`, None if not passed. `_KEYS` names the settings that each one sets."""

    similarity: float | None = None
    profile: Literal["plain", "microblog", "titles", "sms"] | None = None
    window: int | None = None
    exact_window: int | None = None
    max_age: str | timedelta | None = None
    near: Literal["text", "hamming", "signatures", "none"] | None = None
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
    "threads": ("near.threads",),
}

_WHOLE = frozenset({"window", "exact_window", "distance", "threads"})
"""Arguments that are whole numbers but may be written as floats: 1e5."""


def settings_of(options: Options, given: str | os.PathLike[str] | Mapping[str, object] | None) -> Settings:
    """The settings of a sieve. Keyword arguments override `given`.

    given: a YAML file (environment variables override it, as for commands), a mapping of the same keys, or
        None for the defaults of `twinsieve dedup`
    raises: ConfigError with every problem, UsageError for settings that a sieve of texts cannot apply
    """
    if options.threads is not None and not _is_count(options.threads):
        raise UsageError(
            f"threads is {options.threads!r}; give a whole number from 1 on, or None for one a core"
        )
    overrides = list(_overrides(options))
    if given is None or isinstance(given, Mapping):
        tree, environ = tree_of(given or {}), None
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


def with_windows_of(rows: int, settings: Settings) -> Settings:
    """The settings with windows of at least this many texts. A window whose size is set stays as it is.

    No window is enlarged beyond what the near method allows.
    """
    rows = min(rows, largest_window(settings.near.method))
    enlarged: dict[str, NearSettings | ExactSettings] = {}
    for name, section in (("near", settings.near), ("exact", settings.exact)):
        window = section.window
        if "messages" not in window.model_fields_set and window.messages < rows:
            window = window.model_copy(update={"messages": rows})
            enlarged[name] = section.model_copy(update={"window": window})
    return settings.model_copy(update=enlarged) if enlarged else settings


def engine_config(settings: Settings, scheme_id: str) -> SieveConfig:
    """The engine's configuration for these settings.

    It is always scoped, because a later call may pass scopes; without scopes all texts have scope 0, so the
    verdicts are the same. Its verdicts have details, which `Verdicts.says` shows.
    """
    config = sieve_config(settings, scheme_id)
    return replace(config, scoped=True, near=replace(config.near, details=True))


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
    """The findings as lines, one per keyword argument even if the argument sets several settings."""
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
    """Refuse settings that name message fields: a column of texts has none, and ignoring these settings would
    give other verdicts than on a file. raises: UsageError"""
    fields, text_field = settings.exact.fields, settings.input.text_field
    if fields and (len(fields) > 1 or fields != text_field):
        raise UsageError(
            f"exact.fields is [{', '.join(fields)}], but a sieve of texts knows no fields besides the text "
            f"({', '.join(text_field)}); give [{text_field[0]}], which makes the raw text the exact key, "
            "or remove it"
        )
    if settings.scope:
        raise UsageError(
            "scope names fields of messages, but a sieve of texts has none; give judge(…, scopes=…)"
        )
