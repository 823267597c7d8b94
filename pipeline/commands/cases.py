"""`twinsieve test`."""

from __future__ import annotations

import os

import click

from twinsieve.pipeline.basics.printable import beginning, printable
from twinsieve.pipeline.commands.options import FILE_NAME, SettingsFlags, settings_options
from twinsieve.pipeline.commands.terminal import examples

_SHOWN_CHARACTERS = 100


@click.command(
    "test",
    epilog=examples(
        "twinsieve test cases.yaml",
        "twinsieve test -c my.yaml cases.yaml",
    ),
)
@click.argument("files", nargs=-1, required=True, type=FILE_NAME, metavar="FILE...")
@settings_options
def command(files: tuple[str, ...], flags: SettingsFlags) -> int:
    """Run test cases: messages and the verdict that is expected for each.

    A FILE is YAML: `cases:` is a list, and each case has a name, its messages under `in`, and under `out`
    a verdict on each one, as `unique`, `near of 1` or `unique of 1: number`. docs/SETTINGS.md says more.
    Settings are those of -c, then those of the file and of the case; flags override them.
    A case that fails shows what was expected and what was found, with the line. The exit code is 0 if all
    hold, 1 if one fails, 2 if a file has a problem.
    """
    from twinsieve.pipeline.commands.warm_up import loading
    from twinsieve.pipeline.files.address import path_here
    from twinsieve.pipeline.settings import ConfigError
    from twinsieve.pipeline.settings.load import tree_of_file
    from twinsieve.pipeline.tools.cases.case import read_cases
    from twinsieve.pipeline.tools.cases.judge import settings_of, wrong_verdicts

    config = path_here("-c", flags.config) if flags.config is not None else None
    overrides = flags.overrides()
    findings, ready = [], []
    for name in files:
        path = path_here("FILE", name)
        tree, cases = read_cases(path)
        findings += tree.findings
        for case in cases:
            settings, problems = settings_of(case, tree, lambda: tree_of_file(config), os.environ, overrides)
            findings += problems
            if settings is not None:
                ready.append((case, settings))
    if findings:
        raise ConfigError([str(finding) for finding in sorted(set(findings))])
    failed = 0
    with loading():
        results = [(case, wrong_verdicts(case, settings)) for case, settings in ready]
    for case, wrong in results:
        if not wrong:
            continue
        failed += 1
        click.echo(printable(f"{case.place}: fails: {case.name}"))
        if case.why:
            click.echo(printable(f"  why: {case.why}"))
        for one in wrong:
            shown = beginning(case.messages[one.number - 1].in_words, _SHOWN_CHARACTERS)
            click.echo(printable(f"  {case.expected_at[one.number - 1]}: message {one.number}, {shown}"))
            click.echo(printable(f"  - {one.expected}"))
            click.echo(printable(f"  + {one.found}"))
    click.echo(f"cases: {len(results) - failed:,} hold, {failed:,} fail")
    return 1 if failed else 0
