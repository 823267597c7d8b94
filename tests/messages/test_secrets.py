"""Ids and scopes are keyed by the secret of the digests, each in its own way; a missing one is 0 under every secret."""

from __future__ import annotations

from hashlib import blake2b
from itertools import combinations
from typing import Any

import mmh3
import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.examples import examples
from tests.stages.fingerprint import twin
from twinsieve.api.given import read_columns
from twinsieve.pipeline.messages.fields import as_bytes
from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader, hash_ids, hash_scopes
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.hashing import Hash, Use
from twinsieve.stages.fingerprint.secret import NO_SECRET, Secret
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

KEY = bytes(range(16))
TREE: dict[str, Any] = {"scope": ["tenant"], "input": {"id_field": "id"}}
MESSAGES = [
    {"text": "one", "id": "a", "tenant": "x"},
    {"text": "two", "id": "", "tenant": ""},
    {"text": "three", "tenant": 7},
    {"text": "four", "id": 12, "tenant": "y\0"},
    {"text": "five", "id": "天气", "tenant": None},
]


def read(secret: Secret | None, tree: dict[str, Any] = TREE, messages: object = MESSAGES) -> MessageColumns:
    reader = MessageReader(Settings.model_validate(tree), secret=secret)
    return reader.read([orjson.dumps(message) for message in messages])  # type: ignore[attr-defined]


def plain(use: Use, raw: bytes | None, secret: bytes) -> int:
    """64 bits, 0 for a missing value alone."""
    if raw is None:
        return 0
    if secret:
        key = blake2b(key=secret, digest_size=16, person=f"twinsieve {use}".encode()).digest()
        return int.from_bytes(twin.siphash_128(raw, key)[:8], "little") or 1
    seed = {"id": 0x7D1, "scope": 0x5C0}[use]
    return mmh3.hash64(raw, seed, signed=False)[0] or 1


@settings(max_examples=examples(60))
@given(
    ids=st.lists(st.none() | st.integers(0, 2**70) | st.text(), max_size=6),
    secret=st.just(b"") | st.binary(min_size=16, max_size=16),
)
@example(ids=["a", "", "\0", "a\0", "\ud800"], secret=KEY)
@example(ids=["a" * size for size in range(1, 60)], secret=KEY)
@example(ids=["a" * size for size in range(1, 60)], secret=b"")
def test_ids_and_scopes_equal_the_plain_hashes(ids: list[str | int | None], secret: bytes) -> None:
    raw = [None if one in (None, "") else str(one).encode("utf-8", "surrogatepass") for one in ids]
    assert hash_ids(ids, Hash.of("id", secret)).tolist() == [plain("id", one, secret) for one in raw]
    scopes = [None if one is None else (one, "more") for one in ids]
    rows = [None if one is None else as_bytes(one) + as_bytes("more") for one in ids]
    made = hash_scopes(scopes, Hash.of("scope", secret))
    assert made.tolist() == [plain("scope", row, secret) for row in rows]


def test_no_two_secrets_have_one_id_or_scope_and_a_missing_id_is_0_under_all() -> None:
    secrets = (NO_SECRET, Secret.of_key(KEY), Secret.of_key(bytes(16)), Secret.of_seed(1))
    found = [read(secret) for secret in secrets]
    for one, other in combinations(found, 2):
        assert ((one.id_hashes == other.id_hashes) == [False, True, True, False, False]).all()
        assert not (one.scopes == other.scopes).any()
    assert not any(each.id_hashes[[1, 2]].any() for each in found)
    assert all(each.id_hashes[[0, 3, 4]].all() and each.scopes.all() for each in found)
    for each in found:
        assert len(set(each.scopes.tolist())) == len(MESSAGES)
        assert (each.ids, each.texts) == (found[0].ids, found[0].texts)


def test_without_a_secret_of_its_own_a_reader_takes_that_of_the_settings() -> None:
    def columns(of: MessageColumns) -> list[NDArray[np.uint64]]:
        return [of.id_hashes, of.scopes]

    seeded = TREE | {"digest": {"seed": 5}}
    own = columns(read(Secret.of_key(KEY), seeded))
    for one, other in (
        (columns(read(None, seeded)), columns(read(Secret.of_seed(5)))),
        (columns(read(None)), columns(read(NO_SECRET))),
        (own, columns(read(Secret.of_key(KEY)))),
    ):
        assert np.array_equal(one, other)
    assert not np.array_equal(own, columns(read(None, seeded)))


def test_a_name_alone_reads_no_messages() -> None:
    with pytest.raises(UsageError, match="is not known here"):
        read(Secret.named("75edad2126134dba35fa86daae116727"))


@pytest.mark.parametrize("secret", [NO_SECRET, Secret.of_key(KEY)])
def test_columns_in_python_have_the_ids_and_scopes_of_messages(secret: Secret) -> None:
    rows = [{"text": "one", "id": "a", "tenant": "x"}, {"text": "two", "id": "9", "tenant": "天"}]
    columns = read(secret, messages=rows)
    given = read_columns(*([row[name] for row in rows] for name in ("text", "id")), None, ["x", "天"], None)
    batch = given.batch(Scheme(SchemeConfig()), np.arange(2), 0, secret, raw_keys=False, ids_count=True)
    assert batch.ids.tolist() == columns.id_hashes.tolist()
    assert batch.scopes.tolist() == columns.scopes.tolist()
