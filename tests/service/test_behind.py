"""An index that judges slower than the input comes stays ready and alive, and says how far behind it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.test_changed_settings import base, posts
from tests.service.turned import Turned
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import Status
from twinsieve.stages.judge.scheme import Scheme


def test_the_metric_the_page_and_the_log_say_how_long_blocks_wait(
    tmp_path: Path, scheme: Scheme, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[float | None, str, str]] = []

    def look(step: str) -> None:
        if step == "transactor.commit.before" and roles.loops == [roles.index]:
            seen.append((roles.value("index_behind_seconds"), status.remark(), status.why_not_ready()))
            roles.index._query_lag()

    roles = Turned(base(str(tmp_path)), scheme, hook=look)
    status = Status(Metrics(roles.clock), "localhost:9092")
    roles.world.produce(posts(1, 9))
    roles.turn(40)
    assert roles.world.done()
    status.runs([roles.index])
    assert (roles.value("index_behind_seconds"), status.remark()) == (0.0, "")
    roles.loops = [roles.worker]
    roles.world.produce(posts(2, 9))
    roles.turn(3)
    roles.clock.sleep(20.0)
    roles.loops = [roles.index]
    roles.run_until(lambda: bool(seen), 1.0)
    (behind_s, remark, why_not) = seen[0]
    assert behind_s is not None
    assert 20 <= behind_s < 22
    assert remark == f"index: is {behind_s:.0f} s behind"
    assert why_not == ""
    assert "index: 20 s behind: " in caplog.text
    roles.loops = [roles.worker, roles.index]
    roles.turn(20)
    assert (roles.value("index_behind_seconds"), status.remark()) == (0.0, "")


def test_a_block_that_takes_long_to_judge_is_no_silence_of_the_broker(tmp_path: Path, scheme: Scheme) -> None:
    roles = Turned(base(str(tmp_path)), scheme)
    roles.turn(40)
    roles.run(10.0)
    assert roles.ready
    # A real client goes on with its heartbeats meanwhile.
    roles.world.cluster.group("t.index").session_timeout_s = 1e9
    index = roles.index._index
    assert index is not None
    judged = index._rule
    told: list[bool] = []

    def slowly(*given: object) -> object:
        for _ in range(10):
            roles.clock.sleep(6.0)
            roles.index.log_silence()
            told.append(roles.index.ready)
        return judged(*given)  # type: ignore[arg-type]

    index._rule = slowly  # type: ignore[method-assign,assignment]
    roles.loops = [roles.worker]
    roles.world.produce(posts(1, 3))
    roles.turn(3)
    roles.loops = [roles.index]
    roles.turn(1)
    assert told == [True] * 10
    assert roles.index.ready
    assert roles.index.alive
