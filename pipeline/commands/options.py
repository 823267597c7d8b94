"""Options that several commands take, and the settings they add up to.

Commands import what they work with when they are called: `--help` takes no time for it then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.types import StringParamType

from twinsieve.pipeline.files import FORMATS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from twinsieve.pipeline.settings.load import Override
    from twinsieve.pipeline.settings.model import Settings

_KEYS = {
    "profile": ("--profile", "profile"),
    "similarity": ("--similarity", "near.similarity"),
    "text_field": ("--text-field", "input.text_field"),
    "id_field": ("--id-field", "input.id_field"),
    "time_field": ("--time-field", "input.time_field"),
}


class _FileName(StringParamType):
    """The name of a file or a folder, which a shell can complete; help shows an option's as FILE."""

    name = "file"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


FILE_NAME = _FileName()
"""Of every option and argument that names a file: without it a shell completes none there."""


def _one_word(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> str | None:
    """What the option was given, once or several times the same; click alone would take the last."""
    if len(set(given)) > 1:
        first, other = list(dict.fromkeys(given))[:2]
        raise click.UsageError(f"{param.opts[0]} is given as {first!r} and as {other!r}; leave one out", ctx)
    return given[0] if given else None


def _once(
    *names: str,
    help: str,  # noqa: A002
    metavar: str | None = None,
    type: click.ParamType[Any] = click.STRING,  # noqa: A002
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, metavar=metavar, help=help, type=type, multiple=True, callback=_one_word)


def format_option(of: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--format, which arrives as `form`; of: its help."""
    return click.option("--format", "form", type=click.Choice(FORMATS), help=of)


delimiter_option = click.option(
    "--delimiter",
    metavar="CHAR",
    help="Separator of CSV columns: a character, or tab (comma; .tsv: tab).",
)


encoding_option = click.option(
    "--encoding",
    metavar="NAME",
    help="Encoding of text that is not UTF-8, as gb18030 or utf-16; outputs keep it.",
)


def _as_list(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> str | None:
    """The names as a list in the notation of settings: a comma in a name parts nothing."""
    return json.dumps(names, ensure_ascii=False) if names else None


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -c, --set and flags of often used keys; they arrive as the arguments of `settings_from`."""
    for option in (
        click.option(
            "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Set any key, as near.shards=2."
        ),
        _once("--similarity", metavar="SHARE", help="near.similarity: how alike, 0.5 to 1 (0.85)."),
        _once("--profile", metavar="NAME", help="profile: microblog or plain (microblog)."),
        _once("--time-field", metavar="NAME", help="input.time_field (created_at)."),
        _once("--id-field", metavar="NAME", help="input.id_field (id)."),
        click.option(
            "--text-field",
            multiple=True,
            callback=_as_list,
            metavar="NAME",
            help="input.text_field (text); repeat it to join several fields.",
        ),
        _once(
            "-c",
            "--config",
            type=FILE_NAME,
            metavar="FILE",
            help="Settings, a YAML file; examples: twinsieve config list.",
        ),
    ):
        command = option(command)
    return command


def overrides_from(pairs: tuple[str, ...], **given: str | None) -> list[Override]:
    """What flags set, `--set` last. raises: click.UsageError for a pair without `=`"""
    from twinsieve.pipeline.settings.load import Override

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
    from twinsieve.pipeline.settings.load import load_settings

    return load_settings(_path(config), os.environ, overrides_from(pairs, **given))


def file_settings_from(config: str | None, pairs: tuple[str, ...], **given: str | None) -> Settings:
    """The same for a command on files, whose windows have no age limit unless one is set."""
    from twinsieve.pipeline.settings.load import load_settings

    return load_settings(_path(config), os.environ, overrides_from(pairs, **given), on_files=True)


def _path(config: str | None) -> Path | None:
    from twinsieve.pipeline.files.address import path_here

    return path_here("-c", config) if config is not None else None
