"""Show the settings in force, written as in a file, and the origin of each; secrets are not shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from twinsieve.pipeline.settings.model import AUTO, PROFILES, NearSettings, Section, Settings
from twinsieve.pipeline.settings.schema import SECRETS, declared, literals, schema, written_as
from twinsieve.pipeline.settings.tree import KeyPath, Raw, Tree
from twinsieve.stages.contract import SIMILARITY_SCALE
from twinsieve.stages.errors import shown, without_secrets


class Shown(NamedTuple):
    """One setting.

    value: as it may be written in a file
    origin: file and line, variable, flag, profile or `default`
    """

    key: str
    value: str
    origin: str


def settings_in_force(settings: Settings, tree: Tree) -> list[Shown]:
    """Every setting, in the order of the schema. tree: the tree from which `check_tree` read the settings"""
    return list(_below(settings, (), tree))


@cache
def written_defaults() -> dict[str, str]:
    """The default of every key that has a value, written as in a file, except for secrets.

    >>> written_defaults()["near.similarity"], written_defaults()["near.window.age"]
    ('0.8', 'auto')
    """
    shown_defaults = settings_in_force(Settings(), Tree())
    return {
        each.key: "auto" if each.key in AUTO else each.value
        for each in shown_defaults
        if each.key not in SECRETS
    }


def help_line(key: str) -> str:
    """The help on a key: the words to choose from if it is a choice, what it does, and its default.

    >>> help_line("features.unit")
    'chars | words; of shingles (chars)'
    """
    choices = " | ".join(literals(key)) if schema()[key] == "value" else ""
    default = f"auto: {AUTO[key]}" if key in AUTO else written_defaults()[key]
    return f"{'; '.join(part for part in (choices, declared()[key].description) if part)} ({default})"


_METHOD_KEYS = {
    "text": ("near.similarity", "near.differences"),
    "hamming": ("near.distances",),
    "signatures": ("near.signature.share",),
    "none": (),
}
_WINDOW_KEYS = tuple(f"{stage}.window.{what}" for stage in ("near", "exact") for what in ("messages", "age"))
_DECIDING = ("profile", "scope", "text.", "features.", "exact.", "near.", "time.", "input.text_field")


def deciding_settings(settings: Settings) -> dict[str, str]:
    """The settings that decide which messages are dropped, by key, as in a file: those that a reader asks for
    first, and all others that are not the default.

    >>> deciding_settings(Settings(scope=("tenant",)))["scope"]
    '[tenant]'
    """
    first = ("profile", "near.method", *_METHOD_KEYS[settings.near.method], *_WINDOW_KEYS)
    values = {each.key: each.value for each in settings_in_force(settings, Tree())}
    others = {
        key: value
        for key, value in values.items()
        if key.startswith(_DECIDING) and value != written_defaults().get(key)
    }
    return {key: values[key] for key in first} | others


_SAFE_WITHOUT_FULL = 8_000


def near_in_force(near: NearSettings) -> list[str]:
    """A line on the least similarity and the differences in force, and a warning if they do not fit each
    other. Empty unless near.method is `text`.

    >>> near_in_force(NearSettings(similarity=7_500, differences="guards"))
    ['similarity from 0.75, differences: guards', 'below 0.8 write near.differences: full, or much is lost']
    """
    if near.method != "text":
        return []
    said = [f"similarity from {near.similarity / SIMILARITY_SCALE:g}, differences: {near.differences}"]
    if near.similarity < _SAFE_WITHOUT_FULL and near.differences != "full":
        said.append("below 0.8 write near.differences: full, or much is lost")
    return said


def unlike_profile(settings: Settings, written: dict[str, Raw]) -> list[str]:
    """A line for each setting of the near stage that is set to another value than the profile has for it.

    written: the values that were set explicitly
    """
    near = written.get("near")
    return list(_unlike(PROFILES[settings.profile], settings.near, near, "near", settings.profile))


def _unlike(
    wanted: Mapping[str, object], section: Section, written: object, above: str, profile: str
) -> Iterator[str]:
    for name, value in wanted.items():
        if not isinstance(written, dict) or name not in written:
            continue
        key, here = f"{above}.{name}", getattr(section, name)
        if isinstance(value, Section):
            below = {each: getattr(value, each) for each in type(value).model_fields}
            yield from _unlike(below, here, written[name], key, profile)
        elif here != value:
            shown, own = (value_text(key, declared()[key], each) for each in (here, value))
            yield f"{key} is {shown}, and profile {profile} has {own}; remove the key to have the profile's"


def _below(section: BaseModel, above: KeyPath, tree: Tree) -> list[Shown]:
    shown: list[Shown] = []
    for name, info in type(section).model_fields.items():
        path = (*above, info.alias or name)
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            shown += _below(value, path, tree)
            continue
        key = ".".join(map(str, path))
        shown.append(Shown(key, value_text(key, info, value), _origin(path, tree, settings_value=value)))
    return shown


def _origin(path: KeyPath, tree: Tree, *, settings_value: object) -> str:
    *above, name = path
    place = tree.places.get(path) or tree.places.get((*above, f"{name}_file"))
    if place is not None:
        return f"{place.source}:{place.line}" if place.line else place.source
    if path == ("near", "method") and settings_value == "none":
        return "exact.fields is set"
    profile = str(tree.values.get("profile"))
    if path[0] == "near" and path[1] in PROFILES.get(profile, {}):
        return f"profile {profile}"
    return "default, none on files" if path[1:] == ("window", "age") else "default"


def value_text(key: str, info: FieldInfo, value: object) -> str:
    """The value of a key, written as in a file; a secret is not shown."""
    if key in SECRETS:
        return "(not shown)" if value else "none"
    written = written_as(info)
    if written is not None and value is not None and not isinstance(value, (str, tuple)):
        return written.text(value)
    return shown(_plain(value)) if isinstance(value, str) else without_secrets(_plain(value))


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_quoted, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {one}' for name, one in value.items())}}}"
    return str(value)


def _quoted(text: str) -> str:
    """The text as an item of a YAML list: without quotes if it is a name, else in single quotes."""
    return text if re.fullmatch(r"[\w.-]+", text) else "'" + text.replace("'", "''") + "'"
