"""An app gets another limit and another list of words on a real broker, while a standby still has the older rules."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path

import pytest

from tests.broker.services import POSTS, Process, Service, settings_for, wait_for
from tests.broker.worlds import until
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.settings.model import LimitSettings, NearSettings


def test_rules_change_under_an_app_and_back_and_each_change_is_logged_once(
    bootstrap: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    older = settings_for(bootstrap, tmp_path / "state")
    older = older.model_copy(update={"near": near_with(older.near, differences="full")})
    words = tmp_path / "words.yaml"
    words.write_text("light: 今天\n", "utf-8")
    limits = LimitSettings.model_validate({"longest": 9})
    newer = older.model_copy(update={"near": near_with(older.near, limits=limits, words_file=str(words))})
    service = Service(older)

    def emitted(copies: int) -> None:
        """All posts came out once, and each further copy of them was dropped."""
        wait_for(lambda: service.count("out", "dup") == len(POSTS) * (copies + 1), service)
        assert service.count("out") == len(POSTS)

    def logged() -> int:
        return sum("other rules" in record.getMessage() for record in caplog.records)

    with caplog.at_level(logging.WARNING, "twinsieve"):
        service.post(*POSTS)
        service.start()
        emitted(0)
        service.stop()
        service.settings = newer
        service.start()
        service.post(*POSTS)
        emitted(1)
        assert logged() == 1
        standby = Process(older, member="two")
        standby.start()
        with closing(service.broker.admin()) as admin:
            until(lambda: len(admin.members(Names(older.app).index)) == 2)
        service.post(*POSTS)
        emitted(2)
        assert logged() == 1, "the standby follows what others judge"
        service.stop()
        service.post(*POSTS)
        emitted(3)
        assert logged() == 2
        standby.stop()
        assert standby.error is None
    service.end()


def near_with(near: NearSettings, **values: object) -> NearSettings:
    return near.model_copy(update=values)
