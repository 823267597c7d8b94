"""`twinsieve run`: both roles in one process, until a signal or an error that waiting cannot mend.

Order of a clean stop: the worker asks for nothing more, emits what is answered, reports how far it came and
leaves; then the index writes a snapshot and leaves. Either may be killed at any moment instead.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Literal

from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.service.build import Builder, make_scheme
from twinsieve.pipeline.service.http import HealthServer
from twinsieve.pipeline.service.loops import IndexLoop, Loop, WorkerLoop
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.slots import slot_of
from twinsieve.pipeline.service.start_checks import check_topics
from twinsieve.pipeline.service.warm_up import CompileProgress, warm_up
from twinsieve.pipeline.settings.checks import shadow
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import scheme_config

_log = logging.getLogger("twinsieve")
_END_S = 30.0
_SNAPSHOT_S = 600.0
_PAUSE_S = 1.0

Role = Literal["worker", "index", "both"]


class SystemClock:
    """The real time."""

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds since some start."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def run_service(
    settings: Settings,
    connect: Callable[[Settings], Broker],
    *,
    role: Role = "both",
    member: str | None = None,
    dry_run: bool = False,
    move_output: bool = False,
    clock: Clock | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Returns after SIGTERM or SIGINT (or `stop`), everything finished and reported.

    member: a stable name of this process, unique in the deployment; without one, `slot_of` finds one
    dry_run: shadow mode, with groups, internal topics and state of its own (app `<app>-shadow`): judges and
        counts, emits nothing
    move_output: the app's output is this one from now on, whichever it was
    connect: a broker of these settings; clock, stop: for tests
    raises: ConfigError, UsageError; BrokerError and StateError when going on makes no sense, with what to do
    """
    settings = shadow(settings) if dry_run else settings
    clock = clock or SystemClock()
    stop = stop or threading.Event()
    scheme_config(settings)  # reports problems of the settings before the slow steps begin
    auto_create = settings.topics.auto_create or dry_run
    check_topics(
        settings,
        connect(settings),
        auto_create=auto_create,
        emits=not dry_run,
        same_output=not (dry_run or move_output),
        stop=stop,
    )
    if stop.is_set():
        return
    metrics = Metrics(clock)
    loops: list[Loop] = []
    with ExitStack() as stack:
        slot, background = stack.enter_context(process(settings, member, stop))
        if settings.http.address is not None:
            server = HealthServer(
                settings.http.address,
                metrics.registry,
                # Without loops kernels are being compiled: alive, however long a small share of a core takes.
                lambda: all(loop.alive for loop in loops),
                lambda: bool(loops) and all(loop.ready for loop in loops),
            )
            stack.callback(server.close)
        # Before a group is joined: a member that compiles inside a step would keep its share waiting.
        warm_up(log_progress, stopped=stop.is_set)
        if stop.is_set():
            return
        scheme = make_scheme(settings)
        builder = Builder(settings, scheme, clock, connect, slot, emit=not dry_run, background=background)
        index = IndexLoop(builder, clock, metrics) if role != "worker" else None
        indexes: list[Loop] = [index] if index is not None else []
        workers: list[Loop] = [WorkerLoop(builder, clock, metrics, index=index)] if role != "index" else []
        loops += [*workers, *indexes]
        _log.info("run: app=%s role=%s member=%s scheme=%s", settings.app, role, slot, scheme.scheme_id)
        drive(workers, indexes, stop)


@contextmanager
def process(
    settings: Settings, member: str | None, stop: threading.Event
) -> Iterator[tuple[str, ThreadPoolExecutor]]:
    """The name of this process, and what writes its snapshots; meanwhile signals set `stop`."""
    slot = slot_of(settings, member)
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="snapshot") as background, _signals(stop):
            yield slot.name, background
    finally:
        slot.release()


def log_progress(progress: CompileProgress) -> None:
    """Lines for the beginning and each part: a supervisor's log shows why nothing is judged yet."""
    if progress.done == 0:
        _log.info(
            "run: compiling kernels, once for each version and kind of CPU parts=%d processes=%d",
            progress.parts,
            progress.processes,
        )
    else:
        _log.info(
            "run: compiled part=%s done=%d of=%d seconds=%.1f",
            progress.name,
            progress.done,
            progress.parts,
            progress.seconds,
        )


def drive(
    workers: list[Loop],
    indexes: list[Loop],
    stop: threading.Event,
    end_s: float = _END_S,
    snapshot_s: float = _SNAPSHOT_S,
) -> None:
    """Run all loops; the first that fails ends the others, and its error is raised.

    end_s: how long workers may take to end, and indexes too once something has failed: a client that hangs
        keeps no process alive
    snapshot_s: how long indexes may take in a clean stop: a last snapshot may be large
    raises: BrokerError where a role does not end in time
    """
    running = {loop: _started(loop) for loop in [*workers, *indexes]}

    def failed() -> bool:
        return any(loop.error is not None for loop in running)

    while all(thread.is_alive() for thread in running.values()) and not failed():
        if stop.wait(0.2):
            break
        for loop in running:
            loop.look()
    # Workers first: they need the index for their last answers.
    late = []
    for group, limit_s in ((workers, end_s), (indexes, snapshot_s)):
        for loop in group:
            loop.stop()
        limit_s = min(limit_s, end_s) if failed() else limit_s
        until_s = time.monotonic() + limit_s
        for loop in group:
            running[loop].join(max(0.0, until_s - time.monotonic()))
            if running[loop].is_alive():
                late.append(f"{loop.name}: does not end within {limit_s:g} s")
                _log.error("%s, so the process ends without it; nothing is lost", late[-1])
    for loop in running:
        if loop.error is not None:
            raise loop.error
    if late:
        raise BrokerError(
            f"{', '.join(late)}: a client hangs; nothing is lost, start it again", retryable=False
        )


def _started(loop: Loop) -> threading.Thread:
    """A loop in a thread that does not outlive the process."""

    def run() -> None:
        # The loop keeps the error that ended it; `drive` raises it.
        with suppress(BaseException):
            loop.run()

    thread = threading.Thread(target=run, name=f"role-{loop.name}", daemon=True)
    thread.start()
    return thread


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set an event; handlers are put back at the end. Outside the main thread: nothing."""

    def on_signal(number: int, _: FrameType | None) -> None:
        _log.info("run: %s, stopping", signal.Signals(number).name)
        stop.set()

    is_main = threading.current_thread() is threading.main_thread()
    caught = (signal.SIGTERM, signal.SIGINT) if is_main else ()
    before = {each: signal.signal(each, on_signal) for each in caught}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
