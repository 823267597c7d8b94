"""A stranger fills the Bloom filter: his posts set all bits that somebody else's next post has.

Each post sets one bit in each slice of a filter. Without a key everybody can compute which, so a stranger
tries texts and posts those that set a bit that he wants. When the near window has passed them, the other post
is dropped as an exact duplicate of nothing.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.hostile.app import NEAR_WINDOW, NO_KEY, WINDOWS, App, any_key, ordinary, posts
from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.service.running import Service, came_out, patient_cluster, small, wait_for
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.stages.contract import Flag, Kind
from twinsieve.stages.exact.bloom_kernel import STEP_SHIFT
from twinsieve.stages.exact.bloom_sizing import BloomSizing, bloom_sizing
from twinsieve.stages.fingerprint.hashing import Hash, hash_code_points
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.intrinsics import GOLDEN

VICTIM = "Northfield city council: the Main Street bridge is closed to all traffic from Monday 6 am"
CONTROL = "Southgate hospital: the east entrance stays open for visitors during the works on Friday"
TRIED = 4_000

Numbers = NDArray[np.uint64]


def mixed(words: Numbers) -> Numbers:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def places(digests: Numbers, sizing: BloomSizing) -> Numbers:
    """uint64[n, slices]: the bit that each digest has in each slice."""
    steps = ((digests[:, 1] >> STEP_SHIFT) * GOLDEN) | np.uint64(1)
    words = mixed(digests[:, :1] + np.arange(sizing.slices, dtype=np.uint64) * steps[:, None])
    bits, half = np.uint64(sizing.slice_bits), np.uint64(32)
    low = words & np.uint64(0xFFFFFFFF)
    return ((words >> half) * bits + ((low * bits) >> half)) >> half


def sizing_of(app: App) -> BloomSizing:
    exact = app.sieve.config.exact
    return bloom_sizing(exact.window, exact.error_rate)


@cache
def crafted(secret: Secret = NO_KEY) -> tuple[str, ...]:
    """Posts that set all bits of VICTIM's in an app with this secret. The stranger knows the rest."""
    app, dice, covered, found = App(secret), random.Random(7), set[int](), []
    sizing = sizing_of(app)
    wanted = places(app.batch(posts([VICTIM])).fingerprints.digests, sizing)[0]
    while len(covered) < sizing.slices:
        texts = ordinary(dice, TRIED)
        own = places(app.batch(posts(texts)).fingerprints.digests, sizing)
        for text, hits in zip(texts, own == wanted, strict=True):
            sets = set(np.flatnonzero(hits).tolist()) - covered
            if sets:
                covered |= sets
                found.append(text)
    assert len(found) <= sizing.slices
    return tuple(found)


def verdicts(secret: Secret, crafted_posts: tuple[str, ...]) -> dict[str, tuple[Kind, int]]:
    """Kind and flags of VICTIM, and of another new post, after the stranger's and ordinary ones."""
    app, dice = App(secret), random.Random(11)
    assert set(app.kinds(posts(crafted_posts))) == {Kind.UNIQUE}
    assert set(app.kinds(posts(ordinary(dice, NEAR_WINDOW)))) == {Kind.UNIQUE}
    last = app.judge(posts([CONTROL, VICTIM]))
    pairs = zip(last.kinds.tolist(), last.flags.tolist(), strict=True)
    return dict(zip(("control", "victim"), ((Kind(kind), flags) for kind, flags in pairs), strict=True))


TAKEN = {"control": (Kind.UNIQUE, 0), "victim": (Kind.EXACT, int(Flag.UNCONFIRMED))}
KEPT = {"control": (Kind.UNIQUE, 0), "victim": (Kind.UNIQUE, 0)}


def test_without_a_key_some_twenty_posts_take_the_post_of_somebody_else() -> None:
    assert verdicts(NO_KEY, crafted()) == TAKEN


@pytest.mark.parametrize("seed", range(20))
def test_with_a_key_the_same_posts_take_nothing(seed: int) -> None:
    assert verdicts(any_key(seed), crafted()) == KEPT


def test_whoever_has_the_key_is_where_strangers_were_without_one() -> None:
    leaked = any_key(0)
    assert verdicts(leaked, crafted(leaked)) == TAKEN
    assert verdicts(any_key(1), crafted(leaked)) == KEPT


def test_posts_made_for_the_default_windows_take_nothing_with_a_key() -> None:
    """Ten million messages: some 24 of five million texts that were tried."""
    sections: dict[str, object] = {"near": {"window": {"messages": NEAR_WINDOW}}}
    public = App(NO_KEY, sections)
    sizing, dice, covered, found = sizing_of(public), np.random.default_rng(3), set[int](), list[str]()
    assert sizing.messages == 10_000_000
    wanted = places(public.batch(posts([VICTIM])).fingerprints.digests, sizing)[0]
    count, length = 100_000, 12
    starts = np.arange(0, count * length + 1, length)
    while len(covered) < sizing.slices:
        chars = dice.integers(ord("a"), ord("z") + 1, count * length, dtype=np.uint32)
        digests = np.empty((count, 2), np.uint64)
        hash_code_points(chars, starts, Hash.of("digest"), digests)
        for row, part in np.argwhere(places(digests, sizing) == wanted).tolist():
            if part not in covered:
                covered.add(part)
                found.append("".join(map(chr, chars[starts[row] : starts[row + 1]].tolist())))
    between = ordinary(random.Random(11), NEAR_WINDOW)
    for secret, kind in ((NO_KEY, Kind.EXACT), (any_key(0), Kind.UNIQUE), (any_key(1), Kind.UNIQUE)):
        app = App(secret, sections)
        assert set(app.kinds(posts([*found, *between]))) == {Kind.UNIQUE}
        assert app.kinds(posts([CONTROL, VICTIM])) == [Kind.UNIQUE, kind]


def texts_in(cluster: MemoryCluster, topic: str) -> set[str]:
    return {json.loads(value)["text"] for value in cluster.values(topic) if value is not None}


@pytest.mark.parametrize("key", ["own", "none"])
def test_the_same_through_a_service(key: str, tmp_path: Path) -> None:
    """A service on Kafka has a key unless its settings say no."""
    windows: dict[str, Any] = {**WINDOWS, "digest": {"key": key}}
    between = ordinary(random.Random(11), NEAR_WINDOW)
    stream = [*crafted(), *between, CONTROL, VICTIM]
    messages = Messages()
    for text in stream:
        messages.add(b"k", json.dumps({"text": text}).encode())
    cluster = patient_cluster()
    cluster.create(NewTopic("posts", 1))
    MemoryBroker(cluster).appender().append(Partition("posts", 0), messages)
    service = Service(small(tmp_path, {}, **windows), cluster, member="one")
    outputs = ("posts.unique", "posts.duplicates")
    wait_for(lambda: came_out(cluster, *outputs) == len(stream) or not service.running, "all are judged")
    service.end()
    dropped = texts_in(cluster, "posts.duplicates")
    assert dropped == (set() if key == "own" else {VICTIM})
    assert texts_in(cluster, "posts.unique") == set(stream) - dropped
