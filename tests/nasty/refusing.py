"""Outputs that refuse single messages: without a key, as a compacted topic does, or for a policy nobody can ask for."""

from __future__ import annotations

import random

from tests.driver import DEAD, DUPLICATES, OUTPUT, World, post
from tests.memory.faults import takes

BAD = b"bad"
OUTPUTS = (OUTPUT, DUPLICATES, DEAD)


def refuse(world: World, draw: random.Random) -> None:
    """Somebody has an output compacted, or sets a policy."""
    topic = draw.choice(OUTPUTS)
    if draw.random() < 0.5:
        world.compact_output(topic)
    else:
        world.refuse(topic, lambda key, _: key == BAD)


def accept(world: World) -> None:
    """All outputs take all again."""
    world.cluster.faults.refuses_record = takes
    for topic in OUTPUTS:
        world.cluster.topics[topic].settings.pop("cleanup.policy", None)


def produce_refused(world: World, draw: random.Random, texts: list[str]) -> None:
    """Messages that an output may refuse; their texts are those of others, or cannot be read."""
    name = draw.choice(sorted(world.topic_ids))
    if name in world.cluster.topics:
        number = draw.randrange(len(world.cluster.topics[name].logs))
        for _ in range(draw.randint(1, 3)):
            value = b"{" if draw.random() < 0.2 else post(draw.choice(texts))
            world.produce(name, number, [value], draw.choice([BAD, None]))
