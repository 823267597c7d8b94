"""Addresses with secrets: nothing that people or files get to see holds a part of one, wherever the address stands."""

from __future__ import annotations

import errno
import json
import socket
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.calling import SMALL, Run, setting
from twinsieve.pipeline.files.address import open_address
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.named_files import file_system, known_store, store_error
from twinsieve.stages.errors import SieveError, StateError, shown, without_secrets

ADDRESSES = [
    "sftp://me:s3cret@host/x",
    "s3://AKIAX:s3cret@bucket/x",
    "nosuch://s3cret@host/x",
    "https://h/p.jsonl?token=s3cret",
    "https://h/p.jsonl?X-Amz-Credential=a%2Fb&X-Amz-Signature=s3cret#s3cret",
    "abfs://box@account.dfs.core.windows.net/p;AccountKey=s3cret",
    "gcs://bucket/sig=s3cret/p.jsonl",
    "filecache::s3://key:s3cret@bucket/p.jsonl",
    "simplecache::zip://p.jsonl::https://me:s3cret@h/a.zip?k=s3cret",
    "s3://key%3As3cret%40bucket/p.jsonl",
    "s3://key%253As3cret%2540bucket/p.jsonl",
    "https://12:34/s3cret@host/p.jsonl",
    "https://me:a::s3cret@[::1]:8443/p.jsonl",
    "nosuch://me::s3cret/p.jsonl",
]

address = pytest.mark.parametrize("address", ADDRESSES)


@address
@pytest.mark.parametrize("around", ["{}", "cannot read '{}': denied", "x={},y", "({})", "a: {}: b"])
def test_no_text_shows_it(address: str, around: str) -> None:
    assert "s3cret" not in without_secrets(around.format(address))
    assert "s3cret" not in str(SieveError(around.format(address)))
    assert "s3cret" not in repr(SieveError(around.format(address)))
    assert "s3cret" not in str(ConfigError([around.format(address)]).lines())


@address
def test_what_is_shown_stays_as_it_is(address: str) -> None:
    assert shown(shown(address)) == without_secrets(shown(address)) == shown(address)
    assert shown(address).startswith(address.partition("://")[0])


@pytest.mark.parametrize(
    "name",
    [
        "s3://bucket/day=2024-01-01/p 1.jsonl",
        "https://[::1]:8443/p.jsonl",
        "sftp://host:22/x",
        "C:/a?b.csv",
        "posts@home.jsonl",
        "/tmp/x#1",
    ],
)
def test_what_holds_no_secret_is_shown_whole(name: str) -> None:
    assert shown(name) == name


_COMMANDS = [
    "dedup {} --format jsonl -o o",
    "dedup in.jsonl -o {}",
    "dedup in.jsonl -o o --state {}",
    "lint --set state.dir={}",
    "lint --show --set state.dir={}",
    "lint {}",
    "dedup in.jsonl -o o --duplicates {}",
    "dedup in.jsonl -o o -c {}",
    "dedup in.jsonl -o o --set state.dir={}",
    "dedup in.jsonl {} --keep last -o o",
    "lint --set {}",
    "lint --set http.listen={}",
    "lint --set http.pages={}",
    "lint --set http.pages={}:8081",
    "lint --set near.method={}",
    "lint --set near.window.messages={}",
    "lint --set exact.fields={}",
    "lint --set state={}",
    "lint --set kafka.security.ca_file={}",
    "lint --set near.words_file={}",
    "explain --input {} --id 1 --id 2",
    "evaluate {} pairs",
    "generate --messages 1 -o {}",
    "no-such {}",
    "lint a b {}",
]
_EVERY_ADDRESS = 6
"""So many commands get every address, the others one of each kind: with a password, and chained."""


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (words, address)
        for number, words in enumerate(_COMMANDS)
        for address in (ADDRESSES if number < _EVERY_ADDRESS else (ADDRESSES[1], ADDRESSES[7]))
    ],
)
def test_no_command_shows_it(
    tmp_path: Path, run: Run, address: str, words: str, monkeypatch: pytest.MonkeyPatch, closed_network: None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"id": 1, "text": "one text"}\n')
    ran = run(
        *(word.format(address) for word in words.split()), *(SMALL if words.startswith("dedup") else ())
    )
    assert "s3cret" not in ran.out + ran.err
    assert all(b"s3cret" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.fixture
def closed_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection to anywhere is made."""

    def refuse(*_: object) -> None:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@address
@pytest.mark.parametrize(
    "text",
    [
        "state: {{dir: '{}'}}\nnosuch: 1\n",
        "state: '{}'\n",
        "state:\n  dir: {}: x\n",
        "state: {{'{}': 1}}\n",
        "state: [{}\n",
        "http: {{listen: '{}'}}\n",
        "state: {{dir: '{}', keep: many}}\n",
        "near: {{words_file: '{}'}}\n",
        "'{}': 1\n",
        "&{} state: 1\n",
        "state: *{}\n",
        "state: {{every: '{}'}}\n",
        "input: {{topics: ['{}', '{}']}}\n",
    ],
)
def test_no_line_about_a_settings_file_shows_it(tmp_path: Path, run: Run, address: str, text: str) -> None:
    (tmp_path / "my.yaml").write_text(text.format(address, address))
    ran = run("lint", tmp_path / "my.yaml")
    assert ran.out + ran.err
    assert "s3cret" not in ran.out + ran.err


@address
def test_no_variable_of_the_environment_is_shown(
    run: Run, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSIEVE_STATE__DIR", address)
    for words in (("lint",), ("lint", "--show")):
        ran = run(*words)
        assert "s3cret" not in ran.out + ran.err


def _told(call: Callable[[], object]) -> str:
    """All that Python prints of what a call raises, with the errors it came from."""
    try:
        call()
    except SieveError as error:
        return "".join(traceback.format_exception(error)) + repr(error)
    return ""


@address
def test_no_traceback_shows_it(address: str, closed_network: None) -> None:
    for call in (
        lambda: file_system(address),
        lambda: open_address(address),
        lambda: known_store(address, "read"),
        lambda: load_settings(None, {"TWINSIEVE_STATE__DIR": address, "TWINSIEVE_STATE__KEEP": address}),
    ):
        lines = _told(call)
        # A traceback quotes lines of this file, and none of the text that is told.
        assert "s3cret" not in lines


class _AnswerError(Exception):
    """As botocore raises it."""

    def __init__(self) -> None:
        super().__init__("s3cret")
        self.response = {"Error": {"Code": "ExpiredToken", "Message": "s3cret"}}


def test_of_a_store_s_error_its_kind_and_code_are_told() -> None:
    error = OSError(errno.EIO, "s3cret")
    error.__cause__ = _AnswerError()
    assert store_error(error) == "Input/output error ExpiredToken"
    assert store_error(ValueError("s3cret")) == "ValueError"
    assert store_error(PermissionError("s3cret")).startswith("permission denied")


def test_settings_are_checked_without_a_connection(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """FTP connects as soon as anything asks for it."""
    asked: list[object] = []
    monkeypatch.setattr(socket, "create_connection", lambda *how, **_: asked.append(how))
    monkeypatch.setattr(socket.socket, "connect", lambda *how: asked.append(how))
    ran = run("lint", *setting("state.dir=ftp://127.0.0.1:1/x"))
    assert (ran.code, ran.err, asked) == (0, "", [])


def test_a_store_that_refuses_is_named() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with pytest.raises(
            StateError, match=rf"^ftp://127.0.0.1:{port}/x: cannot be reached: Connection refused"
        ):
            file_system(f"ftp://me:s3cret@127.0.0.1:{port}/x")


def test_shown_settings_name_the_place_alone(run: Run) -> None:
    ran = run("lint", "--show", *setting("state.dir=memory://me:s3cret@bucket/x?token=s3cret"))
    assert ran.code == 0
    (line,) = (line for line in ran.out.splitlines() if line.startswith("state.dir "))
    assert line.split()[:2] == ["state.dir", "memory://bucket/x"]
    assert json.dumps(ran.out).count("s3cret") == 0
