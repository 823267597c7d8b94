"""The manifests of Kubernetes as `kubectl kustomize` renders them, and the schemas that they are held against."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.broker.distribution import cache
from tests.debian import MissingError, first_error
from tests.deploy.played import DEPLOY

EXAMPLES = ("example", "example-shards")
VERSIONS = ("1.29", "1.37")
"""Of Kubernetes: the oldest and the newest whose schemas the manifests are held against."""
_VALIDATOR = "kubernetes-validate==1.37.0"


def need_tools() -> None:
    """raises: MissingError with what is missing"""
    if shutil.which("kubectl") is None:
        raise MissingError("kubectl is not installed; https://kubernetes.io/docs/tasks/tools")
    _validator()


@functools.cache
def rendered(example: str) -> list[dict[str, Any]]:
    """The objects of an example."""
    command = ["kubectl", "kustomize", str(DEPLOY / "kubernetes" / example)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


def of_kind(example: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in rendered(example) if each["kind"] == kind]


def processes(example: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Of each StatefulSet its name, its pod and its only container."""
    found = []
    for each in of_kind(example, "StatefulSet"):
        pod = each["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        found.append((each["metadata"]["name"], pod, container))
    return found


def mib(written: str) -> int:
    """MiB of an amount of memory, written with Gi or Mi."""
    return int(written[:-2]) << (10 if written.endswith("Gi") else 0)


def validate() -> Callable[..., object]:
    """`validate(object, version, strict)` of kubernetes-validate, which raises what it finds."""
    folder = _validator()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    import kubernetes_validate

    return kubernetes_validate.validate  # type: ignore[no-any-return]


@functools.cache
def _validator() -> Path:
    """Its folder. It is no package for development, because it holds the schemas of thirty versions, 70 MB."""
    place = cache() / _VALIDATOR.replace("==", "-")
    if not place.exists():
        made = place.with_name(f"{place.name}.{os.getpid()}")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-compile",
            "--target",
            str(made),
            _VALIDATOR,
        ]
        error = first_error(command, os.environ)
        if error is not None:
            shutil.rmtree(made, ignore_errors=True)
            raise MissingError(f"{_VALIDATOR} cannot be installed: {error}")
        os.rename(made, place)
    return place
