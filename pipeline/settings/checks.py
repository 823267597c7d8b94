"""Check settings against each other, for problems that no single key shows."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import re2

from twinsieve.pipeline.settings.model import KafkaSettings, NearSettings, Settings
from twinsieve.pipeline.settings.named_files import open_secret_files
from twinsieve.pipeline.settings.yaml_tree import Raw
from twinsieve.stages.contract import MAX_TABLES, MAX_WINDOW
from twinsieve.stages.errors import UsageError

Problem = tuple[str, str]
_POLL_LIMIT_MS = 300_000
_ALL_ADDRESSES = frozenset({"0.0.0.0", "::", "*"})
SHADOW = "-shadow"
"""Suffix of the app's name in `run --dry-run`."""
_LEAST = (
    ("answer_timeout", "1s", 1_000, "every answer would come too late"),
    ("idle_report", "10ms", 10, "each round would write a block"),
    ("session_timeout", "1s", 1_000, "a member would leave between two heartbeats"),
    ("transaction_timeout", "1s", 1_000, "every transaction would be given up"),
    ("request_timeout", "1s", 1_000, "no broker answers so fast"),
)
"""Times of the section kafka: key, least useful value (as written, and in ms), effect of a smaller value."""


def shadow(settings: Settings) -> Settings:
    """The same settings for the app's shadow, which has its own groups, internal topics and state."""
    return settings.model_copy(update={"app": f"{settings.app}{SHADOW}"})


def cross_check(settings: Settings, written: dict[str, Raw]) -> Iterator[Problem]:
    """Problems as (dotted key, what is wrong and what to do). written: the values that were set explicitly"""
    yield from _windows(settings)
    yield from _near(settings.near)
    yield from _stages(settings, written)
    yield from _patterns(settings)
    yield from _app(settings.app)
    yield from _topics(settings)
    yield from _kafka(settings.kafka)
    yield from _others(settings)


def _windows(settings: Settings) -> Iterator[Problem]:
    for name, stage in (("exact", settings.exact), ("near", settings.near)):
        if stage.window.age_ms == 0:
            advice = "give a time, or none for no limit"
            yield f"{name}.window.age", f"is 0s, so whatever has a time would be forgotten at once; {advice}"
    lists: dict[str, tuple[str, ...]] = {
        "scope": settings.scope,
        "exact.fields": settings.exact.fields,
        "text.compare": settings.text.compare,
    }
    for key, names in lists.items():
        twice = [name for number, name in enumerate(names) if name in names[:number]]
        if twice:
            yield key, f"names {twice[0]!r} twice; remove one"


def _near(near: NearSettings) -> Iterator[Problem]:
    messages, layout = near.window.messages, near.layout
    if near.method == "text" and messages > MAX_WINDOW:
        limit = f"a bucket counts slots in 24 bits, at most {MAX_WINDOW}"
        yield "near.window.messages", f"is {messages}; {limit}"
    if layout.weak > layout.key_bits:
        yield "near.layout.weak", f"is {layout.weak}, but a key has {layout.key_bits} bits"
    if near.method != "hamming":
        return
    if not near.distances:
        yield "near.distances", "is empty; give a distance for a length, as in {8: 3}"
    k = max(near.distances.values(), default=0)
    tables = comb(near.blocks, k)
    if near.blocks and near.blocks <= k:
        yield "near.blocks", f"is {near.blocks}; more blocks than bits of distance are needed: {k + 1}"
    elif tables > MAX_TABLES:
        made = f"at distance {k} that makes {tables} tables, {MAX_TABLES} at most"
        yield "near.blocks", f"is {near.blocks}; {made}"


def _stages(settings: Settings, written: dict[str, Raw]) -> Iterator[Problem]:
    if settings.exact.method == "none" and settings.near.method == "none":
        yield "exact.method", "is none and so is near.method; nothing would be dropped"
    if settings.text.compare:
        alike = "bodies with other links, mentions or tags are alike, and nothing would keep them apart"
        if settings.near.method == "hamming":
            yield "text.compare", f"does not go with near.method: hamming; {alike}"
        elif settings.near.method == "text" and settings.near.differences == "off":
            yield "text.compare", f"needs near.differences: guards or full; {alike}"
    near = written.get("near")
    if settings.exact.fields and isinstance(near, dict) and near and "method" not in near:
        advice = "say near.method: text (or none) beside other near keys"
        yield "exact.fields", f"switches the near stage off; {advice}"
    features = settings.features
    if features.kind == "keywords" and features.weights == "none":
        yield "features.weights", "is none, but keywords are chosen by weight; use tf or tfidf"
    elif features.weights == "tfidf" and not (features.idf_file or features.kind == "keywords"):
        yield "features.weights", "is tfidf, which needs an idf_file; `twinsieve train-idf` makes one"
    if settings.digest.method == "mmh3" and settings.digest.seed >= 1 << 32:
        yield "digest.seed", "does not fit into 32 bits; use a smaller one, or method: blake2b"


def _patterns(settings: Settings) -> Iterator[Problem]:
    options = re2.Options()
    options.log_errors = False
    for number, pattern in enumerate(settings.text.drop):
        try:
            matches_empty = re2.compile(pattern, options).match("")
        except re2.error as error:
            said = error.args[0]
            said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
            yield f"text.drop.{number}", f"is {pattern!r}, no RE2 pattern: {said}"
            continue
        if matches_empty:
            yield f"text.drop.{number}", f"is {pattern!r}, which matches the empty text; narrow it"


def _app(name: str) -> Iterator[Problem]:
    if name.endswith(SHADOW):
        live = name.removesuffix(SHADOW)
        advice = "the two would share groups and topics; choose another name"
        yield "app", f"is {name!r}, which is what `run --dry-run` of app {live!r} is called: {advice}"


def _topics(settings: Settings) -> Iterator[Problem]:
    named = {
        "output.topic": settings.output.topic,
        "output.duplicates": settings.output.duplicates,
        "output.dead_letter": settings.output.dead_letter,
        **{f"input.topics.{number}": topic for number, topic in enumerate(settings.input.topics)},
    }
    if not settings.input.topics:
        yield "input.topics", "is empty; name at least one topic"
    internal = {f"{settings.app}.{part}" for part in ("fingerprints", "verdicts", "decisions")}
    seen: dict[str, str] = {}
    for key, topic in named.items():
        if topic is None:
            continue
        if not re2.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) or topic in (".", ".."):
            yield key, f"is {topic!r}; a topic has letters, digits, '.', '_' and '-', at most 249"
        if topic in seen:
            yield key, f"is {topic!r}, and so is {seen[topic]}; every topic has one use"
        seen.setdefault(topic, key)
        if topic in internal:
            yield key, f"is {topic!r}, an internal topic of this app; choose another name"


def missing_secrets(settings: Settings) -> list[Problem]:
    """Problems with secrets that are needed to connect, but missing. Not part of `cross_check`, because lint
    must work without secrets."""
    security = settings.kafka.security
    if security.protocol.startswith("sasl") and security.password is None:
        variable = "TWINSIEVE_KAFKA__SECURITY__PASSWORD"
        advice = f"set {variable} or name a file in kafka.security.password_file"
        return [("kafka.security.password", f"is missing; {advice}")]
    return []


def open_doors(settings: Settings) -> list[Problem]:
    """Problems with settings that work, but let strangers in or let them read data. Shown as warnings by lint
    and by each command that connects."""
    security, said = settings.kafka.security, []
    if security.protocol == "sasl_plaintext" and security.mechanism == "plain":
        advice = "use sasl_ssl, or scram-sha-512 at least"
        said.append(("kafka.security.mechanism", f"plain without TLS sends the password in clear; {advice}"))
    if security.protocol.endswith("ssl") and not security.check_hostname:
        advice = "set it to true, and give each broker a certificate with its name"
        said.append(
            (
                "kafka.security.check_hostname",
                f"is false: any holder of a certificate may pose as a broker; {advice}",
            )
        )
    if settings.http.address is not None and settings.http.address[0] in _ALL_ADDRESSES:
        advice = "without login; let the monitoring alone reach it"
        said.append(
            (
                "http.listen",
                f"is {settings.http.listen}: whoever reaches this machine reads the pages {advice}",
            )
        )
    return said + open_secret_files(settings)


def refused_on_kafka(settings: Settings) -> list[Problem]:
    """Problems with settings that are allowed only on files. Not part of `cross_check`, because lint does not
    know where the settings will be used."""
    said = settings.input.null_text
    if said == "fail":
        return [("input.null_text", "is fail, which is for files alone; use pass or dead_letter")]
    if said == "dead_letter" and settings.output.dead_letter is None:
        return [
            ("input.null_text", "is dead_letter, but output.dead_letter is none; name a topic, or use pass")
        ]
    return []


def _kafka(kafka: KafkaSettings) -> Iterator[Problem]:
    security = kafka.security
    if security.protocol.startswith("sasl"):
        if security.username is None:
            yield "kafka.security.username", f"is missing; {security.protocol} needs one"
    elif security.username is not None:
        yield "kafka.security.username", f"is set, but the protocol is {security.protocol}"
    if (security.certificate_file is None) != (security.key_file is None):
        yield "kafka.security.key_file", "and certificate_file come together; set both or none"
    if kafka.block_bytes > kafka.message_bytes:
        yield "kafka.block_bytes", "is above kafka.message_bytes; blocks would be refused"
    if kafka.max_unpacked_bytes < kafka.message_bytes:
        yield "kafka.max_unpacked_bytes", "is below kafka.message_bytes; one large message would not be read"
    for key, written, least_ms, why in _LEAST:
        held_ms = getattr(kafka, f"{key}_ms")
        if held_ms < least_ms:
            yield f"kafka.{key}", f"is {held_ms} ms; {why}; use {written} or more"
    if kafka.session_timeout_ms > _POLL_LIMIT_MS:
        yield "kafka.session_timeout", "is above 5m; both clients leave after 5m without a poll"
    if kafka.pending_messages < kafka.poll_messages:
        yield "kafka.pending_messages", "is below kafka.poll_messages; one poll would not fit"


def _others(settings: Settings) -> Iterator[Problem]:
    """Sections with one check each: topics, http, state."""
    if settings.topics.min_in_sync > settings.topics.replication:
        yield "topics.min_in_sync", "is above topics.replication; nothing could be written"
    listen = settings.http.listen
    if listen is not None and settings.http.address is None:
        yield "http.listen", f"is {listen!r}; write host:port, as in 127.0.0.1:8080, or none"
    if "://" in settings.state.dir:
        # Only for remote addresses, because this imports fsspec, which is slow, and every command checks
        # settings.
        from twinsieve.pipeline.settings.named_files import known_store

        try:
            known_store(settings.state.dir, "used")
        except UsageError as error:
            yield "state.dir", f"names {error}"
