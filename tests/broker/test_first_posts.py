"""The blocks that start Kafka by Docker run line by line, with tools of the test's broker in the place of the container's."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.distribution import TOOLS, tools_path
from tests.broker.worlds import fresh
from tests.docs.documents import DOCUMENTS

_BLOCKS = re.compile(r"^```sh\n(docker run .*?)^```\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIMEOUT_S = 240.0
_DOCKER = """#!/usr/bin/env bash
# `run` and `rm`: the broker of the test runs already. `exec [-i] CONTAINER TOOL …`: the same tool, from its classes.
set -euo pipefail
[[ $1 == exec ]] || exit 0
shift
[[ $1 != -i ]] || shift
case ${2##*/} in
%s
esac
shift 2
exec java -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp '%s' "$class" "$@"
"""

_FOUND = {block for page in DOCUMENTS for block in _BLOCKS.findall(page.read_text("utf-8"))}
assert _FOUND, "no page starts Kafka by docker"


@pytest.fixture
def console_tools(tmp_path: Path) -> Path:
    """A folder with `docker`, which calls the console tools, and `twinsieve`."""
    tools = "\n".join(f"{tool}) class={name} ;;" for tool, name in TOOLS.items())
    texts = {
        "docker": _DOCKER % (tools, tools_path()),
        "twinsieve": f'#!/bin/sh\nexec {sys.executable} -m twinsieve "$@"\n',
    }
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    return folder


@pytest.mark.parametrize(("commands", "printed"), sorted(_FOUND), ids=[str(n) for n in range(len(_FOUND))])
def test_a_block_that_starts_kafka_runs_from_end_to_end_and_prints_what_the_page_shows(
    commands: str, printed: str, bootstrap: str, console_tools: Path, tmp_path: Path
) -> None:
    # A broker that was lent may have topics of these names.
    app, name = fresh("sieve"), fresh("posts")
    own = {
        "APP": app,
        "KAFKA__BOOTSTRAP": bootstrap,
        "HTTP__LISTEN": "none",
        "INPUT__TOPICS": name,
        "OUTPUT__TOPIC": f"{name}.unique",
        "OUTPUT__DUPLICATES": f"{name}.duplicates",
        "OUTPUT__DEAD_LETTER": f"{name}.dead",
    }
    script = commands.replace("localhost:9092", bootstrap).replace("posts", name)
    done = subprocess.run(
        ["bash", "-e", "-c", f"{script}\nwait"],
        cwd=tmp_path,
        env={
            **os.environ,
            **{f"TWINSIEVE_{key}": value for key, value in own.items()},
            "PATH": f"{console_tools}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    log = tmp_path / "run.log"
    assert done.returncode == 0, done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    found = done.stdout.replace(name, "posts").replace(app, "sieve")
    # The producer chooses one of the partitions; of several topics a consumer reads any one first.
    assert sorted(re.sub(r"posts\[\d\]", "posts[0]", found).splitlines()) == sorted(printed.splitlines())
