"""Check settings against each other, for problems that no single key shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb
from typing import Any

import re2

from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.client_options import options_faults
from twinsieve.pipeline.settings.model import (
    FeatureSettings,
    HttpSettings,
    InputSettings,
    KafkaSettings,
    NearSettings,
    SecuritySettings,
    Settings,
    SignatureSettings,
)
from twinsieve.pipeline.settings.named_files import open_secret_files
from twinsieve.pipeline.settings.state_keys import LEAST_BYTES, keys_fault
from twinsieve.pipeline.settings.tree import Raw
from twinsieve.pipeline.settings.values import MAX_SEGMENTS, duration_text, size_text
from twinsieve.stages.contract import MAX_DISTANCE, MAX_TABLES, NearConfig, largest_window
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest_config import AUTO_HASHES
from twinsieve.stages.fingerprint.features import FLAGS, UNKNOWN_FLAG, flags_of

Problem = tuple[str, str]
_DISTANCES = {str(length): str(k) for length, k in NearConfig().distances}
"""The default of near.distances, as it is written."""
FINGERPRINT_DECIDES = frozenset({"hamming", "signatures"})
"""Values of near.method that compare fingerprints and keep no texts."""
_POLL_LIMIT_MS = 300_000
_ALL_ADDRESSES = frozenset({"0.0.0.0", "::", "*"})
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Hosts on which the status pages may listen. They have no login, so only this machine may reach them."""
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
    yield from _segments(settings)
    yield from _answers(settings)
    yield from _stages(settings, written)
    yield from _patterns(settings)
    yield from _app(settings.app)
    yield from _topics(settings)
    yield from _kafka(settings.kafka)
    yield from _registry(settings.input)
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
        "features.drop": settings.features.drop,
    }
    for key, names in lists.items():
        twice = [name for number, name in enumerate(names) if name in names[:number]]
        if twice:
            yield key, f"names {twice[0]!r} twice; remove one"


def _near(near: NearSettings) -> Iterator[Problem]:
    messages, layout = near.window.messages, near.layout
    largest = largest_window(near.method)
    if messages > largest:
        yield "near.window.messages", f"is {messages}; the method {near.method} takes at most {largest}"
    if layout.weak > layout.key_bits:
        yield "near.layout.weak", f"is {layout.weak}, but a key has {layout.key_bits} bits"
    if near.method == "signatures":
        yield from _signature(near.signature)
    if near.method != "hamming":
        return
    if near.distances_by_field:
        yield from _blocks(near, "near.distances_by_field", near.distances_by_field)
        return
    if not near.distances:
        yield "near.distances", "is empty; give a distance for a length, as in {8: 3}"
    yield from _blocks(near, "near.distances", near.distances)


def _segments(settings: Settings) -> Iterator[Problem]:
    """Segments of the near window: who has some, how many, and whether they fit into `state.memory`."""
    near, memory = settings.near, settings.state.memory
    if near.method != "text":
        one = f"is for near.method: text, and it is {near.method}, whose window is one segment; leave it out"
        # The default is no mistake: `lint --show` prints every key, to be given again.
        if near.segment != NearConfig().segment:
            yield "near.segment", one
        if memory is not None:
            yield "state.memory", one
        return
    least = -(-near.window.messages // (MAX_SEGMENTS - 1))
    if near.segment < min(least, near.window.messages):
        made = f"cuts a window of {near.window.messages} into more than {MAX_SEGMENTS} segments"
        yield "near.segment", f"is {near.segment}, which {made}; use {least} or more"
    elif memory is not None:
        yield from _memory(settings, memory)


def _answers(settings: Settings) -> Iterator[Problem]:
    """Shards that could not answer, or would be given up while the next one takes over."""
    near, kafka = settings.near, settings.kafka
    if near.answers == "none":
        return
    for key, value, needed in (("method", near.method, "text"), ("candidates", near.candidates, "index")):
        if value != needed:
            only = f"which is for near.{key}: {needed}, and it is {value}; leave it out"
            yield "near.answers", f"is {near.answers}, {only}"
            break
    if settings.patience_ms < kafka.least_patience_ms:
        least = duration_text(kafka.least_patience_ms)
        timeout = duration_text(kafka.session_timeout_ms)
        yield (
            "near.patience",
            f"is {duration_text(near.patience_ms)}, and kafka.session_timeout is {timeout}: the index would "
            f"look up itself before the next shard can answer; use {least} or more, or auto",
        )
    if settings.answer_ms < settings.least_answer_ms:
        patience, least = duration_text(settings.patience_ms), duration_text(settings.least_answer_ms)
        yield (
            "kafka.answer_timeout",
            f"is {duration_text(settings.answer_ms)}, and near.patience is {patience}: workers would give up "
            f"blocks for which the index still waits, and ask again; use {least} or more, or auto",
        )


def _memory(settings: Settings, memory: int) -> Iterator[Problem]:
    """A memory for segments that holds less than what always lies in memory."""
    # Only where it is set, because this imports the stages, which is slow, and every command checks settings.
    from twinsieve.pipeline.settings.segment_bytes import Texts, largest_segment, least_memory
    from twinsieve.pipeline.settings.stage_config import sieve_config

    try:
        config = sieve_config(settings, "")
    except (ConfigError, UsageError):
        # A problem of its own, which the scheme reports.
        return
    texts = Texts()
    least = least_memory(config, texts)
    if least <= memory:
        return
    held = "the open segment takes"
    if config.near.segment >= config.near.window.messages:
        held = "the near window is one segment, which lies in memory and takes"
    smaller = largest_segment(config, memory, texts)
    enough = f"{size_text(_whole_mebibytes(least))} or more"
    advice = enough if smaller is None else f"near.segment: {smaller} or less, or {enough}"
    usual = f"{least / 2**20:,.0f} MiB with texts of {texts.characters:.0f} characters"
    yield "state.memory", f"is {size_text(memory)}; {held} {usual}; use {advice}"


def _whole_mebibytes(size: int) -> int:
    return -(-size // (1 << 20)) << 20


def _blocks(near: NearSettings, key: str, distances: Mapping[Any, int]) -> Iterator[Problem]:
    """Distances and blocks that the tables, or a scan, cannot have."""
    k = max(distances.values(), default=0)
    tables = comb(near.blocks, k)
    if near.candidates == "scan":
        if near.blocks:
            yield "near.blocks", f"is {near.blocks}, but near.candidates: scan has no tables; leave it out"
        return
    for name, each in distances.items():
        if each > MAX_DISTANCE:
            advice = f"tables go to {MAX_DISTANCE}; write near.candidates: scan"
            yield f"{key}.{name}", f"is {each}; {advice}"
    if k > MAX_DISTANCE:
        return
    if near.blocks and near.blocks <= k:
        yield "near.blocks", f"is {near.blocks}; more blocks than bits of distance are needed: {k + 1}"
    elif tables > MAX_TABLES:
        made = f"at distance {k} that makes {tables} tables, {MAX_TABLES} at most"
        yield "near.blocks", f"is {near.blocks}; {made}"


def _signature(signature: SignatureSettings) -> Iterator[Problem]:
    kind, hashes, share = signature.kind, signature.hashes, signature.share
    most = hashes or AUTO_HASHES[kind]
    if kind == "imatch":
        for name, value in (("hashes", hashes), ("share", share)):
            if value > 1:
                yield f"near.signature.{name}", f"is {value}, but imatch makes one hash; leave it out"
        if signature.rarest is not None and signature.rarest < signature.commonest:
            above = f"below commonest ({signature.commonest:g})"
            yield (
                "near.signature.rarest",
                f"is {signature.rarest:g}, {above}; rarer features have a greater IDF",
            )
    else:
        if share > most:
            made = f"but a message has at most {most} hashes"
            yield "near.signature.share", f"is {share}, {made}; use 1 to {most}, or all"
        for name, is_set in (
            ("rarest", signature.rarest is not None),
            ("commonest", signature.commonest > 0),
        ):
            if is_set:
                yield f"near.signature.{name}", f"is for kind: imatch, and kind is {kind}; leave it out"
    if signature.cut != "sentences" and kind != "segments":
        yield "near.signature.cut", f"is for kind: segments, and kind is {kind}; leave it out"


def _stages(settings: Settings, written: dict[str, Raw]) -> Iterator[Problem]:
    if settings.exact.method == "none" and settings.near.method == "none":
        yield "exact.method", "is none and so is near.method; nothing would be dropped"
    if settings.text.compare:
        alike = "bodies with other links, mentions or tags are alike, and nothing would keep them apart"
        if settings.near.method in FINGERPRINT_DECIDES:
            yield "text.compare", f"does not go with near.method: {settings.near.method}; {alike}"
        elif settings.near.method == "text" and settings.near.differences == "off":
            yield "text.compare", f"needs near.differences: guards or full; {alike}"
    yield from _idle(settings)
    yield from _by_field(settings, written)
    near = written.get("near")
    if settings.exact.fields and isinstance(near, dict) and near and "method" not in near:
        advice = "say near.method: text (or none) beside other near keys"
        yield "exact.fields", f"switches the near stage off; {advice}"
    if settings.exact.empty_key != "keep" and not settings.exact.fields:
        yield "exact.empty_key", "is for exact.fields, which is empty; name the fields of the key there"
    yield from _features(settings.features)
    if settings.state.key is not None and (wrong := keys_fault(settings.state.key.get_secret_value())):
        yield (
            "state.key",
            f"{wrong}; write at least {LEAST_BYTES} random bytes, as `openssl rand -hex 32` does",
        )


def _by_field(settings: Settings, written: dict[str, Raw]) -> Iterator[Problem]:
    """Fields that have a SimHash of their own."""
    key, near, fields = "near.distances_by_field", settings.near, settings.input.text_field
    if not near.distances_by_field:
        return
    if near.method != "hamming":
        yield key, f"is for near.method: hamming, and it is {near.method}; leave it out"
    if len(near.distances_by_field) > 2:
        yield key, f"names {len(near.distances_by_field)} fields; one or two have a SimHash of their own"
    for name in near.distances_by_field:
        if name not in fields:
            yield key, f"names {name!r}, which input.text_field does not: {', '.join(fields)}"
    if len(set(fields)) < len(fields):
        yield "input.text_field", "names a field twice; near.distances_by_field tells fields apart by name"
    below = written.get("near")
    if isinstance(below, dict) and below.get("distances") not in (None, _DISTANCES):
        yield "near.distances", "does nothing beside near.distances_by_field; leave one of the two out"


def _idle(settings: Settings) -> Iterator[Problem]:
    """What is written and does nothing where fingerprints alone decide."""
    method, features = settings.near.method, settings.features
    if method not in FINGERPRINT_DECIDES:
        return
    by_features = method == "hamming" or settings.near.signature.kind in ("top_features", "imatch")
    if by_features and features.kind == "keywords" and features.min_features > features.top_k:
        never = f"above features.top_k ({features.top_k}), so no message would have a fingerprint"
        yield "features.min_features", f"is {features.min_features}, {never}; use {features.top_k} or less"


def _features(features: FeatureSettings) -> Iterator[Problem]:
    if features.weights == "scale5" and features.kind != "keywords":
        yield "features.weights", f"is scale5, which is for kind: keywords, not {features.kind}; use tf"
    elif features.weights == "tfidf" and not (features.idf_file or features.kind == "keywords"):
        yield "features.weights", "is tfidf, which needs weights: set features.idf_file, or use tf"
    named = [
        (f"features.{name}.{number}", flag)
        for name in ("parts_of_speech", "drop_parts_of_speech")
        for number, flag in enumerate(getattr(features, name))
        if flag not in FLAGS
    ]
    own = _flags_of_dictionary(features.dictionary_file) if named else frozenset()
    yield from ((key, f"is {flag!r}, {UNKNOWN_FLAG}") for key, flag in named if flag not in own)
    for number, flag in enumerate(features.drop_parts_of_speech):
        if flag in features.parts_of_speech:
            said = f"is {flag!r}, which features.parts_of_speech names too; remove it from one of them"
            yield f"features.drop_parts_of_speech.{number}", said


def _flags_of_dictionary(name: str | None) -> frozenset[str]:
    """Flags that a dictionary gives to words; none if it cannot be read, which is a problem of its own."""
    # Every command checks settings; few are to wait for the stages.
    from twinsieve.pipeline.settings.stage_config import dictionary

    try:
        return flags_of(dictionary(name))
    except ConfigError:
        return frozenset()


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
    names = Names(settings.app)
    internal = {names.fingerprints, names.verdicts, names.decisions}
    if settings.near.answers == "shards":
        internal.add(names.answers)
    if settings.has_own_key:
        internal.add(names.key)
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
    security, registry = settings.kafka.security, settings.input.registry
    needed = [
        ("kafka.security", security.protocol.startswith("sasl"), security.password),
        ("input.registry", registry.username is not None, registry.password),
    ]
    return [
        (
            f"{section}.password",
            f"is missing; set TWINSIEVE_{section.upper().replace('.', '__')}__PASSWORD or name a file in "
            f"{section}.password_file",
        )
        for section, is_needed, password in needed
        if is_needed and password is None
    ]


def open_doors(settings: Settings) -> list[Problem]:
    """Problems with settings that work, but let strangers in, read data, or choose which messages are equal:
    those of Kafka. Shown as warnings by lint and by each command that connects."""
    security, said = settings.kafka.security, []
    if settings.digest.key == "none" and not settings.digest.seed and settings.digest.seed_file is None:
        said.append(
            (
                "digest.key",
                "is none: digests, ids and scopes are public, so whoever writes the input can have messages "
                "of others dropped; leave it out in a new app",
            )
        )
    if security.protocol == "sasl_plaintext" and security.mechanism == "plain":
        advice = "use sasl_ssl, or scram-sha-512 at least"
        said.append(("kafka.security.mechanism", f"plain without TLS sends the password in clear; {advice}"))
    if security.mechanism == "oauthbearer":
        if security.protocol == "sasl_plaintext":
            said.append(
                ("kafka.security.protocol", "is sasl_plaintext: tokens are sent in clear; use sasl_ssl")
            )
        if (security.token_endpoint or "").startswith("http:"):
            said.append(
                (
                    "kafka.security.token_endpoint",
                    "has no TLS: the client's secret is sent in clear; use https",
                )
            )
    if security.protocol.endswith("ssl") and not security.check_hostname:
        advice = "set it to true, and give each broker a certificate with its name"
        said.append(
            (
                "kafka.security.check_hostname",
                f"is false: any holder of a certificate may pose as a broker; {advice}",
            )
        )
    registry = settings.input.registry
    if registry.username is not None and "http:" in (registry.url or ""):
        said.append(("input.registry.url", "has no TLS: the password is sent in clear; use https"))
    return said + open_secret_files(settings)


def open_pages(settings: Settings) -> list[Problem]:
    """The same for the pages of a process. Shown by lint and by `run`, which alone has pages."""
    if settings.http.address is None or settings.http.address[0] not in _ALL_ADDRESSES:
        return []
    advice = "without login; let the monitoring alone reach it"
    return [
        ("http.listen", f"is {settings.http.listen}: whoever reaches this machine reads the pages {advice}")
    ]


def unshared_state(settings: Settings) -> list[Problem]:
    """A state that shards may not reach. Shown by lint, and by a shard that starts, as a warning, because the
    folder may be one that all machines have mounted."""
    if settings.near.answers == "none" or settings.state.is_shared:
        return []
    said = f"is {settings.state.dir}: shards on other machines cannot read this folder, unless all mount it"
    return [("state.dir", f"{said}; share it, or name an address, as s3://bucket/twinsieve")]


def refused_on_kafka(settings: Settings) -> list[Problem]:
    """Problems with settings that are allowed only on files. Not part of `cross_check`, because lint does not
    know where the settings will be used."""
    found = []
    if settings.near.distances_by_field:
        found.append(("near.distances_by_field", "is for files and Python alone; use near.distances"))
    if settings.input.null_text == "fail":
        found.append(("input.null_text", "is fail, which is for files alone; use pass or dead_letter"))
    if settings.output.dead_letter is None:
        for key, said, other in (
            ("input.null_text", settings.input.null_text, "pass"),
            ("exact.empty_key", settings.exact.empty_key, "keep"),
        ):
            if said == "dead_letter":
                found.append(
                    (key, f"is dead_letter, but output.dead_letter is none; name a topic, or use {other}")
                )
    return found


def _kafka(kafka: KafkaSettings) -> Iterator[Problem]:
    security = kafka.security
    if security.protocol.startswith("sasl"):
        if security.username is None and security.aws_region is None:
            yield "kafka.security.username", f"is missing; {security.protocol} needs one"
    elif security.username is not None:
        yield "kafka.security.username", f"is set, but the protocol is {security.protocol}"
    yield from _tokens(security)
    if (security.certificate_file is None) != (security.key_file is None):
        yield "kafka.security.key_file", "and certificate_file come together; set both or none"
    if kafka.block_bytes > kafka.message_bytes:
        yield "kafka.block_bytes", "is above kafka.message_bytes; blocks would be refused"
    if kafka.max_unpacked_bytes < kafka.message_bytes:
        yield "kafka.max_unpacked_bytes", "is below kafka.message_bytes; one large message would not be read"
    for key, written, least_ms, why in _LEAST:
        held_ms = getattr(kafka, f"{key}_ms")
        if held_ms < least_ms and (held_ms or key != "answer_timeout"):
            yield f"kafka.{key}", f"is {held_ms} ms; {why}; use {written} or more"
    if kafka.session_timeout_ms > _POLL_LIMIT_MS:
        yield "kafka.session_timeout", "is above 5m; a client leaves after 5m without a poll"
    if kafka.pending_messages < kafka.poll_messages:
        yield "kafka.pending_messages", "is below kafka.poll_messages; one poll would not fit"
    yield from options_faults(kafka)


def _tokens(security: SecuritySettings) -> Iterator[Problem]:
    uses = security.protocol.startswith("sasl") and security.mechanism == "oauthbearer"
    for name in ("token_endpoint", "token_scope", "token_ca_file", "aws_region"):
        if getattr(security, name) is not None and not uses:
            said = f"is set, but the login is {security.mechanism} over {security.protocol}"
            yield f"kafka.security.{name}", f"{said}; it is for oauthbearer over sasl_ssl"
    if not uses:
        return
    endpoint = security.token_endpoint
    if security.aws_region is not None:
        for name in (
            "token_endpoint",
            "token_scope",
            "token_ca_file",
            "username",
            "password",
            "password_file",
        ):
            if getattr(security, name) is not None:
                yield f"kafka.security.{name}", "is set beside aws_region; AWS gives the tokens"
        if not re2.fullmatch(r"[a-z]{2,4}(-[a-z]{2,9}){1,3}-[0-9]{1,2}", security.aws_region):
            yield "kafka.security.aws_region", "is no region of AWS; write one as in eu-central-1"
    elif endpoint is None:
        yield (
            "kafka.security.token_endpoint",
            "is missing; oauthbearer needs the address that gives tokens, or aws_region",
        )
    elif not re2.fullmatch(r"https?://[^\s@/?#]+(/\S*)?", endpoint):
        # Not shown: it may hold a login.
        yield (
            "kafka.security.token_endpoint",
            "cannot be used; write https://host/path, without a login",
        )


def _registry(source: InputSettings) -> Iterator[Problem]:
    given = source.registry
    if source.encoding not in ("avro", "protobuf"):
        for name in sorted(given.model_fields_set):
            if getattr(given, name) is not None:
                yield f"input.registry.{name}", f"is set, but input.encoding is {source.encoding}; remove it"
        return
    if given.url is None:
        yield "input.registry.url", f"is missing; {source.encoding} needs the address of its schema registry"
    elif not all(re2.fullmatch(r"https?://[^\s@/?#]+(/[^\s@?#]*)?", url) for url in given.url.split(",")):
        # Not shown: it may hold a login.
        yield "input.registry.url", "cannot be used; write https://host:port, without a login"
    if (given.certificate_file is None) != (given.key_file is None):
        yield "input.registry.key_file", "and certificate_file come together; set both or none"


def _others(settings: Settings) -> Iterator[Problem]:
    """Sections with one check each: topics, http, state."""
    if settings.topics.min_in_sync > settings.topics.replication:
        yield "topics.min_in_sync", "is above topics.replication; nothing could be written"
    listen = settings.http.listen
    if listen is not None and settings.http.address is None:
        yield "http.listen", f"is {listen!r}; write host:port, as in 127.0.0.1:8080, or none"
    yield from _status_pages(settings.http)
    if "://" in settings.state.dir:
        # Only for remote addresses, because this imports fsspec, which is slow, and every command checks
        # settings.
        from twinsieve.pipeline.settings.named_files import known_store

        try:
            known_store(settings.state.dir, "used")
        except UsageError as error:
            yield "state.dir", f"names {error}"


def _status_pages(http: HttpSettings) -> Iterator[Problem]:
    """Problems of the status pages, which show what the metrics do not: errors."""
    address = http.pages_address
    if http.pages is None:
        return
    if address is None:
        yield "http.pages", f"is {http.pages!r}; write 127.0.0.1:8081, or none"
    elif address[0].lower() not in LOOPBACK:
        port = address[1]
        tunnel = f"reach them from elsewhere by `ssh -L {port}:127.0.0.1:{port} HOST`"
        yield (
            "http.pages",
            f"is {http.pages!r}; these pages have no login, so they are for this machine alone: write "
            f"127.0.0.1:{port} (or localhost, or [::1]), and {tunnel}",
        )
    elif http.address is not None and http.address[1] == address[1] != 0:
        yield "http.pages", f"is {http.pages!r}, which has the port of http.listen; choose another one"
