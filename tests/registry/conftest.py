"""Schema registries: one of the tests' own, and a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registry.apicurio import AnyRegistry, Apicurio
from tests.registry.own_registry import OwnRegistry


@pytest.fixture(scope="module")
def own() -> Iterator[OwnRegistry]:
    with OwnRegistry() as made:
        yield made


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    made = Apicurio(tmp_path_factory.mktemp("registry") / "log")
    yield made
    made.close()


@pytest.fixture(
    scope="module", params=["own", pytest.param("apicurio", marks=pytest.mark.needs("real registry"))]
)
def registry(request: pytest.FixtureRequest) -> AnyRegistry:
    """Each of them in turn."""
    made: AnyRegistry = request.getfixturevalue(request.param)
    return made
