"""Options that several commands take, and the settings they add up to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from twinsieve.pipeline.settings import Settings
from twinsieve.pipeline.settings_load import Override, load_settings

_KEYS = {
    "profile": ("--profile", "profile"),
    "similarity": ("--similarity", "near.similarity"),
    "text_field": ("--text-field", "input.text_field"),
    "id_field": ("--id-field", "input.id_field"),
    "time_field": ("--time-field", "input.time_field"),
}


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -c, --set and flags of often used keys; they arrive as the arguments of `settings_from`."""
    for option in (
        click.option(
            "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Set any key, as near.shards=2."
        ),
        click.option("--similarity", metavar="SHARE", help="near.similarity: how alike, 0.5 to 1 (0.85)."),
        click.option("--profile", metavar="NAME", help="profile: microblog or plain (microblog)."),
        click.option("--time-field", metavar="NAME", help="input.time_field (created_at)."),
        click.option("--id-field", metavar="NAME", help="input.id_field (id)."),
        click.option("--text-field", metavar="NAME", help="input.text_field (text)."),
        click.option(
            "-c", "--config", metavar="FILE", help="Settings, a YAML file; examples: twinsieve config list."
        ),
    ):
        command = option(command)
    return command


def overrides_from(pairs: tuple[str, ...], **given: str | None) -> list[Override]:
    """What flags set, `--set` last. raises: click.UsageError for a pair without `=`"""
    found = []
    for name, text in given.items():
        if text is not None:
            flag, key = _KEYS[name]
            found.append(Override(key, text, flag))
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--set {pair!r}: write key=value, as in --set near.similarity=0.9")
        found.append(Override(key.strip(), text.strip(), f"--set {key.strip()}"))
    return found


def settings_from(config: str | None, pairs: tuple[str, ...], **given: str | None) -> Settings:
    """Settings of file, environment and flags, for a command on Kafka. raises: ConfigError"""
    return load_settings(_path(config), os.environ, overrides_from(pairs, **given))


def file_settings_from(config: str | None, pairs: tuple[str, ...], **given: str | None) -> Settings:
    """The same for a command on files, whose windows have no age limit unless one is set."""
    return load_settings(_path(config), os.environ, overrides_from(pairs, **given), on_files=True)


def _path(config: str | None) -> Path | None:
    return Path(config) if config is not None else None
