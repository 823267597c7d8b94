"""`twinsieve status` on a real broker."""

from __future__ import annotations

import time

from tests.broker.services import POSTS, Service, wait_for
from twinsieve.pipeline.operate.status import Status, status_of
from twinsieve.pipeline.service.run import SystemClock


def told(service: Service) -> Status:
    return status_of(service.settings, service.broker, SystemClock())


def test_a_running_service_is_told_from_a_stopped_one(service: Service) -> None:
    began_ms = int(time.time() * 1000)
    service.post(*POSTS[:2], timestamp_ms=began_ms - 60_000)
    before = told(service)
    assert (before.judge, before.blocks, before.decided_ms) == (None, None, None)
    assert [(one.came_out_up_to, one.waiting, one.since_ms) for one in before.inputs] == [
        (None, 2, began_ms - 60_000)
    ]
    service.start()
    wait_for(lambda: service.count("out") == 2, service)
    wait_for(lambda: told(service).problems(0) == [], service)
    running = told(service)
    (worker,) = running.workers
    assert running.judge is not None
    assert (running.blocks, running.inputs[0].worker, running.inputs[0].waiting) == (0, worker, 0)
    assert running.decided_ms is not None
    assert abs(running.decided_ms - began_ms) < 600_000
    service.stop()
    service.post(POSTS[3])
    wait_for(lambda: told(service).judge is None, service)
    after = told(service)
    assert [line.split(":")[0] for line in after.problems(0)] == [
        "nobody judges",
        f"no worker has {after.inputs[0].partition}",
        "1 messages wait, more than 0",
    ]
