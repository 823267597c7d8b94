"""A default that is written means what it means unwritten, on a stream and on files."""

from __future__ import annotations

from typing import Any

import pytest

from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.schema import SECRETS, schema
from twinsieve.pipeline.settings.show import written_defaults
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.pipeline.settings.yaml_tree import read_flow

_BESIDE: dict[str, dict[str, object]] = {
    "nothing": {},
    "fields as keys": {"exact": {"fields": ["id"]}},
    "text alone": {"input": {"encoding": "text"}},
    "fingerprints decide": {
        "near": {"method": "hamming", "candidates": "scan"},
        "features": {"kind": "keywords"},
    },
}
"""What may stand beside a default, and changes what some of them mean."""
_DEFAULTS = written_defaults()


def read(values: dict[str, object], *, on_files: bool) -> Settings:
    settings, findings = check_tree(tree_of(values), on_files=on_files)
    assert findings == []
    assert settings is not None
    return settings


def with_default(values: dict[str, object], key: str) -> dict[str, object]:
    """These settings, and one default written beside them."""
    *above, name = key.split(".")
    whole: dict[str, Any] = {
        part: dict(one) if isinstance(one, dict) else one for part, one in values.items()
    }
    section = whole
    for part in above:
        section = section.setdefault(part, {})
    section.setdefault(name, read_flow(_DEFAULTS[key], "default").values["value"])
    return whole


@pytest.mark.parametrize("on_files", [False, True], ids=["stream", "files"])
@pytest.mark.parametrize("beside", _BESIDE)
def test_each_default_alone_changes_nothing(beside: str, on_files: bool) -> None:
    unwritten = read(_BESIDE[beside], on_files=on_files)
    for key in _DEFAULTS:
        values = with_default(_BESIDE[beside], key)
        if beside == "fields as keys" and key.startswith("near.") and key != "near.method":
            # Somebody who writes of a stage that fields switch off is told so, whatever is written.
            _, findings = check_tree(tree_of(values), on_files=on_files)
            assert "switches the near stage off" in findings[0].message
            continue
        written = read(values, on_files=on_files)
        assert written.model_dump() == unwritten.model_dump(), key
        assert watched(written) == watched(unwritten), key


@pytest.mark.parametrize("on_files", [False, True], ids=["stream", "files"])
def test_all_defaults_together_change_neither_scheme_nor_sieve(on_files: bool) -> None:
    unwritten = read({}, on_files=on_files)
    values: dict[str, object] = {}
    for key in _DEFAULTS:
        values = with_default(values, key)
    written = read(values, on_files=on_files)
    assert scheme_config(written) == scheme_config(unwritten)
    assert sieve_config(written, "") == sieve_config(unwritten, "")


def test_every_key_that_takes_a_value_has_its_default_tried() -> None:
    assert set(_DEFAULTS) | SECRETS == {key for key, kind in schema().items() if kind != "section"}


def watched(settings: Settings) -> list[Any]:
    """Fields that some message must have, or the run says so."""
    return MessageReader(settings)._watched(settings.input.model_fields_set)
