"""Constants of the cost model that no layout says; each was measured by the program beside it.

Generated posts (`twinsieve generate`, mainly Chinese), with ids and times as Kafka has them.
`python -m bench.cost_model` compares the model with a measurement.
"""

from __future__ import annotations

PACKED_COLUMNS = 18.2
"""Bytes of a kept message in a piece, after LZ4, of the columns whose size no text changes: id 8, position 4,
time, length and start of the text 2 each (`python -m bench.cost_model`: 17.7 to 18.6)."""

PACKED_CHARACTER = 2.0
"""Bytes of a stored character in a piece, after LZ4: two bytes and one for word starts before it
(`python -m bench.cost_model`: 1.94 with 58 characters, 2.08 with 108, 1.92 with 216). Texts in alphabets take
less."""

BAG_CHARACTERS = 35.0
"""Characters with which 63 % of the 32 bytes of a char bag are left after LZ4 (`python -m bench.cost_model`:
26.2 bytes with 58 characters, 31.0 with 108)."""

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
