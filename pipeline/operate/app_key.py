"""The key of an app on Kafka: 128 random bits, drawn once, in a compacted topic of their own.

Digests, scopes and ids are made with it. So nobody who writes messages can choose values of these that equal
those of other messages. The key is drawn under a transactional id of its own: who makes a producer of that id
ends the transaction of any other one. So a process that finds the topic empty after that is the only one that
can write to it.

No second key is ever drawn: with another key nothing that was kept would be found again. So only a new app
draws one: its log has never held a block, and nothing is on record.
"""

from __future__ import annotations

import random
import secrets
from contextlib import closing

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock, Reader, TransactionalProducer
from twinsieve.pipeline.broker.records import (
    AbortableError,
    BrokerError,
    Committed,
    FatalError,
    Messages,
    Partition,
)
from twinsieve.pipeline.index.ends import recorded_under
from twinsieve.pipeline.operate.committed_index import committed_by_index
from twinsieve.pipeline.settings.fixed import NEW_APP, decode_fixed, key_name
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import StateError
from twinsieve.stages.fingerprint.secret import KEY_BYTES, NO_SECRET, Secret

_VERSION = 1
_RECORD_KEY = b"key"
"""Key of the record, which a compacted topic needs."""
_LIMIT_S = 20.0
_POLL_S = 0.1
_TRIES = 40
"""So many starts at once can end each other's transactions before one of them is left."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 4.0
"""The longest pause behind the first try, and behind any: it doubles, for a try may take seconds."""


def secret_of(settings: Settings, broker: Broker, clock: Clock) -> Secret:
    """What keys digests, scopes and ids of this app: its operator's seed, or its own key, which is drawn for
    a new app.

    The topics must exist.
    raises: BrokerError, a retryable one if no broker answers or others draw at this moment; StateError if the
        app has judged and there is no key, with what to do
    """
    if settings.digest.seed:
        return Secret.of_seed(settings.digest.seed)
    if not settings.has_own_key:
        return NO_SECRET
    with closing(broker.reader()) as reader, closing(broker.admin()) as admin:
        for attempt in range(_TRIES):
            found = _read(reader, settings.app, clock)
            if found is None:
                used = _why_not_new(settings.app, admin)
                # Another start may have drawn a key meanwhile, and begun to work.
                found = _read(reader, settings.app, clock) if used else None
                if used and found is None:
                    raise StateError(used)
                found = found or _drawn(broker, reader, settings.app, clock)
            if found is not None:
                return Secret.of_key(found)
            clock.sleep(random.uniform(0.0, min(_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S)))
    raise BrokerError(f"{Names(settings.app).key}: others draw the key at this moment", retryable=True)


def refuse_without_key(settings: Settings, admin: Admin) -> None:
    """Refuse an app that is not new and has no topic for its key, before anything is made for it.

    raises: StateError, with what to do; BrokerError
    """
    name = Names(settings.app).key
    if settings.has_own_key and admin.topics([name])[name] is None:
        used = _why_not_new(settings.app, admin)
        if used:
            raise StateError(used)


def recorded_secret(settings: Settings, committed: Committed | None) -> Secret:
    """The same, of which only the name is known: for those who make no digests, and may not read the key.

    committed: what the index of the app has committed
    raises: BrokerError, a retryable one, if no index has recorded the name yet
    """
    if not settings.has_own_key:
        return Secret.of_seed(settings.digest.seed)
    name = recorded_name(committed)
    if not name:
        why = "no index has recorded which key it has; it does so when it begins to judge"
        raise BrokerError(f"app {settings.app}: {why}", retryable=True)
    return Secret.named(name)


def recorded_name(committed: Committed | None) -> str:
    """The name of the key with which an app has judged; empty if none is on record.

    committed: what the index of the app has committed
    """
    return key_name(decode_fixed(recorded_under(committed).fixed))


def _read(reader: Reader, app: str, clock: Clock) -> bytes | None:
    """The key, or None if the topic has none. raises: BrokerError, StateError"""
    place = Partition(Names(app).key, 0)
    reader.assign([place])
    begin, end = (
        offsets[place] for offsets in (reader.beginning_offsets([place]), reader.end_offsets([place]))
    )
    reader.seek(place, begin)
    until_s = clock.monotonic_s() + _LIMIT_S
    found: dict[bytes, int] = {}
    while reader.position(place) < end:
        if clock.monotonic_s() > until_s:
            raise BrokerError(f"{place}: cannot be read to its end in time", retryable=True)
        for records in reader.poll(_POLL_S, 16):
            for offset, value in zip(records.offsets, records.values, strict=True):
                found.setdefault(_decoded(value, f"{place}@{offset}"), offset)
    if len(found) > 1:
        raise StateError(
            f"{place}: holds {len(found)} keys, at offsets {', '.join(map(str, found.values()))}; somebody "
            f"else has written to it. {NEW_APP}"
        )
    return next(iter(found), None)


def _decoded(value: bytes | None, where: str) -> bytes:
    if value is None or len(value) != 1 + KEY_BYTES or value[0] != _VERSION:
        raise StateError(f"{where}: is no key of this version of twinsieve; {NEW_APP}")
    return value[1:]


def _why_not_new(app: str, admin: Admin) -> str:
    """That the app has a log, or has judged, so that no key may be drawn, and what to do; empty if it is new.
    raises: BrokerError"""
    names = Names(app)
    infos = admin.topics([names.fingerprints, names.decisions])
    logs = [Partition(name, 0) for name, info in infos.items() if info is not None]
    committed = committed_by_index(app, admin)
    if committed is None and not any(admin.end_offsets(logs).values()):
        return ""
    name = recorded_name(committed)
    if name:
        return (
            f"{names.key} holds no key, and app {app} has judged with one ({name}): the topic was emptied or "
            "made again. Without the key nothing that is kept can be found, so no other one is drawn. "
            f"Restore the topic from a copy; or {NEW_APP}"
        )
    or_emptied = "" if committed else f", or {names.key} was emptied"
    return (
        f"app {app} was begun by an earlier version of twinsieve, which has no key{or_emptied}. Its topics "
        f"and snapshots are as they were, and that version goes on with them. To change: {NEW_APP}"
    )


def _drawn(broker: Broker, reader: Reader, app: str, clock: Clock) -> bytes | None:
    """The key that is in the topic now; None if another process has ended this attempt."""
    name = Names(app).key
    producer: TransactionalProducer | None = None
    try:
        producer = broker.transactor(name, [name])
        producer.begin()
        found = _read(reader, app, clock)
        if found is None:
            message = Messages()
            message.add(_RECORD_KEY, bytes([_VERSION]) + secrets.token_bytes(KEY_BYTES))
            producer.send(name, 0, message)
            producer.commit()
            return _read(reader, app, clock)
        producer.abort()
    except FatalError as error:
        if error.denied:
            raise
        return None
    except AbortableError:
        return None
    finally:
        if producer is not None:
            producer.close()
    return found
