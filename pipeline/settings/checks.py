"""Settings against each other: what no single key can tell."""

from __future__ import annotations

from math import comb

import re2

from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.yaml_tree import Raw
from twinsieve.stages.contract import MAX_TABLES, MAX_WINDOW
from twinsieve.stages.errors import UsageError

Problem = tuple[str, str]
_POLL_LIMIT_MS = 300_000
SHADOW = "-shadow"
"""Ends the app's name in `run --dry-run`."""
_LEAST = (
    ("answer_timeout", "1s", 1_000, "every answer would come too late"),
    ("idle_report", "10ms", 10, "each round would write a block"),
    ("session_timeout", "1s", 1_000, "a member would leave between two heartbeats"),
    ("transaction_timeout", "1s", 1_000, "every transaction would be given up"),
    ("request_timeout", "1s", 1_000, "no broker answers so fast"),
)
"""Times of the section kafka: the least that makes sense, as written and in ms, and what less would do."""


def cross_check(settings: Settings, written: dict[str, Raw]) -> list[Problem]:
    """Problems as (dotted key, what is wrong and what to do); `written` is what was set explicitly."""
    return [
        *_windows(settings),
        *_near(settings),
        *_stages(settings, written),
        *_patterns(settings),
        *_app(settings),
        *_topics(settings),
        *_kafka(settings),
        *_state(settings),
    ]


def _windows(settings: Settings) -> list[Problem]:
    problems = [
        (
            f"{name}.window.age",
            "is 0s, so whatever has a time would be forgotten at once; give a time, or none for no limit",
        )
        for name, stage in (("exact", settings.exact), ("near", settings.near))
        if stage.window.age_ms == 0
    ]
    for key, names in (("scope", settings.scope), ("exact.fields", settings.exact.fields)):
        twice = [name for number, name in enumerate(names) if name in names[:number]]
        if twice:
            problems.append((key, f"names {twice[0]!r} twice; remove one"))
    return problems


def _near(settings: Settings) -> list[Problem]:
    near = settings.near
    problems: list[Problem] = []
    if near.method == "text" and near.window.messages > MAX_WINDOW:
        problems.append(
            (
                "near.window.messages",
                f"is {near.window.messages}; a bucket counts slots in 24 bits, at most {MAX_WINDOW}",
            )
        )
    layout = near.layout
    if layout.weak > layout.key_bits:
        problems.append(("near.layout.weak", f"is {layout.weak}, but a key has {layout.key_bits} bits"))
    if near.method == "hamming":
        lengths = sorted(near.distances)
        if not lengths:
            problems.append(("near.distances", "is empty; give a distance for a length, as in {8: 3}"))
        k = max(near.distances.values(), default=0)
        if near.blocks and near.blocks <= k:
            problems.append(
                ("near.blocks", f"is {near.blocks}; more blocks than bits of distance are needed: {k + 1}")
            )
        elif near.blocks and comb(near.blocks, k) > MAX_TABLES:
            tables = comb(near.blocks, k)
            problems.append(
                (
                    "near.blocks",
                    f"is {near.blocks}; at distance {k} that makes {tables} tables, {MAX_TABLES} at most",
                )
            )
    return problems


def _stages(settings: Settings, written: dict[str, Raw]) -> list[Problem]:
    problems: list[Problem] = []
    if settings.exact.method == "none" and settings.near.method == "none":
        problems.append(("exact.method", "is none and so is near.method; nothing would be dropped"))
    near = written.get("near")
    if settings.exact.fields and isinstance(near, dict) and "method" not in near:
        problems.append(
            (
                "exact.fields",
                "switches the near stage off; say near.method: text (or none) beside other near keys",
            )
        )
    if settings.features.kind == "keywords" and settings.features.weights == "none":
        problems.append(("features.weights", "is none, but keywords are chosen by weight; use tf or tfidf"))
    elif settings.features.weights == "tfidf" and not (
        settings.features.idf_file or settings.features.kind == "keywords"
    ):
        problems.append(
            ("features.weights", "is tfidf, which needs an idf_file; `twinsieve train-idf` makes one")
        )
    if settings.digest.method == "mmh3" and settings.digest.seed >= 1 << 32:
        problems.append(("digest.seed", "does not fit into 32 bits; use a smaller one, or method: blake2b"))
    return problems


def _patterns(settings: Settings) -> list[Problem]:
    problems: list[Problem] = []
    for number, pattern in enumerate(settings.text.drop):
        options = re2.Options()
        options.log_errors = False
        try:
            compiled = re2.compile(pattern, options)
        except re2.error as error:
            said = error.args[0]
            said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
            problems.append((f"text.drop.{number}", f"is {pattern!r}, no RE2 pattern: {said}"))
            continue
        if compiled.match(""):
            problems.append(
                (f"text.drop.{number}", f"is {pattern!r}, which matches the empty text; narrow it")
            )
    return problems


def _app(settings: Settings) -> list[Problem]:
    name = settings.app
    if not name.endswith(SHADOW):
        return []
    live = name.removesuffix(SHADOW)
    return [
        (
            "app",
            f"is {name!r}, which is what `run --dry-run` of app {live!r} is called: the two would share "
            "groups and topics; choose another name",
        )
    ]


def _topics(settings: Settings) -> list[Problem]:
    problems: list[Problem] = []
    named = {"output.topic": settings.output.topic}
    if settings.output.duplicates is not None:
        named["output.duplicates"] = settings.output.duplicates
    if settings.output.dead_letter is not None:
        named["output.dead_letter"] = settings.output.dead_letter
    for number, topic in enumerate(settings.input.topics):
        named[f"input.topics.{number}"] = topic
    if not settings.input.topics:
        problems.append(("input.topics", "is empty; name at least one topic"))
    seen: dict[str, str] = {}
    for key, topic in named.items():
        if not re2.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) or topic in (".", ".."):
            problems.append(
                (key, f"is {topic!r}; a topic has letters, digits, '.', '_' and '-', at most 249")
            )
        if topic in seen:
            problems.append((key, f"is {topic!r}, and so is {seen[topic]}; every topic has one use"))
        seen.setdefault(topic, key)
        if topic in (f"{settings.app}.{part}" for part in ("fingerprints", "verdicts", "decisions")):
            problems.append((key, f"is {topic!r}, an internal topic of this app; choose another name"))
    return problems


def missing_secrets(settings: Settings) -> list[Problem]:
    """What is needed to connect and is not there; asked on connecting, as lint runs without secrets."""
    security = settings.kafka.security
    if security.protocol.startswith("sasl") and security.password is None:
        variable = "TWINSIEVE_KAFKA__SECURITY__PASSWORD"
        advice = f"set {variable} or name a file in kafka.security.password_file"
        return [("kafka.security.password", f"is missing; {advice}")]
    return []


def _kafka(settings: Settings) -> list[Problem]:
    kafka, security = settings.kafka, settings.kafka.security
    problems: list[Problem] = []
    if security.protocol.startswith("sasl"):
        if security.username is None:
            problems.append(("kafka.security.username", f"is missing; {security.protocol} needs one"))
    elif security.username is not None:
        problems.append(("kafka.security.username", f"is set, but the protocol is {security.protocol}"))
    if (security.certificate_file is None) != (security.key_file is None):
        problems.append(("kafka.security.key_file", "and certificate_file come together; set both or none"))
    if kafka.block_bytes > kafka.message_bytes:
        problems.append(("kafka.block_bytes", "is above kafka.message_bytes; blocks would be refused"))
    if kafka.max_unpacked_bytes < kafka.message_bytes:
        problems.append(
            ("kafka.max_unpacked_bytes", "is below kafka.message_bytes; one large message would not be read")
        )
    for key, written, least_ms, why in _LEAST:
        held_ms = getattr(kafka, f"{key}_ms")
        if held_ms < least_ms:
            problems.append((f"kafka.{key}", f"is {held_ms} ms; {why}; use {written} or more"))
    if kafka.session_timeout_ms > _POLL_LIMIT_MS:
        problems.append(("kafka.session_timeout", "is above 5m; both clients leave after 5m without a poll"))
    if kafka.pending_messages < kafka.poll_messages:
        problems.append(("kafka.pending_messages", "is below kafka.poll_messages; one poll would not fit"))
    if settings.topics.min_in_sync > settings.topics.replication:
        problems.append(("topics.min_in_sync", "is above topics.replication; nothing could be written"))
    listen = settings.http.listen
    if listen is not None and settings.http.address is None:
        problems.append(("http.listen", f"is {listen!r}; write host:port, as in 127.0.0.1:8080, or none"))
    return problems


def _state(settings: Settings) -> list[Problem]:
    if "://" not in settings.state.dir:
        return []
    # Every command checks settings; few are to wait for what serves remote addresses.
    from twinsieve.pipeline.settings.named_files import file_system

    try:
        file_system(settings.state.dir)
    except UsageError as error:
        return [("state.dir", str(error))]
    return []
