"""A stranger chooses the field that is a scope, or an exact key, so that it has the hash of somebody else's.

Without a key both are made in a moment (`murmur_backwards`). With one he knows everything but the key, and
what he made meets nobody.
"""

from __future__ import annotations

import random
from functools import cache

import mmh3
import pytest

from tests.hostile.app import NO_KEY, WINDOWS, App, any_key
from tests.hostile.murmur_backwards import text_with_hash
from twinsieve.pipeline.messages.fields import as_bytes
from twinsieve.pipeline.messages.reader import hash_ids, hash_scopes
from twinsieve.stages.contract import Kind
from twinsieve.stages.fingerprint.hashing import Hash
from twinsieve.stages.fingerprint.secret import Secret

KEYS = 1_000
SCOPE_SEED, ID_SEED = 0x5C0, 0x7D1
"""Of the public hashes of scopes and ids."""
TENANT, URL = "northfield", "https://northfield.example/council/2026-12-07"
ANNOUNCEMENT = "The city council meets on Thursday at 7 pm in the town hall, everybody is welcome"


def halves(content: bytes, seed: int) -> tuple[int, int]:
    one, two = mmh3.hash64(content, seed, signed=False)
    return one, two


def random_keys() -> list[bytes]:
    dice = random.Random(73)
    return [dice.randbytes(16) for _ in range(KEYS)]


@cache
def forged_scope() -> str:
    """Another tenant, with the public hash of TENANT."""
    made = text_with_hash(b"s44:coupons/", halves(as_bytes(TENANT), SCOPE_SEED)[0], None, SCOPE_SEED)
    return made.decode().removeprefix("s44:")


@cache
def forged_url() -> str:
    """Another address, with the public digest of URL."""
    return text_with_hash(b"s44:https://a.b/", *halves(as_bytes(URL), 0), 0).decode().removeprefix("s44:")


def test_two_scopes_of_one_public_hash_differ_under_each_of_a_thousand_keys() -> None:
    pair = [[TENANT], [forged_scope()]]
    assert len(set(hash_scopes(pair, Hash.of("scope")).tolist())) == 1
    made = [hash_scopes(pair, Hash.of("scope", key)).tolist() for key in random_keys()]
    assert [hashes for hashes in made if len(set(hashes)) == 1] == []


def test_two_ids_of_one_public_hash_differ_under_each_of_a_thousand_keys() -> None:
    forged = text_with_hash(b"post-", halves(b"7001", ID_SEED)[0], None, ID_SEED).decode()
    assert len(set(hash_ids(["7001", forged], Hash.of("id")).tolist())) == 1
    made = [hash_ids(["7001", forged], Hash.of("id", key)).tolist() for key in random_keys()]
    assert [hashes for hashes in made if len(set(hashes)) == 1] == []


def posted_by_tenants(secret: Secret) -> list[Kind]:
    """The announcement, of a stranger in the scope that he forged, and then of the tenant himself."""
    app = App(secret, {**WINDOWS, "scope": ["tenant"]})
    return app.kinds([{"text": ANNOUNCEMENT, "tenant": each} for each in (forged_scope(), TENANT, TENANT)])


def test_without_a_key_a_forged_scope_takes_the_post_of_a_tenant() -> None:
    assert posted_by_tenants(NO_KEY) == [Kind.UNIQUE, Kind.EXACT, Kind.EXACT]


@pytest.mark.parametrize("seed", range(10))
def test_with_a_key_a_forged_scope_meets_nobody(seed: int) -> None:
    assert posted_by_tenants(any_key(seed)) == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]


@pytest.mark.parametrize("method", ["mmh3", "blake2b"])
def test_the_scope_is_keyed_by_a_secret_seed_whatever_makes_the_digests(method: str) -> None:
    app = App(Secret.of_seed(2_881_443_302), {**WINDOWS, "scope": ["tenant"], "digest": {"method": method}})
    found = app.kinds([{"text": ANNOUNCEMENT, "tenant": each} for each in (forged_scope(), TENANT)])
    assert found == [Kind.UNIQUE, Kind.UNIQUE]


def posted_by_url(secret: Secret, method: str = "mmh3") -> list[Kind]:
    """A stranger's post with the key that he forged, then two of somebody else with the true one."""
    sections: dict[str, object] = {
        "exact": {"fields": ["url"], "window": {"messages": 1_000}},
        "near": {"method": "none"},
        "digest": {"method": method},
    }
    app = App(secret, sections)
    return [
        app.kind(text="buy coupons", url=forged_url()),
        app.kind(text="the council meets on Monday", url=URL),
        app.kind(text="and on Tuesday", url=URL),
    ]


def test_without_a_key_a_forged_url_takes_the_post_of_somebody_else() -> None:
    assert posted_by_url(NO_KEY) == [Kind.UNIQUE, Kind.EXACT, Kind.EXACT]


@pytest.mark.parametrize("seed", range(10))
def test_with_a_key_a_forged_url_meets_nobody(seed: int) -> None:
    assert posted_by_url(any_key(seed)) == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]


def test_a_secret_seed_keys_exact_keys_with_the_fast_method_too() -> None:
    assert posted_by_url(Secret.of_seed(7)) == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]
