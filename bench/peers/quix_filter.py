"""Quix Streams with a store: `python -m bench.peers.quix_filter BOOTSTRAP GROUP INPUT OUTPUT FOLDER`.

Exactly once, its own defaults; a message is keyed by its text. Runs until it is terminated.
"""

from __future__ import annotations

import sys
from typing import Any

from quixstreams import Application, State


def _is_new(_value: dict[str, Any], state: State) -> bool:
    if state.get("seen"):
        return False
    state.set("seen", True)
    return True


def main() -> None:
    """Copy messages whose key did not come before in their partition."""
    bootstrap, group, source, output, folder = sys.argv[1:]
    app = Application(
        broker_address=bootstrap,
        consumer_group=group,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        state_dir=folder,
        loglevel="ERROR",
    )
    messages = app.dataframe(app.topic(source, key_deserializer="bytes", value_deserializer="json"))
    messages = messages.filter(_is_new, stateful=True)
    messages.to_topic(app.topic(output, key_serializer="bytes", value_serializer="json"))
    app.run()


if __name__ == "__main__":
    main()
