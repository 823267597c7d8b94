"""Options of kafka-python that may be given in `kafka.options`, and why others may not.

Files of before may name options of librdkafka, which have dots. Those that kafka-python has too are
translated, the others are ignored with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twinsieve.pipeline.settings.model import KafkaSettings

_DNS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
_IDLE_MS = range(60_000, 1 << 31)
"""A connection that is closed sooner could end while an answer is awaited."""
_BUFFER_BYTES = range(4_096, 100_000_001)
ALLOWED: Mapping[str, tuple[str, ...] | range] = {
    "client_dns_lookup": _DNS,
    "connections_max_idle_ms": _IDLE_MS,
    "receive_buffer_bytes": _BUFFER_BYTES,
    "send_buffer_bytes": _BUFFER_BYTES,
}
"""The values that each option may have. No option here changes which messages are read or written,
their order, or how many of them are in memory."""
SAME_AS: Mapping[str, str | None] = {
    "client.dns.lookup": "client_dns_lookup",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "socket.receive.buffer.bytes": "receive_buffer_bytes",
    "socket.send.buffer.bytes": "send_buffer_bytes",
    "broker.address.family": None,
    "broker.address.ttl": None,
    "socket.connection.setup.timeout.ms": None,
    "socket.keepalive.enable": None,
    "socket.nagle.disable": None,
}
"""librdkafka's name of each option that files of before may have → kafka-python's; None: it has none."""

_REFUSED: Mapping[str, tuple[str, ...]] = {
    "messages of aborted transactions would come out": ("isolation.",),
    "damaged messages would be read": ("check.crcs",),
    "messages could be passed over that nobody judged": ("enable.auto.", "auto.offset."),
    "messages could be lost": (
        "acks",
        "request.required.acks",
        "enable.gapless.",
        "retries",
        "message.send.max.retries",
    ),
    "messages could come out twice": ("enable.idempotence", "transactional."),
    "kafka.transaction_timeout sets it": ("transaction.",),
    "messages could change their order": ("max.in.flight",),
    "kafka.request_timeout sets it": ("delivery.timeout",),
    "a key would get another partition than with Kafka's own clients": ("partitioner",),
    "a process would lose its place in the group": ("group.", "partition.assignment."),
    "kafka.session_timeout sets it": ("session.timeout", "heartbeat."),
    "a process would leave its group, or take more memory than lint counts": ("max.poll.",),
    "more memory could be taken than lint counts": (
        "fetch.",
        "max.partition.fetch",
        "queued.",
        "queue.buffering.",
        "buffer.memory",
        "receive.message",
    ),
    "kafka.message_bytes sets it": ("message.max.", "max.request.size"),
    "kafka.compression sets it": ("compression",),
    "a topic that is missing would be made with the broker's defaults": ("allow.auto.create",),
    "kafka.security sets it": ("security.", "enable.sasl"),
    "kafka.security sets it, from files that are read again": ("ssl.",),
    "kafka.security sets it, and a secret would stand in the settings": ("sasl.",),
    "kafka.bootstrap sets it": ("bootstrap.", "metadata.broker.list"),
    "status and ACLs show processes by it": ("client.id",),
    "reads from a follower are not tested": ("client.rack",),
    "a log could show secrets": ("debug",),
}
"""What other options would break → how their names begin, written with dots."""


def options_faults(kafka: KafkaSettings) -> Iterator[tuple[str, str]]:
    """Problems of `kafka.options`, as (dotted key, what is wrong and what to do)."""
    for name, value in kafka.options.items():
        same = SAME_AS.get(name, name)
        if same is None:
            continue
        values = ALLOWED.get(same)
        if values is None:
            fault = f"cannot be set: {_breaks(name)}"
        elif same != name and same in kafka.options:
            fault = f"is librdkafka's name of {same}, which is set too; leave it out"
        elif isinstance(values, range):
            if value.isascii() and value.isdigit() and len(value) < 11 and int(value) in values:
                continue
            fault = f"is {value!r}; use a number from {values[0]} to {values[-1]}"
        elif value.lower() not in values:
            fault = f"is {value!r}; use {' or '.join(values)}"
        else:
            continue
        yield f"kafka.options.{name}", fault


def _breaks(name: str) -> str:
    dotted = name.lower().replace("_", ".")
    for breaks, begins in _REFUSED.items():
        if dotted.startswith(begins):
            return f"{breaks}; leave it out"
    return f"nobody has tried what it does to exactly-once; there are {', '.join(ALLOWED)}"


def library_options(kafka: KafkaSettings) -> dict[str, str | int]:
    """The options as kafka-python takes them, without those that it does not have."""
    named = {SAME_AS.get(name, name): value for name, value in kafka.options.items()}
    return {
        name: int(value) if value.isdigit() else value for name, value in named.items() if name is not None
    }


def unused_options(kafka: KafkaSettings) -> list[str]:
    """The options that kafka-python does not have, by librdkafka's names."""
    return [name for name in kafka.options if SAME_AS.get(name, name) is None]
