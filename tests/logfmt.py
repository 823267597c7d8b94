"""Reads a line of logfmt: the plain twin of what writes it."""

from __future__ import annotations

import json
import logging
import re

_PAIR = re.compile(r'([a-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"=\\]+))(?: |$)')


def read_line(line: str) -> dict[str, str]:
    """Values by key, in order. A quoted value has the escapes of JSON. raises: AssertionError"""
    held: dict[str, str] = {}
    at = 0
    while at < len(line):
        pair = _PAIR.match(line, at)
        assert pair is not None, f"no key=value at {at}: {line}"
        key, quoted, bare = pair.groups()
        assert key not in held
        held[key] = bare if quoted is None else json.loads(f'"{quoted}"')
        at = pair.end()
    assert held, "an empty line"
    return held


def last_words(said: str) -> list[str]:
    """Messages of the records by which a process says why it ends; every line is one of its log."""
    records = [read_line(line) for line in said.splitlines()]
    return [record["msg"] for record in records if record["level"] == "critical"]


def flush_log() -> None:
    """Wait until what this process has logged is written: a thread of its own writes it."""
    for handler in logging.getLogger().handlers:
        handler.flush()
