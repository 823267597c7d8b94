"""`twinsieve config list | show`."""

from __future__ import annotations

import click

from twinsieve.pipeline.commands.terminal import examples
from twinsieve.pipeline.settings.examples import example_about, example_bytes, example_names


@click.group(
    "config",
    epilog=examples(
        "twinsieve config list",
        "twinsieve config show microblog > my.yaml",
    ),
)
def command() -> None:
    """List or print the example settings, each a commented YAML file to copy and change."""


@command.command("list")
def list_examples() -> None:
    """Print the name and purpose of each example, one a line."""
    names = example_names()
    width = max(map(len, names))
    for name in names:
        click.echo(f"{name:<{width}}  {example_about(name)}")


@command.command("show")
@click.argument("name")
def show_example(name: str) -> None:
    """Print the example NAME as it is, as in `twinsieve config show kafka > my.yaml`."""
    click.echo(example_bytes(name), nl=False)
