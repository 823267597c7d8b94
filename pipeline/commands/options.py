"""Options that several commands share, and the settings that result from them.

Commands import the modules that they work with when they are called, so `--help` imports at most the schema
of settings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.types import StringParamType

from twinsieve.pipeline.files import ESCAPES, FORMATS, QUOTES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from twinsieve.pipeline.files.format import Format
    from twinsieve.pipeline.settings.load import Override
    from twinsieve.pipeline.settings.model import Settings

_KEYS = {
    "profile": "profile",
    "similarity": "near.similarity",
    "threads": "near.threads",
    "text_field": "input.text_field",
    "id_field": "input.id_field",
    "time_field": "input.time_field",
}
"""The key that each flag of `SettingsFlags` sets."""

_Command = Callable[..., Any]


def gathered(
    name: str, kind: type[Any], *options: Callable[[_Command], _Command], is_shared: bool = False
) -> Callable[[_Command], _Command]:
    """Decorator: add options to a command, and pass those that are fields of the named tuple `kind` as one
    argument of that type.

    name: of the argument; is_shared: whether help lists them after the command's own options
    """

    def add(command: _Command) -> _Command:
        @wraps(command)
        def called(*args: Any, **given: Any) -> Any:
            taken = {field: given.pop(field) for field in kind._fields}
            return command(*args, **given, **{name: kind(**taken)})

        added: Any = called
        own = getattr(command, "__click_params__", [])
        added.__click_params__ = [] if is_shared else own
        for option in reversed(options):
            added = option(added)
        if is_shared:
            # click appends each option to this list, and help has the reverse order.
            added.__click_params__ += own
        return added  # type: ignore[no-any-return]

    return add


class _FileName(StringParamType):
    """Type of a parameter that names a file or folder. A shell can complete the name; help shows FILE."""

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
"""The type of all options and arguments that name a file. Without it a shell completes no file names."""


def _one_word(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> str | None:
    """The value of an option. It may be repeated only with the same value; without this check click would
    take the last value. raises: click.UsageError"""
    if len(set(given)) > 1:
        first, other = list(dict.fromkeys(given))[:2]
        raise click.UsageError(f"{param.opts[0]} is given as {first!r} and as {other!r}; leave one out", ctx)
    return given[0] if given else None


class _SettingOption(click.Option):
    """A flag for one settings key. Its help is the key's line in the schema, read only for `--help`."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names of the flag, and the schema's line for its key."""
        from twinsieve.pipeline.settings.show import help_line

        key = _KEYS[self.name or ""]
        self.help = f"{key}: {help_line(key)}{self.help or ''}"
        return super().get_help_record(ctx)


def _setting(
    flag: str, metavar: str, *, callback: Callable[..., Any] | None = None, note: str = ""
) -> Callable[[_Command], _Command]:
    """Decorator: add the flag of a key in `_KEYS`. note: text after the schema's line in help"""
    return click.option(
        flag, cls=_SettingOption, multiple=True, callback=callback or _one_word, metavar=metavar, help=note
    )


def _once(*names: str, **more: Any) -> Callable[[_Command], _Command]:
    return click.option(*names, multiple=True, callback=_one_word, **more)


class FormatFlags(NamedTuple):
    """The values of --format and of the options of formats (`Format.flags`); None if not given."""

    form: str | None
    delimiter: str | None
    quote: str | None
    escape: str | None
    no_header: str | None
    encoding: str | None

    def format_of(self, names: list[str], settings: Settings) -> Format:
        """The format of these inputs, with its options. raises: UsageError"""
        from twinsieve.pipeline.files.endings import format_of

        options = self._asdict()
        return format_of(names, options.pop("form"), options, settings)


def format_options(of: str) -> Callable[[_Command], _Command]:
    """Decorator: add the options of `FormatFlags`, which the command gets as its argument `spelt`.

    of: the help of --format
    """
    return gathered(
        "spelt",
        FormatFlags,
        click.option("--format", "form", type=click.Choice(tuple(FORMATS)), help=of),
        click.option(
            "--delimiter",
            metavar="CHAR",
            help="Separator of CSV columns: one character, several (read without quoting), or the word tab "
            "(comma; .tsv: tab).",
        ),
        click.option(
            "--quote",
            type=click.Choice(QUOTES),
            help="CSV: quotes enclose fields and are doubled inside them, or they are characters like others "
            "and each line is a row (double; .tsv: by the first field that begins with a quote).",
        ),
        click.option(
            "--escape",
            type=click.Choice(ESCAPES),
            help="CSV: a backslash makes the character behind it part of the field, as a quote, a delimiter "
            r"or a line end; \n, \t, \r and \0 are control characters, and a field \N has no value.",
        ),
        click.option(
            "--no-header",
            flag_value="yes",
            help="CSV: the first row is no header; name columns by number, from 1, as in --text-field 2.",
        ),
        click.option(
            "--encoding",
            metavar="NAME",
            help="Encoding of the text if it is not UTF-8, for example gb18030 or utf-16; outputs keep it.",
        ),
        is_shared=True,
    )


def _as_list(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> str | None:
    """The names as a JSON list, which settings can read, so that a comma inside a name splits nothing."""
    return json.dumps(names, ensure_ascii=False) if names else None


class SettingsFlags(NamedTuple):
    """The values of -c, --set and the flags of often used keys; None if not given."""

    config: str | None
    pairs: tuple[str, ...]
    profile: str | None
    similarity: str | None
    threads: str | None
    text_field: str | None
    id_field: str | None
    time_field: str | None

    @property
    def any_given(self) -> bool:
        """Whether any of these options is given."""
        return any(self)

    @property
    def names_app(self) -> bool:
        """Whether a settings file, `--set app=…` or the environment names an app on Kafka."""
        keys = {pair.partition("=")[0].strip() for pair in self.pairs}
        return self.config is not None or "app" in keys or "TWINSIEVE_APP" in os.environ

    def overrides(self) -> list[Override]:
        """The values that flags set, those of `--set` last. raises: click.UsageError for a `--set` without
        `=`"""
        from twinsieve.pipeline.settings.load import Override

        found = []
        for name, key in _KEYS.items():
            text = getattr(self, name)
            if text is not None:
                found.append(Override(key, text, f"--{name.replace('_', '-')}"))
        for pair in self.pairs:
            key, equals, text = pair.partition("=")
            if not equals:
                raise click.UsageError(f"--set {pair!r}: write key=value, as in --set near.similarity=0.9")
            found.append(Override(key.strip(), text.strip(), f"--set {key.strip()}"))
        return found

    def settings(self, *, on_files: bool) -> Settings:
        """The settings from file, environment and flags.

        on_files: whether the input is files; then windows have no age limit unless one is set
        raises: ConfigError
        """
        from twinsieve.pipeline.files.address import path_here
        from twinsieve.pipeline.settings.load import load_settings

        path = path_here("-c", self.config) if self.config is not None else None
        return load_settings(path, os.environ, self.overrides(), on_files=on_files)


settings_options = gathered(
    "flags",
    SettingsFlags,
    _once(
        "-c",
        "--config",
        type=FILE_NAME,
        metavar="FILE",
        help="Settings file (YAML); for examples see `twinsieve config list`.",
    ),
    _setting("--text-field", "NAME", callback=_as_list, note="; repeat the option to join several fields"),
    _setting("--id-field", "NAME"),
    _setting("--time-field", "NAME"),
    _setting("--profile", "NAME"),
    _setting("--similarity", "SHARE"),
    _setting("--threads", "N"),
    click.option(
        "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Set any key, for example near.threads=2."
    ),
    is_shared=True,
)
"""Decorator: add -c, --set and flags of often used keys, which the command gets as its argument `flags`."""
