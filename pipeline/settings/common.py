"""The settings that all processes of an app should have in common, as a text that two of them can compare."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import open_regular
from twinsieve.pipeline.settings.show import settings_in_force
from twinsieve.pipeline.settings.tree import Tree

_OWN = (
    *("app", "kafka.", "topics.", "state.", "http.", "log."),
    *("digest.seed", "input.expect_text", "input.registry.", "near.threads", "near.blocks"),
    *("near.answers", "near.patience", "near.replicas", "near.grace"),
)
"""Keys, and sections, that may differ between the processes of an app: they change no verdict, and not what
is read or where it goes."""
_DEFAULTS = "defaults"
_MOST = 1_500
"""Characters of such a text. Kafka keeps at most 4,096 bytes beside an offset, and more stands there."""


def common_settings(settings: Settings) -> str:
    """The keys that are not at their default, each with a digest of its value; `defaults` if there is none.

    The text has no space and no secret. A file counts by its content.

    >>> common_settings(Settings())
    'defaults'
    """
    found = [
        f"{key}:{_digest(_content(key, value), 2)}"
        for key, value in _values(settings).items()
        if value != _defaults()[key]
    ]
    text = ",".join(found) or _DEFAULTS
    return text if len(text) <= _MOST else f"all:{_digest(text.encode(), 8)}"


def settings_id(common: str) -> str:
    """Eight hex digits that identify the settings in this text.

    >>> settings_id("defaults") == settings_id("defaults") != settings_id("scope:1f3a")
    True
    """
    return _digest(common.encode(), 4)


def differing_keys(one: str, other: str) -> list[str]:
    """Keys in which the settings of two texts differ; empty if one text is, because it is unknown then.

    >>> differing_keys("input.text_field:1f3a,scope:22bc", "scope:22bc"), differing_keys("", "scope:22bc")
    (['input.text_field'], [])
    """
    if not one or not other:
        return []
    return sorted(
        {pair.partition(":")[0] for pair in set(one.split(",")) ^ set(other.split(","))} - {_DEFAULTS}
    )


def _values(settings: Settings) -> dict[str, str]:
    return {
        each.key: each.value for each in settings_in_force(settings, Tree()) if not each.key.startswith(_OWN)
    }


@cache
def _defaults() -> dict[str, str]:
    return _values(Settings())


def _content(key: str, value: str) -> bytes:
    if key.endswith("_file"):
        with suppress(OSError), open_regular(Path(value)) as stream:
            return stream.read()
    return value.encode("utf-8", "surrogatepass")


def _digest(content: bytes, size: int) -> str:
    return blake2b(content, digest_size=size).hexdigest()
