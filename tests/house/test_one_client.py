"""The name of the Kafka client of before stands where the registry and developers' tools are, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from tests.packaging.conftest import project_files

_NAME = b"confluent"
_MAY_NAME_IT = {
    # The registry, whose client lies in the same package.
    "pipeline/registry/": "reads values as its serializers write them",
    "tests/registry/": "writes values with its serializers",
    "docs/SETTINGS.md": "says which serializers are read",
    "docs/INSTALL.md": "says what the extra `registry` installs",
    "SECURITY.md": "says what the extra `registry` brings along",
    "pyproject.toml": "the extra `registry`, and developers' tools",
    "requirements-dev.lock": "the same",
    "scripts/release.py": "licences of what extras install",
    "tests/packaging/": "the extra in lists of packages",
    # Other people's clients, for developers.
    "tests/broker/stranger.py": "other people's clients",
    "tests/broker/groups.py": "other people's answers",
    "tests/house/test_imports.py": "where it may be imported",
    "tests/house/test_one_client.py": "this list",
    "tests/api/test_public_names.py": "what an import of the library does not load",
    "docs/TESTING.md": "whose clients the strangers are",
    # The version before.
    "pipeline/settings/schema.py": "the setting of before",
    "pipeline/kafka/committed.py": "how it reads committed texts",
    "tests/settings/test_former_keys.py": "the setting of before",
    "tests/commands/test_run_start.py": "the setting of before",
    "bench/kafka_taken_over.py": "an app of before, which is taken over",
    "CHANGELOG.md": "what has changed",
    "docs/BENCHMARKS.md": "its last figures",
}
"""Files, and folders with / at their ends, that have a reason to name it."""


def test_the_client_of_before_is_named_where_there_is_a_reason(root: Path) -> None:
    named = [
        name
        for name in project_files(root)
        if (root / name).is_file() and _NAME in (root / name).read_bytes().lower()
    ]
    wrong = [name for name in named if not any(_lies_in(name, place) for place in _MAY_NAME_IT)]
    unused = [place for place in _MAY_NAME_IT if not any(_lies_in(name, place) for name in named)]
    assert (wrong, unused) == ([], [])


def _lies_in(name: str, place: str) -> bool:
    return name == place or (place.endswith("/") and name.startswith(place))
