"""What the commands share that learn from files: the bodies of all messages, and how many rows had none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinsieve.pipeline.commands.options import FormatFlags, SettingsFlags

if TYPE_CHECKING:
    from twinsieve.stages.contract import Bodies
    from twinsieve.stages.judge.scheme import Scheme


class Corpus:
    """The messages of INPUTs; iterating reads them once.

    inputs, output: as typed; holds: content of the output in words
    allowed: formats whose endings the output may have
    raises: ConfigError, UsageError for an output that is also an input or looks like another format
    """

    def __init__(
        self,
        inputs: tuple[str, ...],
        output: str,
        spelt: FormatFlags,
        flags: SettingsFlags,
        *,
        holds: str,
        endings: tuple[str, ...],
    ) -> None:
        from twinsieve.pipeline.files.endings import refuse_other_endings
        from twinsieve.pipeline.files.input_reader import InputReader
        from twinsieve.pipeline.files.names import expand
        from twinsieve.pipeline.files.write import refuse_clashes
        from twinsieve.pipeline.settings.stage_config import scheme_of

        settings = flags.settings(on_files=True)
        self._names = expand(list(inputs), [output]).names
        refuse_clashes(self._names, {"-o": output}, settings=settings, config=flags.config)
        refuse_other_endings(holds, endings, {"-o": output})
        self.scheme: Scheme = scheme_of(settings)
        self.unread = 0
        self._reader = InputReader(settings, spelt.format_of(self._names, settings))

    def __iter__(self) -> Iterator[Bodies]:
        from twinsieve.pipeline.files.source import InputSource

        for name in self._names:
            with InputSource(name) as source:
                for chunk in self._reader.chunks(source):
                    self.unread += len(chunk.columns.unreadable) + len(chunk.columns.no_text)
                    yield self.scheme.bodies(chunk.columns.texts)


def with_settings(flags: SettingsFlags, **settings: str) -> tuple[str, ...]:
    """The typed pairs of `--set` without these keys of `features`, then these with these values."""
    keys = {f"features.{name}": value for name, value in settings.items()}
    others = [pair for pair in flags.pairs if pair.partition("=")[0] not in keys]
    return (*others, *(f"{key}={value}" for key, value in keys.items()))
