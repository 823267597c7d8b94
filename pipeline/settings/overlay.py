"""Put settings that stand inside another YAML file on top of a tree of settings."""

from __future__ import annotations

from twinsieve.pipeline.settings.schema import schema
from twinsieve.pipeline.settings.tree import KeyPath, Raw, Tree, dotted


def overlay(tree: Tree, other: Tree, at: KeyPath) -> None:
    """Put the mapping that stands at `at` in `other` on top of the settings in `tree`, with its places.

    Sections are merged key by key; every other value replaces the one below it, also lists and mappings.
    """
    values: object = other.values
    for part in at:
        values = values.get(part) if isinstance(values, dict) else _item(values, part)
    if isinstance(values, dict):
        _merge(tree, tree.values, values, ())
    for found, taken in ((tree.places, other.places), (tree.key_places, other.key_places)):
        for path, place in taken.items():
            if path[: len(at)] == at and len(path) > len(at):
                found[path[len(at) :]] = place


def _item(values: object, part: str | int) -> object:
    return values[part] if isinstance(values, list) and isinstance(part, int) else None


def _merge(tree: Tree, below: dict[str, Raw], above: dict[str, Raw], path: KeyPath) -> None:
    for name, value in above.items():
        here, before = (*path, name), below.get(name)
        if isinstance(value, dict) and isinstance(before, dict) and schema().get(dotted(here)) == "section":
            _merge(tree, before, value, here)
            continue
        for places in (tree.places, tree.key_places):
            for known in [known for known in places if known[: len(here)] == here]:
                del places[known]
        below[name] = value
