"""The jars of a real Kafka broker, fetched once with Maven and cached outside the checkout.

What tests/registry/apicurio.py starts is fetched in the same way.
"""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import debian

KAFKA_VERSION = "4.2.0"
_NAME = f"Kafka {KAFKA_VERSION}"
_JAVA_NEEDED = 17
TOOLS = {
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
}
"""Tools of Kafka, and the classes that they start."""
_POM = Path(__file__).with_name("pom.xml")
HOW = "install Java 17 or newer, Maven and OpenSSL (Debian: apt-get install openjdk-17-jre-headless maven openssl)"


class NoBrokerError(Exception):
    """No real broker can be started here, or nothing else that needs Java.

    reason: what is missing, without what to do about it
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; {HOW}")
        self.reason = reason


@functools.cache
def class_path() -> str:
    """Java class path of Kafka 4.2.0; the first call downloads about 43 MB.

    side effects: installs Java and Maven with apt-get where they are missing and this is root
    raises: NoBrokerError with what is missing, and what to install
    """
    need_java()
    jars = cache() / f"kafka-{KAFKA_VERSION}"
    with locked("kafka"):
        if not jars.is_dir():
            fetch(jars, _NAME, "dependency:copy-dependencies", "-DincludeScope=runtime", "-f", str(_POM))
    return f"{jars}/*"


@functools.cache
def tools_path() -> str:
    """Java class path of the console tools of Kafka 4.2.0, which a container has as kafka-console-consumer.sh and the like.

    raises: NoBrokerError as `class_path`
    """
    broker = class_path()
    tools = cache() / f"kafka-tools-{KAFKA_VERSION}"
    with locked("kafka"):
        if not tools.is_dir():
            fetch(tools, _NAME, "dependency:copy", f"-Dartifact=org.apache.kafka:kafka-tools:{KAFKA_VERSION}")
    return f"{broker}:{tools}/*"


@functools.cache
def class_archive() -> Path:
    """Where the classes that a node loads lie ready for this Java to map, once they were archived there.

    A node then needs 1.0 s of CPU to start, not 1.6, which a loaded machine doubles
    """
    found = re.sub(r"[^0-9a-zA-Z.+-]", "-", _java_says())
    return cache() / f"kafka-{KAFKA_VERSION}-java-{found}.jsa"


def need(command: str, package: str, name: str) -> None:
    """Install the command where it is missing. raises: NoBrokerError where that cannot be done"""
    with _no_broker():
        debian.need(command, package, name)


@contextmanager
def _no_broker() -> Iterator[None]:
    """What cannot be installed keeps a broker from starting."""
    try:
        yield
    except debian.MissingError as error:
        raise NoBrokerError(str(error)) from error


def cache() -> Path:
    """This user's folder for what tests fetch; it is made if it is missing."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    # An empty or relative path counts as not set, by the specification of that variable.
    folder = (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "twinsieve"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Two test runs may fetch the same at once: one after the other."""
    with open(cache() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(folder: Path, name: str, *goal: str) -> None:
    """Make the folder with the files that this goal of Maven copies. raises: NoBrokerError; it has this name

    The folder appears by rename, so a killed download is never used.
    """
    need("mvn", "maven", "Maven")
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["mvn", "-q", "-B", *goal, f"-DoutputDirectory={partial}"]
    said = debian.first_error(command, os.environ)
    if said is not None or not partial.is_dir():
        raise NoBrokerError(f"{name} could not be fetched with Maven: {said or 'it wrote nothing'}")
    partial.rename(folder)


def need_java() -> None:
    """Install Java where it is missing. raises: NoBrokerError where that cannot be done"""
    name = f"Java {_JAVA_NEEDED} or newer"
    if _java_version() < _JAVA_NEEDED:
        with _no_broker():
            debian.install("openjdk-17-jre-headless", name)
    found = _java_version()
    if found < _JAVA_NEEDED:
        raise NoBrokerError(f"{name} is not what `java` starts, which is Java {found}")


def _java_version() -> int:
    match = re.match(r"\d+", _java_says())
    return int(match.group()) if match else 0


def _java_says() -> str:
    """Its version in full; empty without Java."""
    if shutil.which("java") is None:
        return ""
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60, check=False)
    match = re.search(r"\(build (\d[^,)]*)", shown.stderr)
    return match.group(1) if match else ""
