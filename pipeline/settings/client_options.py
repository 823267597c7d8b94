"""Options of the client libraries that may be given in `kafka.options`, and why others may not.

librdkafka's names have dots, those of kafka-python have underscores. With `kafka.client: confluent` both are
used, because the administration client is always kafka-python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twinsieve.pipeline.settings.model import KafkaSettings

_FLAG = ("true", "false")
_DNS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
_IDLE_MS = range(60_000, 1 << 31)
"""A connection that is closed sooner could end while an answer is awaited."""
_BUFFER_BYTES = range(4_096, 100_000_001)
ALLOWED: Mapping[str, tuple[str, ...] | range] = {
    "broker.address.family": ("any", "v4", "v6"),
    "broker.address.ttl": range(86_400_001),
    "client.dns.lookup": _DNS,
    "connections.max.idle.ms": _IDLE_MS,
    "socket.connection.setup.timeout.ms": range(1_000, 600_001),
    "socket.keepalive.enable": _FLAG,
    "socket.nagle.disable": _FLAG,
    "socket.receive.buffer.bytes": _BUFFER_BYTES,
    "socket.send.buffer.bytes": _BUFFER_BYTES,
    "client_dns_lookup": _DNS,
    "connections_max_idle_ms": _IDLE_MS,
    "receive_buffer_bytes": _BUFFER_BYTES,
    "send_buffer_bytes": _BUFFER_BYTES,
}
"""The values that each option may have. No option here changes which messages are read or written,
their order, or how many of them are in memory."""

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
        values = ALLOWED.get(name)
        if values is None:
            fault = f"cannot be set: {_breaks(name, kafka)}"
        elif "." in name and kafka.client != "confluent":
            fault = f"is an option of librdkafka, and kafka.client is {kafka.client}; leave it out"
        elif isinstance(values, range):
            if value.isascii() and value.isdigit() and len(value) < 11 and int(value) in values:
                continue
            fault = f"is {value!r}; use a number from {values[0]} to {values[-1]}"
        elif value.lower() not in values:
            fault = f"is {value!r}; use {' or '.join(values)}"
        else:
            continue
        yield f"kafka.options.{name}", fault


def _breaks(name: str, kafka: KafkaSettings) -> str:
    dotted = name.lower().replace("_", ".")
    for breaks, begins in _REFUSED.items():
        if dotted.startswith(begins):
            return f"{breaks}; leave it out"
    names = ", ".join(each for each in ALLOWED if "." not in each or kafka.client == "confluent")
    return f"nobody has tried what it does to exactly-once; there are {names}"


def librdkafka_options(kafka: KafkaSettings) -> dict[str, str]:
    """The options that librdkafka's clients get; it reads numbers and flags from texts."""
    return {name: value for name, value in kafka.options.items() if "." in name}


def python_options(kafka: KafkaSettings) -> dict[str, str | int]:
    """The options that kafka-python's clients get."""
    return {
        name: int(value) if value.isdigit() else value
        for name, value in kafka.options.items()
        if "." not in name
    }
