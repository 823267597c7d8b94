"""The jars of a real Kafka broker, fetched once with Maven and cached outside the checkout."""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

KAFKA_VERSION = "4.2.0"
_JAVA_NEEDED = 17
_FETCH_TIMEOUT_S = 600
_POM = Path(__file__).with_name("pom.xml")
_HOW = (
    "install Java 17 or newer, Maven and OpenSSL (Debian: apt-get install openjdk-17-jre-headless maven "
    "openssl), "
    "or leave these tests out and know it: make test PYTEST_ARGS='--ignore tests/broker'"
)


class NoBrokerError(Exception):
    """No real broker can be started here; the text says what to install."""


@functools.cache
def class_path() -> str:
    """Java class path of Kafka 4.2.0; the first call downloads about 43 MB.

    side effects: installs Java and Maven with apt-get where they are missing and this is root
    raises: NoBrokerError with what to install
    """
    _need_java()
    cache = _cache()
    jars = cache / f"kafka-{KAFKA_VERSION}"
    # Two test runs may start at once; the folder appears by rename, so a killed download is never used.
    with open(cache / "kafka.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            _fetch(jars)
    return f"{jars}/*"


@functools.cache
def class_archive() -> Path:
    """Where the classes that a node loads lie ready for this Java to map, once they were archived there.

    A node then needs 1.0 s of CPU to start, not 1.6, which a loaded machine doubles
    """
    found = re.sub(r"[^0-9a-zA-Z.+-]", "-", _java_says())
    return _cache() / f"kafka-{KAFKA_VERSION}-java-{found}.jsa"


def need(command: str, package: str) -> None:
    """Nothing, when the command is there or could be installed. raises: NoBrokerError"""
    if shutil.which(command) is None:
        _install(package)


def _cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "twinsieve"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _fetch(jars: Path) -> None:
    need("mvn", "maven")
    partial = jars.with_name(jars.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={partial}", "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0 or not partial.is_dir():
        raise NoBrokerError(f"Maven could not fetch Kafka {KAFKA_VERSION}: {done.stdout[-800:].strip()}")
    partial.rename(jars)


def _need_java() -> None:
    if _java_version() < _JAVA_NEEDED:
        _install("openjdk-17-jre-headless")
    found = _java_version()
    if found < _JAVA_NEEDED:
        raise NoBrokerError(f"Java {_JAVA_NEEDED} is needed, found {found or 'none'}; {_HOW}")


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


def _install(package: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoBrokerError(f"{package} is missing and cannot be installed here; {_HOW}")
    quiet = {"capture_output": True, "text": True, "timeout": _FETCH_TIMEOUT_S, "check": False}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update"], env=environment, **quiet)  # type: ignore[call-overload]
    command = ["apt-get", "install", "-y", "--no-install-recommends", package]
    done = subprocess.run(command, env=environment, **quiet)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise NoBrokerError(f"apt-get could not install {package}: {done.stderr[-400:].strip()}; {_HOW}")
