"""How often a command on Kafka searches for objects that only other such objects refer to."""

import gc

_OBJECTS = 1_000


def search_often() -> None:
    """Search when there are this many objects more than at the last search; never again among those of now,
    which the imports have made.

    kafka-python leaves such objects behind with each answer of a broker, and they hold its bytes. With the
    threshold of the start (`twinsieve/__main__.py`) an index held 65 MB of old answers.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS)
