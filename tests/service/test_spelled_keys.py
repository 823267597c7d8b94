"""On Kafka too, keys and scopes are equal where their spelling is, and NaN costs no message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service import build as service_build
from twinsieve.pipeline.service.build import make_scheme, wire_scheme
from twinsieve.pipeline.settings.model import Settings


@pytest.mark.parametrize(
    "setting", [{"exact": {"fields": ["key"]}, "near": {"method": "none"}}, {"scope": ["key"]}]
)
def test_integers_of_any_size_are_other_keys(tmp_path: Path, setting: dict[str, object]) -> None:
    settings = Settings.model_validate({"app": "t", "state": {"dir": str(tmp_path)}, **setting})
    process = Stepped(settings, make_scheme(settings), {"posts": 1})
    keys = [str(2**64), str(2**64 + 1), "1.50", "1.5", "-0.0", "1e3"]
    values = [f'{{"text": "one text for all of these messages", "key": {key}}}'.encode() for key in keys]
    process.write(Partition("posts", 0), [*values, values[1], values[2], values[4]])
    assert [entry.value for entry in process.entries("posts.unique")] == values
    assert [entry.value for entry in process.entries("posts.duplicates")] == [values[1], values[2], values[4]]


def test_keys_that_are_hashed_in_another_way_are_another_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Settings()
    trees = [{"exact": {"fields": ["key"]}}, {"scope": ["key"]}, {"near": {"same_id": "pass"}}]
    keyed = [Settings.model_validate(tree) for tree in trees]
    scheme = make_scheme(plain)
    before = [wire_scheme(one, scheme) for one in (plain, *keyed)]
    monkeypatch.setattr(service_build, "KEYS_BY", "rounded")
    after = [wire_scheme(one, scheme) for one in (plain, *keyed)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, False, False]
