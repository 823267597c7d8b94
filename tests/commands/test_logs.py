"""A line for each record, which a reader of logfmt or JSON takes apart again, whatever is in the record."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from click.exceptions import Exit
from hypothesis import given
from hypothesis import strategies as st

from tests.logfmt import flush_log, read_line
from twinsieve.pipeline.basics.printable import acts
from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.commands.kafka.logs import LineFormatter, ends_logged, log_to_stderr
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import StateError, UsageError, without_secrets

_READERS: dict[str, Callable[[str], dict[str, str]]] = {"logfmt": read_line, "json": json.loads}
pytestmark = pytest.mark.usefixtures("log_as_before")
_FORMS = pytest.mark.parametrize("form", sorted(_READERS))
_KEYS = ["time", "level", "app", "logger", "msg"]


def _stream(monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8") -> io.TextIOWrapper:
    """Standard error from now on; set in the test itself, for pytest puts its own there before."""
    made = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace", write_through=True)
    monkeypatch.setattr(sys, "stderr", made)
    return made


def _said(stderr: io.TextIOWrapper, form: str = "logfmt") -> list[dict[str, str]]:
    flush_log()
    held = stderr.buffer.getvalue()  # type: ignore[attr-defined]
    lines = held.decode(stderr.encoding).split("\n")
    assert lines.pop() == ""
    return [_READERS[form](line) for line in lines]


def _settings(form: str = "logfmt", level: str = "info") -> Settings:
    return Settings.model_validate({"app": "weibo", "log": {"format": form, "level": level}})


def _record(message: object, *values: object, name: str = "twinsieve") -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, "x.py", 1, message, values, None)


@_FORMS
@given(text=st.text(), name=st.text())
def test_a_reader_gets_back_what_was_logged(form: str, text: str, name: str) -> None:
    line = LineFormatter(form, "weibo").format(_record("%s", text, name=name))
    assert not [char for char in line if acts(char)]
    held = _READERS[form](line)
    assert list(held) == _KEYS
    assert (held["msg"], held["logger"], held["app"], held["level"]) == (
        without_secrets(text),
        name,
        "weibo",
        "warning",
    )


@_FORMS
def test_a_time_is_rfc_3339_in_utc_to_the_millisecond(form: str) -> None:
    record = _record("x")
    record.created = 1_700_000_000.0005
    said = _READERS[form](LineFormatter(form, "weibo").format(record))["time"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said)
    read = datetime.fromisoformat(said)
    assert read.utcoffset() == timedelta(0)
    assert abs(read.timestamp() - record.created) < 0.001


@_FORMS
def test_a_very_long_text_keeps_its_ends(form: str) -> None:
    line = LineFormatter(form, "weibo").format(_record("%s", "begins " + "x" * 4_000_000 + " ends"))
    said = _READERS[form](line)["msg"]
    assert len(line) < 5_000
    assert said.startswith("begins …")
    assert said.endswith(" ends")
    assert "characters left out" in said


@_FORMS
def test_no_secret_of_an_address_is_logged_be_the_line_cut_or_not(form: str) -> None:
    address = "s3://AKIAX:hunter2@bucket/x?token=hunter2"
    for text in (address, "x" * 1_990 + address + "y" * 9_000, "x" * 9_000 + address + "y " + "z" * 1_990):
        record = _record("%s: cannot be listed", text)
        try:
            raise OSError(text)
        except OSError:
            record.exc_info = sys.exc_info()
        line = LineFormatter(form, "weibo").format(record)
        assert "hunter2" not in line
        assert "AKIAX" not in line


@_FORMS
def test_a_traceback_is_a_value_on_the_same_line(form: str) -> None:
    def deep(left: int) -> None:
        if not left:
            raise ValueError("first\nsecond")
        deep(left - 1)

    record = _record("broken")
    try:
        deep(200)
    except ValueError:
        record.exc_info = sys.exc_info()
    line = LineFormatter(form, "weibo").format(record)
    trace = _READERS[form](line)["trace"]
    assert trace.startswith("Traceback (most recent call last):\n")
    assert trace.endswith("ValueError: first\nsecond")
    assert len(line) < 12_000


@_FORMS
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_every_encoding_of_stderr_gives_lines_that_can_be_read(
    form: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = _stream(monkeypatch, encoding)
    log_to_stderr(_settings(form), "weibo-shadow")
    logging.getLogger("twinsieve").info("é 中 %s", "\ud800")
    (line,) = _said(stderr, form)
    assert (line["msg"], line["app"]) == ("é 中 \ud800", "weibo-shadow")


_OTHERS = ["botocore.auth", "kafka.conn", "fsspec", "asyncio", "aiohttp.client", "urllib3", "twinsievery"]


@pytest.mark.parametrize("own_level", [logging.NOTSET, logging.DEBUG])
def test_debug_is_of_our_own_loggers_alone(monkeypatch: pytest.MonkeyPatch, own_level: int) -> None:
    """Below warning botocore logs whole requests, session tokens among them."""
    stderr = _stream(monkeypatch)
    log_to_stderr(_settings(level="debug"), "weibo")
    for name in _OTHERS:
        other = logging.getLogger(name)
        before = other.level
        other.setLevel(own_level)
        other.debug("x-amz-security-token: hunter2")
        other.info("x-amz-security-token: hunter2")
        other.warning("slow")
        other.setLevel(before)
    logging.getLogger("twinsieve").debug("ours")
    logging.getLogger("twinsieve.pipeline.kafka").debug("ours too")
    said = [(line["logger"], line["msg"]) for line in _said(stderr)]
    assert said == [
        *((name, "slow") for name in _OTHERS),
        ("twinsieve", "ours"),
        ("twinsieve.pipeline.kafka", "ours too"),
    ]


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (BrokerError("a: is wrong\nb: is wrong", retryable=False), 3, ["a: is wrong", "b: is wrong"]),
        (BrokerError("broker x: away", retryable=True), 1, ["broker x: away"]),
        (FatalError("topic x: not allowed", denied=True), 3, ["topic x: not allowed"]),
        (FatalError("another one runs", fenced=True), 1, ["another one runs"]),
        (StateError("the input lost messages"), 3, ["the input lost messages"]),
        (StateError("s3://a: cannot be listed", lasting=False), 1, ["s3://a: cannot be listed"]),
        (UsageError("--member is ''"), 2, ["--member is ''"]),
        (ConfigError(["a.yaml:1:2: x", "a.yaml:2:2: y"]), 2, ["a.yaml:1:2: x", "a.yaml:2:2: y"]),
        (
            ValueError("oh\nno"),
            1,
            ["a bug in twinsieve ended this process; please report it: ValueError: oh\nno"],
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_end_is_a_record_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, lines: list[str]
) -> None:
    stderr = _stream(monkeypatch)
    log_to_stderr(_settings(), "weibo")
    with pytest.raises(Exit) as ended, ends_logged():
        raise error
    assert ended.value.exit_code == code
    said = _said(stderr)
    assert [line["msg"] for line in said] == lines
    assert {line["level"] for line in said} == {"critical"}
    assert [line["trace"].splitlines()[0] for line in said if "trace" in line] == [
        "Traceback (most recent call last):"
    ] * isinstance(error, ValueError)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nothing_stands_beside_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads, destructors and warnings of Python write lines of their own where nobody takes them."""

    class Broken:
        def __del__(self) -> None:
            raise RuntimeError("in a destructor")

    def fail() -> None:
        raise RuntimeError("in a thread")

    stderr = _stream(monkeypatch)
    log_to_stderr(_settings(), "weibo")
    with ends_logged():
        thread = threading.Thread(target=fail, name="beside")
        thread.start()
        thread.join()
        del thread
        Broken()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(capture=True)
            warnings.warn("old call", DeprecationWarning, stacklevel=1)
            logging.captureWarnings(capture=False)
    said = _said(stderr)
    assert [line["level"] for line in said] == ["error", "error", "warning"]
    assert said[0]["msg"] == "thread beside: RuntimeError: in a thread"
    assert said[1]["msg"].endswith("RuntimeError: in a destructor")
    assert "old call" in said[2]["msg"]
