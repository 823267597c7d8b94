"""A process on Kafka finds what a client leaves behind, before it is much."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import re, sys
from pathlib import Path
from twinsieve import __main__ as program
from twinsieve.pipeline.service import {module}

def leave_behind(*given, **named):
    # As an answer of a broker and the future that waits for it: they refer to each other.
    for _ in range(5_000):
        answer = [bytearray(b"x") * 100_000]
        answer.append(answer)
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print("peak", int(peak[1]) // 1024)
    raise KeyboardInterrupt

{module}.{call} = leave_behind
program.main()
"""


@pytest.mark.parametrize(
    ("module", "call", "arguments"),
    [
        ("run", "run_service", ["run", "--member", "one"]),
        ("redrive", "run_redrive", ["redrive"]),
        ("seed", "run_seed", ["seed", "--topic", "old"]),
    ],
)
def test_answers_of_brokers_do_not_pile_up(
    tmp_path: Path, module: str, call: str, arguments: list[str]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "app: posts\nkafka: {bootstrap: '127.0.0.1:1'}\ninput: {topics: [in]}\noutput: {topic: out}\n"
    )
    command = [
        sys.executable,
        "-c",
        _PROGRAM.format(module=module, call=call),
        *arguments,
        "-c",
        str(settings),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    peak = re.search(r"^peak (\d+)$", done.stdout, re.MULTILINE)
    assert peak is not None, done.stderr
    # 500 MB were left behind in all.
    assert int(peak[1]) < 400
