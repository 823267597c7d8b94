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
"""Option → its values. None of them changes what is read or written, in which order, or how much of it is in
memory."""

_REFUSED = (
    ("isolation.", "messages of aborted transactions would come out"),
    ("check.crcs", "damaged messages would be read"),
    ("enable.auto.", "messages could be passed over that nobody judged"),
    ("auto.offset.", "messages could be passed over that nobody judged"),
    ("acks", "messages could be lost"),
    ("request.required.acks", "messages could be lost"),
    ("enable.idempotence", "messages could come out twice"),
    ("enable.gapless.", "messages could be lost"),
    ("transactional.", "messages could come out twice"),
    ("transaction.", "kafka.transaction_timeout sets it"),
    ("max.in.flight", "messages could change their order"),
    ("retries", "messages could be lost"),
    ("message.send.max.retries", "messages could be lost"),
    ("delivery.timeout", "kafka.request_timeout sets it"),
    ("partitioner", "a key would get another partition than with Kafka's own clients"),
    ("group.", "a process would lose its place in the group"),
    ("partition.assignment.", "a process would lose its place in the group"),
    ("session.timeout", "kafka.session_timeout sets it"),
    ("heartbeat.", "kafka.session_timeout sets it"),
    ("max.poll.", "a process would leave its group, or take more memory than lint counts"),
    ("fetch.", "more memory could be taken than lint counts"),
    ("max.partition.fetch", "more memory could be taken than lint counts"),
    ("queued.", "more memory could be taken than lint counts"),
    ("queue.buffering.", "more memory could be taken than lint counts"),
    ("buffer.memory", "more memory could be taken than lint counts"),
    ("receive.message", "more memory could be taken than lint counts"),
    ("message.max.", "kafka.message_bytes sets it"),
    ("max.request.size", "kafka.message_bytes sets it"),
    ("compression", "kafka.compression sets it"),
    ("allow.auto.create", "a topic that is missing would be made with the broker's defaults"),
    ("security.", "kafka.security sets it"),
    ("ssl.", "kafka.security sets it, from files that are read again"),
    ("sasl.", "kafka.security sets it, and a secret would stand in the settings"),
    ("enable.sasl", "kafka.security sets it"),
    ("bootstrap.", "kafka.bootstrap sets it"),
    ("metadata.broker.list", "kafka.bootstrap sets it"),
    ("client.id", "status and ACLs show processes by it"),
    ("client.rack", "reads from a follower are not tested"),
    ("debug", "a log could show secrets"),
)
"""Start of a name, with dots → what it would break. The first that fits counts."""


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
    for begins, breaks in _REFUSED:
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
