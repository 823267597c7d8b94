"""A digest of the rules: of everything that decides whether two given messages are duplicates.

The scheme id says which fingerprints messages have; the rules say what follows from them. Decisions and saved
states carry this digest. They can be used under other rules, which then apply from the next message on.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from hashlib import blake2b
from typing import Any

from twinsieve.stages.contract import FULL, OFF, NearConfig
from twinsieve.stages.differ.phrases import CALENDAR_KINDS, Phrases
from twinsieve.stages.differ.rules import Category, Rule
from twinsieve.stages.differ.word_lists import phrases_of

RULES_BYTES = 8
"""Size of a digest; as text it has two hex digits for each byte."""


def rules_digest(near: NearConfig) -> str:
    """16 hex digits; configurations with the same digest decide the same about any two messages.

    A digest covers the method and its thresholds, and under the method `text` the level and limits of
    differences, the words of all lists, and the version of each rule that this level uses (`Rule.version`).
    """
    level = near.differences.level if near.method == "text" else OFF
    named: dict[str, Any] = {
        "method": near.method,
        "same_id": near.same_id,
        "rules": [[int(rule), rule.version] for rule in Rule if _is_used(rule, level)],
    }
    if near.method == "text":
        named["similarity"] = near.similarity
    if near.method == "hamming":
        named["distances"] = near.distances_by_field or near.distances
    if near.method == "signatures":
        named["share"] = near.share
    if level == FULL:
        named["limits"] = near.differences._asdict()
    if level != OFF:
        named["words"] = _digest_of_lists(near.words)
    written = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return blake2b(written.encode(), digest_size=RULES_BYTES, person=b"twinsieve-rules").hexdigest()


def _is_used(rule: Rule, level: int) -> bool:
    if rule in (Rule.NONE, Rule.SAME_ID):
        return True
    return level == FULL or (level != OFF and rule.category is not Category.AMOUNT)


@cache
def _digest_of_lists(words: str) -> str:
    """`words_digest` of the built-in lists and a user's. An index that fails makes a new sieve each time, and
    the lists have tens of thousands of words."""
    return words_digest(phrases_of(words))


def words_digest(phrases: Phrases) -> str:
    """A digest of the lists of words, whatever the order of their files and of the opposites in them."""
    opposites = defaultdict(list)
    starts, senses = phrases.sense_starts.tolist(), phrases.senses.tolist()
    for key, first, end in zip(phrases.keys.tolist(), starts, starts[1:], strict=False):
        for sense in senses[first:end]:
            opposites[sense >> 8].append((sense & 255, key))
    ordered = sorted(
        (kind if kind < CALENDAR_KINDS else CALENDAR_KINDS, sorted(sides))
        for kind, sides in opposites.items()
    )
    digest = blake2b(json.dumps([ordered, _by_language(phrases)]).encode(), digest_size=RULES_BYTES)
    for table in (
        phrases.classes,
        phrases.worth,
        phrases.keys,
        phrases.ids,
        phrases.roles,
        phrases.number,
        phrases.bases,
    ):
        digest.update(table.tobytes())
    return digest.hexdigest()


def _by_language(phrases: Phrases) -> list[object]:
    """What each language has, English first, the others in the order of what they have."""
    languages = [
        [
            phrases.endings[(phrases.languages >> bit) & 1 != 0].tolist(),
            [phrases.keys[(column >> bit) & 1 != 0].tolist() for column in phrases.held.T],
            int(phrases.beside[bit]).bit_count(),
        ]
        for bit in range(32)
    ]
    return [languages[0], sorted(languages[1:])]
