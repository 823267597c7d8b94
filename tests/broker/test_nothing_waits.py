"""A state folder that hangs and a log that nobody reads, at once: messages come out, and the process ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.services import POSTS, Service, wait_for, written_settings
from tests.full_pipe import full_pipe
from tests.hung_folder import hung
from twinsieve.pipeline.service.stream_log import StreamLog
from twinsieve.pipeline.settings.model import Settings


@pytest.fixture
def unread(log_as_before: None) -> Iterator[None]:
    """The log goes to a pipe that is full and that nobody reads."""
    with full_pipe() as writes:
        stream = open(writes, "wb", buffering=0)  # noqa: SIM115 (its thread may still wait)
        logging.getLogger().addHandler(StreamLog(stream))
        logging.getLogger("twinsieve").setLevel(logging.INFO)
        yield


@pytest.mark.usefixtures("unread")
def test_messages_come_out_while_the_folder_hangs_and_nobody_reads_the_log(
    bootstrap: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    written = written_settings(bootstrap, state)
    written["state"]["snapshot_every"] = "1s"
    service = Service(Settings.model_validate(written))
    service.start()
    service.post(POSTS[0])
    wait_for(lambda: bool(list(state.rglob("*.snapshot"))), service)
    with hung(state) as folder:
        service.post(POSTS[1])
        wait_for(lambda: bool(folder.waiting), service)
        service.post(*POSTS[2:], POSTS[0])
        wait_for(lambda: service.count("out") == len(POSTS) and service.count("dup") == 1, service)
        service.stop()
        assert service.error is None
    service.end()
