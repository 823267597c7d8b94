"""Constants of the cost model that no layout says; each was measured by the program beside it.

Generated posts (`twinsieve generate`, mainly Chinese), with ids and times as Kafka has them.
`python -m bench.cost_model` compares the model with a measurement.
"""

from __future__ import annotations

SMALL_BYTES = 1 << 16
"""Bytes of a snapshot beside kept messages and filters: its manifest, counters, what is open."""

OPEN_US = ((100_000, 3.0), (1_000_000, 4.4), (10_000_000, 7.3))
"""µs of one thread to judge a message, by kept messages of the only segment
(`python -m bench.near_scale`)."""

SEALED_US = ((10_000, 0.7), (100_000, 0.9), (16_000_000, 3.6))
"""µs more for each sealed segment, by its kept messages (`python -m bench.cost_model`; the last one:
`python -m bench.large_window`, time of both processors)."""

OPEN_CHARACTER_US = 0.027
SEALED_CHARACTER_US = 0.012
"""µs more for each character of the mean length above CHARACTERS, in the open segment and in each sealed one
(`python -m bench.cost_model`, 58 to 216 characters)."""

CHARACTERS = 55.0
"""Mean characters of the posts with which times were measured."""

LOOK_UPS = 32
"""Look-ups of a long body in the default layout, with which times were measured."""

FIXED_SHARE = 0.15
"""Share of the time that does not depend on the number of look-ups (`python -m bench.cost_model`: 28, 32 and
42 look-ups take 5.1, 5.6 and 7.2 µs)."""
