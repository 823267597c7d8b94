"""A real schema registry: Apicurio's, which speaks Confluent's protocol too. It is fetched once with Maven."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tests.broker.distribution import cache, fetch, locked, need_java
from tests.broker.server import ends_with_this_process, free_ports
from tests.debian import MissingError, first_error
from tests.registry.own_registry import OwnRegistry

VERSION = "2.6.13.Final"
"""Versions from 3 on need Java 21."""
_SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
_READY_S = 90.0
_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryStartError(Exception):
    """Java and the registry are here, yet it does not start: a failure, never a reason to skip."""


@functools.cache
def program() -> Path:
    """The jar to start; the first call downloads 142 MB.

    raises: NoBrokerError, MissingError with what is missing
    """
    need_java()
    place = cache() / f"apicurio-{VERSION}"
    with locked("apicurio"):
        if not place.is_dir():
            _unpack_to(place)
    return place / f"apicurio-registry-app-{VERSION}-runner.jar"


def _unpack_to(place: Path) -> None:
    packed, partial = place.with_name(f"{place.name}.packed"), place.with_name(f"{place.name}.partial")
    for folder in (packed, partial):
        shutil.rmtree(folder, ignore_errors=True)
    name = f"Apicurio Registry {VERSION}"
    goal = ("dependency:copy", f"-Dartifact=io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all")
    fetch(packed, name, *goal)
    (archive,) = packed.iterdir()
    if hashlib.sha256(archive.read_bytes()).hexdigest() != _SHA256:
        shutil.rmtree(packed)
        raise MissingError(f"{name} as Maven fetched it has another checksum than the pinned one")
    partial.mkdir()
    error = first_error(["tar", "-xzf", str(archive), "-C", str(partial)], os.environ)
    shutil.rmtree(packed)
    if error is not None:
        raise MissingError(f"{name} could not be unpacked: {error}")
    partial.rename(place)


class Apicurio:
    """One registry on 127.0.0.1 that holds schemas in memory, under the methods of `OwnRegistry`."""

    def __init__(self, log: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        self._log = log
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
        command = ends_with_this_process(["java", *options, "-jar", str(program())])
        with open(log, "wb") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
        self._wait_ready()

    def add(self, subject: str, schema: object, kind: str = "AVRO", references: Any = ()) -> int:
        """The id of a schema that is registered under a subject. schema: text, or what becomes JSON"""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": list(references)}
        number: int = self._asked("POST", f"/subjects/{quote(subject)}/versions", body)["id"]
        return number

    def delete(self, subject: str) -> None:
        """Delete all schemas of a subject; their ids are known until they are deleted for good."""
        self._asked("DELETE", f"/subjects/{quote(subject)}", None)

    def delete_for_good(self, subject: str) -> None:
        """Delete all schemas of a subject that was deleted before."""
        self._asked("DELETE", f"/subjects/{quote(subject)}?permanent=true", None)

    def freeze(self) -> None:
        """Stop the process without closing its connections."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _asked(self, method: str, path: str, body: object) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(
            Request(self.url + path, data, {"Content-Type": _TYPE}, method=method), timeout=60
        ) as told:
            return json.load(told)

    def _wait_ready(self) -> None:
        until_s = time.monotonic() + _READY_S
        while time.monotonic() < until_s and self._process.poll() is None:
            try:
                self._asked("GET", "/subjects", None)
            except (URLError, OSError):
                time.sleep(0.1)
            else:
                return
        self.close()
        raise RegistryStartError(f"Apicurio did not start: {self._log.read_text(errors='replace')[-1500:]}")


AnyRegistry = OwnRegistry | Apicurio
