"""One real Kafka node as a child process that tests may freeze, kill and start again."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.broker.distribution import class_archive, class_path

_READY_TIMEOUT_S = 90.0
_STOPPED_TIMEOUT_S = 10.0
_PORTS = range(20_000, 32_000)
_given: set[int] = set()


class BrokerStartError(Exception):
    """Java and Kafka are here, yet the broker does not start: a failure, never a reason to skip."""


def free_ports(count: int) -> list[int]:
    """Ports on 127.0.0.1 that nobody listens on, and that this process was not given before.

    They lie below the range of outgoing connections: a killed broker's port would otherwise be
    taken by some client before the broker is back.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.choice(_PORTS)
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        found.append(port)
    return found


def ends_with_this_process(command: Sequence[str]) -> list[str]:
    """The command as the kernel ends it with this process: one that is killed with -9 runs no clean-up."""
    guard = shutil.which("setpriv")
    return [*([guard, "--pdeathsig", "KILL"] if guard else []), *command]


class Node:
    """One JVM with broker and controller; its log and data live in `folder`."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str],
        *,
        lives_long: bool = False,
        java: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._properties = dict(properties)
        self._jvm_options = [*java, *([_COMPILES_WELL] if lives_long else [])]
        self._data = Path(properties["log.dirs"])
        self._config = folder / "server.properties"
        self._config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        self._log = folder / "server.log"
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None

    def format(self, cluster_id: str, *extra: str) -> None:
        """Prepares the empty data folder; `extra` goes to the storage tool.

        What that tool writes is kept for nodes to come: it takes as much of a core as the start of a node. Only the
        ids in it differ.
        """
        asked = "\0".join([class_archive().name, self._properties["process.roles"], *extra])
        kept = class_archive().with_name(f"formatted-{hashlib.sha256(asked.encode()).hexdigest()[:16]}")
        if not kept.is_dir():
            self._format_with_tool(cluster_id, extra)
            partial = Path(tempfile.mkdtemp(prefix="formatted-", suffix=".partial", dir=kept.parent))
            shutil.copytree(self._data, partial, dirs_exist_ok=True)
            try:
                partial.rename(kept)
            except OSError:
                # Another test run was faster.
                shutil.rmtree(partial)
            return
        shutil.copytree(kept, self._data)
        meta = self._data / "meta.properties"
        folder_id = base64.urlsafe_b64encode(b"t" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        ids = {
            "node.id": self._properties["node.id"],
            "cluster.id": cluster_id,
            "directory.id": folder_id,
        }
        held = dict(line.split("=", 1) for line in meta.read_text().splitlines() if not line.startswith("#"))
        assert ids.keys() < held.keys(), held
        meta.write_text("".join(f"{key}={value}\n" for key, value in (held | ids).items()))

    def _format_with_tool(self, cluster_id: str, extra: Sequence[str]) -> None:
        command = [*_java(), "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._config)]
        done = subprocess.run([*command, *extra], capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise BrokerStartError(f"Kafka cannot format its storage: {(done.stdout + done.stderr)[-800:]}")

    def start(self, *jvm_options: str) -> None:
        """Starts the JVM; returns at once, see `wait_ready`."""
        with open(self._log, "ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                ends_with_this_process(
                    [*_java(*self._jvm_options, *jvm_options), "kafka.Kafka", str(self._config)]
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Returns when the node serves clients.

        raises: BrokerStartError with the end of its log
        """
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            with open(self._log, "rb") as log:
                log.seek(self._log_start)
                if b"Kafka Server started" in log.read():
                    return
            time.sleep(0.05)
        raise BrokerStartError(f"Kafka did not start: {self.log_text()[-1500:]}")

    def log_text(self) -> str:
        """All the node has written so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def pid(self) -> int:
        """The id of its process, which was started."""
        assert self._process is not None
        return self._process.pid

    def running(self) -> bool:
        """True while the JVM lives."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """SIGTERM: unlike a killed one, it registers again as soon as it is started."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_READY_TIMEOUT_S)

    def kill(self) -> None:
        """kill -9, as a power cut would; idempotent."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)
        self._process = None

    def archive_classes(self) -> None:
        """Starts and ends the formatted node once, so that later starts map its classes ready-made.

        raises: BrokerStartError
        """
        archive = class_archive()
        partial = archive.with_name(f"{archive.name}.{os.getpid()}")
        self.start(f"-XX:ArchiveClassesAtExit={partial}")
        self.wait_ready()
        self.stop()
        # A Java that cannot archive writes nothing. Two test runs may be here at once; either archive will do.
        if partial.exists():
            partial.rename(archive)

    def freeze(self) -> None:
        """Stop the process without closing its connections (SIGSTOP); return when no thread runs any more.

        The kernel stops all threads when one of them has taken the signal. On a loaded machine that takes up
        to 70 ms, long enough for the broker to answer once more.
        """
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)
        deadline = time.monotonic() + _STOPPED_TIMEOUT_S
        while not _stopped(self._process.pid):
            assert time.monotonic() < deadline, "the node goes on after SIGSTOP"
            time.sleep(0.001)

    def thaw(self) -> None:
        """Lets a frozen process go on (SIGCONT)."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGCONT)


def _stopped(process: int) -> bool:
    """True when every thread of the process stands still."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        # A thread has ended since it was listed; so not all stood still.
        return False
    return all(thread.rpartition(")")[2].split()[0] == "T" for thread in threads)


_COMPILES_WELL = "-XX:TieredStopAtLevel=4"
"""As Java does by itself, and a broker in production."""


def _java(*more: str) -> list[str]:
    # Asked first: it may have to install Java, whose version the archive's name needs.
    jars = class_path()
    # A test broker lives for seconds on a small machine: cheap compiler, cheap collector, small heap.
    options = ["-Xmx512m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    if class_archive().exists():
        options.append(f"-XX:SharedArchiveFile={class_archive()}")
    quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Djava.awt.headless=true"]
    return ["java", *options, *more, *quiet, "-cp", jars]
