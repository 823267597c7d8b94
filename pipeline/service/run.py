"""`twinsieve run`: run the roles of this process until a stop, or until an error that waiting cannot repair.

Steps of a start: open the HTTP pages, choose the name of the process, query a broker until it answers,
compile kernels, begin the roles. A stop works during each step, and the pages show the current step.
Steps of a clean stop: the worker sends no more blocks, emits the answered messages, reports its progress and
leaves its group; then the index writes a snapshot and leaves its group. Either role may also be killed at any
moment instead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from twinsieve.pipeline.basics.daemon_executor import DaemonExecutor
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.saved.segment_files import make_scratch
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.service.http import HealthServer
from twinsieve.pipeline.service.index_loop import IndexLoop
from twinsieve.pipeline.service.input_watch import watching_input
from twinsieve.pipeline.service.loop import Loop, LoopPhase
from twinsieve.pipeline.service.member_watch import ForeignMembers, watched_members
from twinsieve.pipeline.service.metrics import Metrics, ProcessPhase
from twinsieve.pipeline.service.roles import BOTH, check_roles, roles_of
from twinsieve.pipeline.service.shard_loop import ShardLoop
from twinsieve.pipeline.service.slots import slot_of
from twinsieve.pipeline.service.start_checks import Command, check_app, until_answered
from twinsieve.pipeline.service.stop_limits import END_S, SNAPSHOT_S, hand_over_s
from twinsieve.pipeline.service.text_check import require_texts
from twinsieve.pipeline.service.warm_up import ABOUT, warm_up
from twinsieve.pipeline.service.watchdog import Watchdog
from twinsieve.pipeline.service.worker_loop import WorkerLoop
from twinsieve.pipeline.settings.checks import shadow, unshared_state
from twinsieve.pipeline.settings.common import common_settings, settings_id
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import scheme_config
from twinsieve.stages.judge.scheme import Scheme

_log = logging.getLogger("twinsieve")
_START_S = 2.0
_JOIN_S = 0.2
"""While it waits for a role to end, it looks this often whether the role hangs."""


class SystemClock:
    """The clock of the operating system."""

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for this time."""
        time.sleep(seconds)


class Status:
    """The state of the process, for its HTTP pages and its metric."""

    def __init__(self, metrics: Metrics, bootstrap: str) -> None:
        self._metrics = metrics
        self._loops: list[Loop] = []
        self.foreign: ForeignMembers | None = None
        self.go(ProcessPhase.WAITING, bootstrap)

    def go(self, phase: ProcessPhase, why: str = "") -> None:
        self._start_line = f"{phase.replace('_', ' ')}: {why}" if why else phase.replace("_", " ")
        self._metrics.process.enter(phase)

    def runs(self, loops: list[Loop]) -> None:
        self._loops = loops
        self.go(ProcessPhase.RUNNING)

    def why_not_healthy(self) -> str:
        """The roles without progress, or an empty line. A process that is still starting counts as healthy,
        because a silent broker or a slow CPU may make the start long."""
        return ", ".join(f"{loop.name}: no step for minutes" for loop in self._loops if not loop.alive)

    def why_not_ready(self) -> str:
        if not self._loops:
            return self._start_line
        behind = [loop for loop in self._loops if not loop.ready]
        lines = [
            f"{loop.name}: {loop.phase.now}, not ready"
            + (f" ({loop.why_not_ready})" if loop.why_not_ready else "")
            for loop in behind
        ]
        return ", ".join([*lines, *self._of_foreign()] if lines else lines)

    def remark(self) -> str:
        """What an operator should know although the process is ready; empty if nothing."""
        remarks = [f"{loop.name}: {loop.remark}" for loop in self._loops if loop.remark]
        return ", ".join([*remarks, *self._of_foreign()])

    def _of_foreign(self) -> list[str]:
        return [self.foreign.remark] if self.foreign is not None and self.foreign.remark else []


@dataclass(frozen=True, slots=True)
class Watch:
    """What a process tells its status pages. named: its name; tick: called a few times a second"""

    named: Callable[[str], None] = lambda _: None
    tick: Callable[[], None] = lambda: None


Connect = Callable[[Settings], Broker]
"""Makes a broker client for settings."""
Pages = Callable[[Settings, Metrics, Clock, Status], AbstractContextManager[Watch]]
"""Serves the status pages of a process as long as the context lasts."""


@contextmanager
def no_pages(*_: object) -> Iterator[Watch]:
    """Serve no status pages."""
    yield Watch()


def run_service(
    settings: Settings,
    connect: Connect,
    *,
    pages: Pages = no_pages,
    role: str = BOTH,
    member: str | None = None,
    dry_run: bool = False,
    move_output: bool = False,
    without_snapshots: bool = False,
    clock: Clock | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Run the service until `stop` is set; then finish the open work and report the progress.

    pages: serves the status pages, which stand above this package
    role: what this process does, as `roles_of` reads it
    member: a stable name of this process, unique in the deployment; if None, `slot_of` chooses one
    dry_run: shadow mode: judge and count, but emit nothing; with groups, internal topics and state of its own
        (app `<app>-shadow`)
    move_output: accept that `output.topic` is not the output recorded for the app, and record it
    without_snapshots: begin with the blocks that the log still holds, although the snapshots that cover older
        blocks are lost
    clock: another clock, for tests
    raises: ConfigError, UsageError; BrokerError and StateError, with advice, if a retry cannot help
    """
    roles = roles_of(role)
    check_roles(roles, settings)
    settings = shadow(settings) if dry_run else settings
    clock = clock or SystemClock()
    stop = stop or threading.Event()
    if "shard" in roles and "index" not in roles:
        for key, problem in unshared_state(settings):
            _log.warning("run: %s %s", key, problem)
    if roles & {"index", "shard"}:
        make_scratch(settings.state.scratch)
    scheme_config(settings)  # raises for problems of the settings before the slow steps begin
    metrics = Metrics(clock)
    status = Status(metrics, settings.kafka.bootstrap)
    own = settings_id(common_settings(settings))
    metrics.set_info(settings.app, role, settings=own)
    metrics.session_timeout.set({(): settings.kafka.session_timeout_ms / 1000})
    with ExitStack() as stack:
        watchdog = stack.enter_context(
            Watchdog(stop, clock, status.why_not_ready, status.why_not_healthy, status.remark)
        )
        if settings.http.address is not None:
            server = HealthServer(
                settings.http.address,
                metrics.registry,
                status.why_not_healthy,
                status.why_not_ready,
                status.remark,
            )
            stack.callback(server.close)
        watch = stack.enter_context(pages(settings, metrics, clock, status))
        slot, background = stack.enter_context(process(settings, member))
        watch.named(slot)
        _log.info("run: connecting to broker %s", settings.kafka.bootstrap)
        foreign = ForeignMembers(settings.app, metrics.set_foreign_members)
        status.foreign = foreign
        has_text = threading.Event()

        def check() -> Scheme:
            scheme = check_app(
                settings,
                partial(connect, settings),
                clock,
                auto_create=settings.topics.auto_create or dry_run,
                emits=not dry_run,
                same_output=not (dry_run or move_output),
                needs_key=bool(roles & {"worker", "index"}),
            )
            group = Names(settings.app).workers
            if require_texts(settings, connect(settings), clock, group=group, refuses="worker" in roles):
                has_text.set()
            return scheme

        scheme = until_answered(check, clock, stop, lambda error: status.go(ProcessPhase.WAITING, str(error)))
        if scheme is None or stop.is_set():
            return
        # Only now: a start that is refused asks no broker twice.
        stack.enter_context(watched_members(foreign, lambda: connect(settings), clock))
        # Compile before joining a group: a member that compiled during a step would delay the messages of its
        # partitions.
        status.go(ProcessPhase.COMPILING)
        warm_up(log_compiling, stopped=stop.is_set)
        if stop.is_set():
            return
        metrics.set_info(settings.app, role, scheme.scheme_id, own)
        builder = Builder(
            settings,
            scheme,
            clock,
            connect,
            slot,
            emit=not dry_run,
            background=background,
            needs_snapshots=not without_snapshots,
            has_text=has_text,
            who_had=foreign.who_had,
        )
        stack.callback(builder.queries.shutdown, wait=False)
        index = IndexLoop(builder, clock, metrics) if "index" in roles else None
        if index is not None:
            metrics.snapshot_every.set({(): settings.state.snapshot_every_ms / 1000})
        indexes: list[Loop] = [index] if index is not None else []
        workers: list[Loop] = [WorkerLoop(builder, clock, metrics, index=index)] if "worker" in roles else []
        shards: list[Loop] = []
        if "shard" in roles:
            shards.append(ShardLoop(builder.shard_maker(), clock, metrics, builder.calls, builder.alive_s))
        status.runs([*workers, *indexes, *shards])
        watchdog.watch([*workers, *indexes, *shards])
        ids = (scheme.scheme_id, own)
        _log.info("run: app=%s role=%s member=%s scheme=%s settings=%s", settings.app, role, slot, *ids)
        stack.enter_context(watching_input(settings, connect, clock, metrics))
        drive(workers, indexes, stop, tick=watch.tick, shards=shards, hand_over_s=hand_over_s(settings))


@contextmanager
def process(settings: Settings, member: str | None) -> Iterator[tuple[str, Executor]]:
    """Context manager with the name of this process and the executor that writes its snapshots. Its end does
    not wait for a snapshot, because the folder may hang."""
    slot = slot_of(settings, member)
    background = DaemonExecutor("snapshot")
    try:
        yield slot.name, background
    finally:
        background.shutdown(wait=False)
        slot.release()


def log_compiling(done: int, calls: int, command: Command = "run") -> None:
    """Log how far the compilation is, so that the log shows why nothing is judged yet."""
    _log.info("%s: %s: %d of %d parts are ready", command, ABOUT, done, calls)


def drive(
    workers: list[Loop],
    indexes: list[Loop],
    stop: threading.Event,
    end_s: float = END_S,
    snapshot_s: float = SNAPSHOT_S,
    start_s: float = _START_S,
    tick: Callable[[], None] = lambda: None,
    shards: Sequence[Loop] = (),
    hand_over_s: float = END_S,
) -> None:
    """Run all loops until `stop` or until one fails; then end all, and raise the error of the failed one.

    end_s: limit for workers to end, and for indexes too after a failure, so that a client that hangs cannot
        keep the process alive
    snapshot_s: limit for indexes to end in a clean stop, in which they may write a large snapshot
    start_s: limit for a role that is still starting. It may be waiting for a silent broker or reading a large
        snapshot, and has no open work
    tick: called a few times a second
    shards: loops that go on until other processes do their work; hand_over_s: limit for that
    raises: BrokerError if a role does not end in time, or hangs; nothing waits for a role that hangs
    """
    running = {loop: _started(loop) for loop in [*workers, *indexes, *shards]}

    def failed() -> bool:
        return any(loop.is_lost for loop in running)

    def join(loop: Loop, until_s: float) -> bool:
        """Whether the role ended before this time; returns sooner if it hangs."""
        while running[loop].is_alive() and not loop.has_hung and time.monotonic() < until_s:
            running[loop].join(min(_JOIN_S, max(0.0, until_s - time.monotonic())))
        return not running[loop].is_alive()

    while all(thread.is_alive() for thread in running.values()) and not failed():
        if stop.wait(0.2):
            break
        tick()
        for loop in running:
            loop.log_silence()
    # At once: other shards answer meanwhile, and these still answer the index.
    for loop in shards:
        loop.stop()
    # End the workers first, because they need the index for their last answers.
    late = []
    for group, limit_s in ((workers, end_s), (indexes, snapshot_s), (shards, hand_over_s)):
        for loop in group:
            loop.stop()
        limit_s = min(limit_s, end_s) if failed() else limit_s
        began_s = time.monotonic()
        for loop in group:
            if join(loop, began_s + min(limit_s, start_s)) or loop.has_hung:
                continue
            is_started = loop.error is not None or loop.phase.now is not LoopPhase.STARTING
            is_started |= failed() and loop.is_member  # give it the time to leave its group
            if loop.waits_for_store or not is_started:
                _log.info("%s: was still starting, so the process ends without waiting for it", loop.name)
                continue
            if not join(loop, began_s + limit_s) and not loop.has_hung:
                late.append(f"{loop.name}: does not end within {limit_s:g} s")
                _log.error("%s, so the process ends without waiting for it; nothing is lost", late[-1])
    for loop in running:
        if loop.error is not None:
            raise loop.error
    # Also if it has ended after all: the watchdog has said that the process ends.
    late += [f"{loop.name}: hangs" for loop in running if loop.has_hung]
    if late:
        problem = f"{', '.join(late)}: a client hangs; nothing is lost; start the process again"
        raise BrokerError(problem, retryable=True)


def _started(loop: Loop) -> threading.Thread:
    """The started thread of a loop. It is a daemon, so that a hanging loop cannot keep the process alive."""

    def run() -> None:
        # `loop.error` has the error that ended the loop; `drive` raises it.
        with suppress(BaseException):
            loop.run()

    thread = threading.Thread(target=run, name=f"role-{loop.name}", daemon=True)
    thread.start()
    return thread
