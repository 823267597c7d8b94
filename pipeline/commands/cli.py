"""The command line: `twinsieve COMMAND`.

Exit codes: 0 done, 1 failed, 2 misused, 128 plus the number of the signal that ended the command.
Data goes to stdout, messages go to stderr, and an error is one line. If the program that reads stdout ends
early, as `head` does, the process ends by SIGPIPE and prints nothing, like other tools.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.commands.terminal import say_error
from twinsieve.stages.errors import SieveError

_COMMANDS = {
    "dedup": ("dedup", "Drop duplicates from files."),
    "explain": ("explain", "Show why two messages are duplicates, or why not."),
    "why": ("kafka.why", "Show why a message was dropped."),
    "audit": ("audit", "Show what was dropped: the largest clusters, one cluster, a search."),
    "lint": ("lint", "Check settings; show their costs and how far the windows reach."),
    "config": ("config", "List or print example settings."),
    "test": ("cases", "Run test cases: messages and the expected verdicts."),
    "tune": ("tune", "Show what other similarities and profiles would drop."),
    "evaluate": ("evaluate", "Measure precision and recall against true pairs."),
    "warm-up": ("warm_up", "Compile all kernels now, so that later starts are fast."),
    "generate": ("generate", "Generate a stream of posts."),
    "run": ("kafka.run", "Run the sieve on Kafka."),
    "status": ("kafka.status", "Show which processes work and how many messages wait."),
    "seed": ("kafka.seed", "Fill the windows from an existing output, before going live."),
    "redrive": ("kafka.redrive", "Judge dead letters again, after their cause is repaired."),
    "reset": ("kafka.reset", "Move the input offsets of a stopped app."),
    "topics": ("kafka.topics", "Check or create the topics; print the permissions they need."),
}
"""For each command its module in `pipeline.commands`, and its line in `--help`. With the lines listed here
`--help` imports none of the modules."""

_OPTIONS_ELSEWHERE = {
    "--threshold": "--similarity SHARE",
    "--column": "--text-field NAME",
    "--columns": "--text-field NAME, once for each",
    "--sep": "--delimiter CHAR",
    "--separator": "--delimiter CHAR",
    "--jobs": "--threads N",
    "--no-headers": "--no-header",
    "--dry-run": "-o /dev/null, which shows the summary alone",
}
"""Options of other tools, each with the option that does the same here."""

_SWITCH_S = 0.001
"""Interval in seconds after which Python may switch to another thread. With the default of 5 ms a thread may
wait that long after each kernel, and after each call to a broker. On Kafka, at low rates, this is longer than
judging takes."""
_LIKENESS = 0.75
"""A command is suggested if its similarity (0 to 1) to the typed word is at least this."""
_ACTS_ON_KAFKA = {"redrive": 0.85, "reset": 0.85, "seed": 0.85}
"""The same limit for commands that move offsets or fill windows. It is higher, so that they are suggested
only if one key was mistyped."""


class _ReaderGoneError(Exception):
    """The program that reads stdout or stderr has ended. Raised instead of BrokenPipeError, for which click
    would end with exit code 1."""


class _Lazy(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"twinsieve.pipeline.commands.{_COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS:
            raise click.UsageError(f"no command {args[0]!r}; {_nearest(args[0])}", ctx)
        return super().resolve_command(ctx, args)


def _nearest(name: str) -> str:
    """Advice for an unknown command: the command that was probably meant, or a list of all commands.

    >>> _nearest("eval"), _nearest("rest")
    ("did you mean 'evaluate'?", "did you mean 'reset'?")
    >>> _nearest("tell").split(", ")[0]
    'there are dedup'
    """
    from difflib import SequenceMatcher

    def alike(command: str) -> float:
        begun = len(name) > 1 and command.startswith(name) and command not in _ACTS_ON_KAFKA
        return 1.0 if begun else SequenceMatcher(None, name, command).ratio()

    close = [command for command in _COMMANDS if alike(command) >= _ACTS_ON_KAFKA.get(command, _LIKENESS)]
    return f"did you mean {max(close, key=alike)!r}?" if close else f"there are {', '.join(_COMMANDS)}"


def _show_version(ctx: click.Context, param: click.Parameter, is_asked_for: bool) -> None:  # noqa: ARG001
    if is_asked_for:
        click.echo(f"twinsieve {program_version()}")
        ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Drops exact and near duplicates from streams of short posts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code of the command. An error is printed on stderr as one line, or as one line for each problem of
    the settings."""
    _let_stdout_take_any_text()
    sys.setswitchinterval(_SWITCH_S)
    try:
        result = cli.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="twinsieve",
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        message = error.format_message()
        if isinstance(error, click.NoSuchOption) and error.option_name in _OPTIONS_ELSEWHERE:
            message = f"no option {error.option_name}; use {_OPTIONS_ELSEWHERE[error.option_name]}"
        say_error(f"{where.command_path if where else 'twinsieve'}: {message}")
        return 2
    except (click.Abort, KeyboardInterrupt):
        say_error("twinsieve: interrupted")
        return 128 + signal.SIGINT
    except SieveError as error:
        for line in error.lines():
            say_error(line)
        return error.exit_code
    except _ReaderGoneError:
        return _end_by_sigpipe()
    except OSError as error:
        say_error(f"twinsieve: {error.filename or 'stdout'}: {error.strerror or error}")
        _let_go_of_stdout()
        return 1
    return result if isinstance(result, int) else 0


def _let_stdout_take_any_text() -> None:
    r"""Print characters that the terminal's encoding does not have as `\u4e2d`. Data is written as bytes, so
    this does not change it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _end_by_sigpipe() -> int:
    """End the process by SIGPIPE. If the signal is blocked, return the exit code that shells show for it."""
    _let_go_of_stdout()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
    return 128 + signal.SIGPIPE


def _let_go_of_stdout() -> None:
    """Connect stdout to /dev/null, so that the flush at exit cannot fail with a traceback."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
