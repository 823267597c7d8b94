"""All settings of twinsieve, with their defaults.

`Settings` is the schema: the same keys stand in the YAML file, in the environment
(`TWINSIEVE_NEAR__SIMILARITY`) and in `--set near.similarity=0.85`. A key is declared once, by `setting`:
`lint --show`, the examples in `config/` and the page of settings are made from this declaration
(`python -m scripts.generated_docs`). Settings of the stages have the defaults of their own configuration.
Values are checked one by one here, and against each other in `checks.py`. `load.py` reads them, and
`stage_config.py` converts them for the stages. Durations are stored in milliseconds and sizes in bytes,
whatever unit they were written in.
"""

# Without `from __future__ import annotations`: pydantic would compile each one from its text at every start.
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, create_model

from twinsieve.pipeline.settings.values import (
    All,
    Auto,
    AutoDurationMs,
    AutoParts,
    AutoSizeBytes,
    Count,
    DurationMs,
    Flag,
    Idf,
    Names,
    OptionalCount,
    OptionalDurationMs,
    OptionalIdf,
    OptionalSizeBytes,
    OptionalText,
    Ratio,
    Share,
    Similarity,
    SizeBytes,
    Text,
    Whole,
)
from twinsieve.stages import contract
from twinsieve.stages.contract import (
    MAX_DISTANCE,
    MAX_SCAN_DISTANCE,
    MAX_SEGMENT,
    BandLayout,
    Differences,
    ExactConfig,
    NearConfig,
    TimeConfig,
)
from twinsieve.stages.fingerprint.digest_config import AUTO_HASHES, DigestConfig, SignatureConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.text.rules import TextConfig

_HEARTBEAT_MS = 500
_ANSWER_MS = 10_000
"""How long workers wait for an answer of the index, if nothing says otherwise."""
_TAKES_OVER_MS = 4_000
"""What the next shard of a segment needs, at most, from the end of a session timeout until it answers."""
_PRIVATE = frozenset({"file", "local", "asynclocal", "memory", "data", "dir", "zip", "tar", "libarchive"})
"""Protocols of fsspec whose files only this machine can reach."""


class Section(BaseModel):
    """A section of settings. It is frozen, and an unknown key is an error."""

    # The validator of `Settings` has those of its sections inside. With `defer_build` none is built for each
    # section alone, unless it is needed.
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=False, populate_by_name=True, defer_build=True
    )


def setting(default: Any, line: str, *, alias: str | None = None, expert: bool = False) -> Any:
    """Declare one key.

    line: what the key does, in one line for people
    alias: name of the key in a file, if it differs from the name of the attribute
    expert: whether the key is rarely needed; then it is on the page of settings, but in no example
    """
    extra: dict[str, Any] = {"expert": True} if expert else {}
    return Field(default=default, description=line, alias=alias, json_schema_extra=extra)


def section() -> Any:
    """Declare a section below another; without any key in it, all its keys have their defaults."""
    return Field(default={}, validate_default=True)


_EXACT, _NEAR, _TIME, _LAYOUT = ExactConfig(), NearConfig(), TimeConfig(), BandLayout()
_TEXT, _FEATURES, _DIGEST, _SIGNATURE = TextConfig(), FeatureConfig(), DigestConfig(), SignatureConfig()
"""The stages' own configurations, from which the settings of the stages take their defaults."""

_AGE = "older messages are forgotten; none: no limit, and the log is kept forever"


class WindowSettings(Section):
    """How many kept messages a stage remembers, and for how long."""

    messages: Count = setting(
        _NEAR.window.messages,
        "kept messages that later ones are compared with",
    )
    age_ms: OptionalDurationMs = setting(_NEAR.window.age_ms, _AGE, alias="age")


class ExactWindowSettings(WindowSettings):
    """The window of the exact stage. It is larger than that of the near stage, because a Bloom filter takes
    only a few bytes for each message."""

    messages: Count = setting(_EXACT.window.messages, "kept messages that are remembered")
    age_ms: OptionalDurationMs = setting(_EXACT.window.age_ms, _AGE, alias="age")


class TextSettings(Section):
    """How a body is made from a text, in addition to the rules of the profile."""

    fold_variants: Literal["none", "simplified", "traditional"] = setting(
        _TEXT.fold_variants, "turn Chinese variants into one form; needs OpenCC"
    )
    drop: tuple[Text, ...] = setting(
        _TEXT.drop, "your own RE2 patterns to remove before the profile's rules, as ['^广告[:：]']"
    )
    compare: tuple[Literal["links", "mentions", "tags"], ...] = setting(
        _TEXT.compare, "two messages are kept apart if one of these was replaced by another one"
    )


class FeatureSettings(Section):
    """The features from which the SimHash is made."""

    kind: Literal["chars", "shingles", "keywords"] = setting(
        _FEATURES.features,
        "chars: characters and pairs, words in other scripts; "
        "keywords: words that jieba finds, about 240 µs a message",
    )
    unit: Literal["chars", "words"] = setting(_FEATURES.unit, "of shingles")
    width: Annotated[Whole, Field(ge=1, le=64)] = setting(_FEATURES.width, "units in a shingle")
    top_k: Annotated[Whole, Field(ge=1, le=1000)] = setting(_FEATURES.top_k, "keywords a text, at most")
    choose: Literal["tfidf", "frequency"] = setting(
        _FEATURES.choose, "keywords are the words with the greatest count × IDF, or count"
    )
    min_features: Annotated[Whole, Field(ge=1, le=1000)] = setting(
        _FEATURES.min_features, "with fewer a text has no SimHash; MinHash bands do not depend on this"
    )
    drop: tuple[Literal["latin", "digits"], ...] = setting(
        _FEATURES.drop, "letters or digits that the SimHash ignores; everything else still uses them"
    )
    weights: Literal["none", "tf", "tfidf", "position", "scale5"] = setting(
        _FEATURES.weights,
        "how much a feature counts; scale5: keywords, 1 to 5 by the value they are chosen by",
    )
    parts_of_speech: tuple[Text, ...] = setting(
        _FEATURES.parts_of_speech, "of keywords: jieba's flags to use; []: all"
    )
    drop_parts_of_speech: tuple[Text, ...] = setting(
        _FEATURES.drop_parts_of_speech, "of keywords: jieba's flags to leave out, as [u, y, r]"
    )
    min_word: Annotated[Whole, Field(ge=1, le=64)] = setting(_FEATURES.min_word, "characters of a keyword")
    dictionary_file: OptionalText = setting(None, "more words for jieba, one a line: word [frequency] [flag]")
    stop_words: Literal["jieba", "none"] = setting(
        _FEATURES.stop_words,
        "words that are never keywords; jieba: the 31 English words that its extract_tags leaves out",
    )
    stop_words_file: OptionalText = setting(None, "more words that are never keywords, one a line")
    idf_file: OptionalText = setting(
        None, "weights (IDF), one a line: feature, tab, number; none: jieba's table, for keywords"
    )


class DigestSettings(Section):
    """The 128-bit digest of a key text, and what keys it, ids and scopes. The seed is a secret, so it must
    not be in the settings file."""

    method: Literal["mmh3", "blake2b"] = setting(
        _DIGEST.method, "mmh3: fast, and SipHash in its place where there is a key or seed; blake2b: slower"
    )
    key: Literal["own", "none"] = setting(
        "own",
        "on Kafka; own: digests, ids and scopes are keyed by a key that the app draws (<app>.key); "
        "none: they are public, so strangers can choose what meets",
    )
    seed: Annotated[Whole, Field(ge=0, lt=1 << 64, repr=False)] = setting(
        0, "a secret number, in place of the app's key; on files it keys the same"
    )
    seed_file: OptionalText = setting(
        None, "a file that holds a secret number; or TWINSIEVE_DIGEST__SEED; else 0"
    )


class ExactSettings(Section):
    """Stage one: drop messages with equal key texts, or with equal fields."""

    method: Literal["bloom", "trie", "none"] = setting(_EXACT.method, "trie: never wrong, more memory")
    error_rate: Ratio = setting(_EXACT.error_rate, "bloom: share of new messages taken for old ones")
    fields: tuple[Text, ...] = setting(
        (),
        "messages with equal fields are equal, whatever the text; near is off then, unless set. "
        "Numbers are compared as they are spelled (1.50 is not 1.5), strings by their characters",
    )
    empty_key: Literal["keep", "dead_letter"] = setting(
        "keep",
        "an empty field of `fields`; keep: the message is no exact copy; dead_letter: it is unreadable",
    )
    window: ExactWindowSettings = section()


class LayoutSettings(Section):
    """Shape of the candidate index. It is part of the fingerprint scheme, so a change needs a new state."""

    bands: Annotated[Whole, Field(ge=1, le=64)] = setting(_LAYOUT.bands, "MinHash bands", expert=True)
    rows: Annotated[Whole, Field(ge=1, le=8)] = setting(_LAYOUT.rows, "MinHash values a band", expert=True)
    tables: Annotated[Whole, Field(ge=1, le=16)] = setting(_LAYOUT.tables, "SimHash tables", expert=True)
    key_bits: Annotated[Whole, Field(ge=8, le=32)] = setting(
        _LAYOUT.key_bits, "bits of a table's key", expert=True
    )
    weak: Annotated[Whole, Field(ge=0, le=6)] = setting(
        _LAYOUT.weak, "least certain bits that are flipped: 2^weak look-ups a table", expert=True
    )
    simhash_from: Annotated[Whole, Field(ge=1, le=1_000_000)] = setting(
        _LAYOUT.simhash_from, "characters from which a body uses the SimHash tables", expert=True
    )
    grams: Literal["chars", "by_script"] = setting(
        _LAYOUT.grams,
        "of MinHash; chars: characters and pairs; by_script: in alphabets pairs, triples and fours",
        expert=True,
    )


def _limits() -> type[Section]:
    """A section with a key for each limit of `Differences`, with its bounds, default and line of help."""
    keys: dict[str, Any] = {}
    for name, bound in contract.LIMITS.items():
        limited = (
            Share
            if isinstance(bound, contract.PerMille)
            else Annotated[Whole, Field(ge=bound.low, le=bound.high)]
        )
        keys[name] = (limited, setting(Differences._field_defaults[name], bound.line))
    about = "What may differ under `differences: full` (DIFFERENCES.md)."
    return create_model("LimitSettings", __base__=Section, __doc__=about, **keys)


if TYPE_CHECKING:
    LimitSettings = Section
else:
    LimitSettings = _limits()


class SignatureSettings(Section):
    """Which parts of a message `near.method: signatures` compares (CLASSICS.md)."""

    kind: Literal["top_features", "segments", "sentences", "imatch"] = setting(
        _SIGNATURE.kind,
        "top_features: the heaviest features; segments: the text in as many parts; sentences: the longest; "
        "imatch: one hash of the features inside a band of IDF",
    )
    hashes: AutoParts = setting(
        0, f"most hashes of a message; auto: {', '.join(f'{kind} {n}' for kind, n in AUTO_HASHES.items())}"
    )
    share: All = setting(0, "how many hashes duplicates have in common; all: they become one hash")
    cut: Literal["sentences", "paragraphs", "length"] = setting(
        _SIGNATURE.cut, "where segments may end; length: anywhere, so that one more character moves them all"
    )
    rarest: OptionalIdf = setting(_SIGNATURE.rarest, "imatch: greatest IDF of a feature that counts")
    commonest: Idf = setting(_SIGNATURE.commonest, "imatch: least IDF of a feature that counts")


class NearSettings(Section):
    """Stage two: drop messages with similar bodies."""

    method: Literal["text", "hamming", "signatures", "none"] = setting(
        _NEAR.method,
        "text: compares texts; hamming: bits of SimHash, recall guaranteed; signatures: hashes of parts in "
        "common",
    )
    similarity: Similarity = setting(
        8_000, "near duplicates are at least this similar, 0.5 to 1, or as the profile says"
    )
    differences: Literal["off", "guards", "full"] = setting(
        "full",
        "guards: numbers, days, opposites, cards … keep two apart; full: all rules; or the profile's",
    )
    words_file: OptionalText = setting(None, "your own lists of words, in addition to those of twinsieve")
    same_id: Literal["drop", "pass"] = setting(
        _NEAR.same_id, "edits of one id: drop them like others, or pass them all"
    )
    candidates: Literal["index", "scan"] = setting(
        _NEAR.candidates,
        "index: bands and tables, whose recall is measured for text, and full for hamming; scan: compares "
        "with all",
    )
    threads: Auto = setting(0, "threads that compare; auto: one for each core, half as many in dedup")
    distances: dict[Annotated[Whole, Field(ge=1)], Annotated[Whole, Field(ge=0, le=MAX_SCAN_DISTANCE)]] = (
        setting(
            dict(_NEAR.distances),
            "hamming, {characters: k}: from that length of the shorter on at most k of 64 bits apart, "
            f"k 0 to {MAX_DISTANCE}, with candidates: scan to {MAX_SCAN_DISTANCE}",
        )
    )
    distances_by_field: dict[Text, Annotated[Whole, Field(ge=0, le=MAX_SCAN_DISTANCE)]] = setting(
        {},
        "hamming on files, instead of distances, {field: k}: one or two of input.text_field have each a "
        "SimHash, and each must be within its k",
    )
    bucket_load: Annotated[float, Field(ge=0.5, le=64.0, allow_inf_nan=False)] = setting(
        _NEAR.bucket_load, "entries to expect in a bucket of 8 when the window is full", expert=True
    )
    segment: Annotated[Whole, Field(ge=1, le=MAX_SEGMENT)] = setting(
        _NEAR.segment,
        "text: kept messages of a segment; a larger window has several, and each is searched",
        expert=True,
    )
    blocks: Auto = setting(
        _NEAR.blocks, "hamming: parts of a fingerprint; tables = C(blocks, k); auto: k + 2", expert=True
    )
    answers: Literal["none", "shards"] = setting(
        "none",
        "of text, on Kafka: who looks messages up in full segments; shards: processes of `run --role shard`, "
        "and the index where none answers",
    )
    patience_ms: AutoDurationMs = setting(
        0,
        "the index looks up itself after this time without an answer of shards; "
        "auto: kafka.session_timeout and 4s, which is the least",
        alias="patience",
    )
    replicas: Annotated[Whole, Field(ge=1, le=9)] = setting(
        1, "shards that answer for each segment; with 2, one that is killed makes nothing wait"
    )
    grace_ms: DurationMs = setting(
        60_000,
        "how long a shard that leaves, or is relieved, answers until its successor does",
        alias="grace",
    )
    signature: SignatureSettings = section()
    window: WindowSettings = section()
    limits: LimitSettings = section()
    layout: LayoutSettings = section()


class TimeSettings(Section):
    """How message times count. Stream time is the latest message time so far."""

    max_ahead_ms: DurationMs = setting(
        _TIME.max_ahead_ms, "how far a message's time may lie ahead of its arrival", alias="max_ahead"
    )
    late: Literal["insert", "judge"] = setting(
        _TIME.late, "late messages; insert: may lead later ones; judge: never lead"
    )
    late_after_ms: DurationMs = setting(
        _TIME.late_after_ms, "a message this far behind stream time is late", alias="late_after"
    )


class RegistrySettings(Section):
    """The schema registry of an input of Avro or Protobuf; needs the extra registry."""

    url: OptionalText = setting(None, "address, without a login; several, by commas; json_schema needs none")
    username: OptionalText = setting(None, "for a login by HTTP's basic authentication")
    password: SecretStr | None = setting(None, "of the login")
    password_file: OptionalText = setting(
        None, "a file with the password; or TWINSIEVE_INPUT__REGISTRY__PASSWORD"
    )
    ca_file: OptionalText = setting(None, "certificates to trust; none: those of the package certifi")
    certificate_file: OptionalText = setting(None, "certificate of the client, for mutual TLS")
    key_file: OptionalText = setting(None, "key of this certificate")


class InputSettings(Section):
    """Where messages come from, and where in a message its text, id and time are.

    Field names are paths: `user.name`, `entities[0].text`; `["a.b"]` or `a\\.b` for a name with a dot in it.
    Several text fields are joined into one text, one line for each; a message needs at least one of them.
    """

    topics: tuple[Text, ...] = setting(("posts",), "Kafka topics to read; they must exist")
    encoding: Literal["json", "text", "avro", "json_schema", "protobuf"] = setting(
        "json", "json: objects; text: the message is the text; others: values of a schema registry"
    )
    registry: RegistrySettings = RegistrySettings()
    part: Literal["value", "key"] = setting("value", "where the object or text is")
    text_field: Names = setting(
        ("text",), "field of the text, as a path: status.text, entities[0].text; several: [title, body]"
    )
    id_field: OptionalText = setting("id", "field of the id, as a path; none: messages have no id")
    time_field: OptionalText = setting(
        "created_at",
        "field of the time (ISO 8601, RFC 2822, seconds …), as a path; none: Kafka's timestamp",
    )
    max_bytes: SizeBytes = setting(4 << 20, "larger messages are dead letters")
    null_value: Literal["pass", "drop", "dead_letter"] = setting("pass", "what becomes of tombstones")
    null_text: Literal["auto", "pass", "dead_letter", "fail"] = setting(
        "auto",
        "a text that is null or missing; pass: it comes out and leads nobody; fail: on files alone; "
        "auto: dead_letter on Kafka if output.dead_letter is a topic, else pass",
    )
    expect_text: Flag = setting(
        True, "stop where none of the first messages has a text and another field does; false: go on"
    )
    start: Literal["earliest", "latest"] = setting("earliest", "where a new app begins")
    trimmed: Literal["stop", "continue"] = setting(
        "stop", "if retention has deleted unread input; continue: log how much was lost"
    )
    on_unreadable_batch: Literal["hold", "skip"] = setting(
        "hold", "hold: its partition waits; skip: continue after it, and count what was lost"
    )


class OutputSettings(Section):
    """The topics to which messages are written, and their headers."""

    topic: Text = setting("posts.unique", "topic for kept messages, as they came")
    duplicates: OptionalText = setting(
        "posts.duplicates", "topic for dropped ones with their leader; none: not written"
    )
    dead_letter: OptionalText = setting(
        "posts.dead", "topic for what cannot be read, with the reason; none: only counted"
    )
    on_refused: Literal["hold", "skip"] = setting(
        "hold",
        "what becomes of a message that its topic and dead_letter refuse; hold: its partition waits; "
        "skip: it is lost, counted and logged",
    )
    origin_header: Flag = setting(True, "kept messages get the header twinsieve-origin")
    kept_apart_header: Flag = setting(
        False, "a message that is similar to a kept one gets twinsieve-kept-apart: number 9/11"
    )


class SecuritySettings(Section):
    """How to reach the broker; passwords come from the environment or from files."""

    protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = setting(
        "plaintext", "TLS and logins"
    )
    mechanism: Literal["plain", "scram-sha-256", "scram-sha-512", "oauthbearer"] = setting(
        "scram-sha-512", "of SASL; oauthbearer: tokens by OIDC's client credentials, or with aws_region"
    )
    username: OptionalText = setting(None, "for SASL; oauthbearer: the client's id")
    password: SecretStr | None = setting(None, "for SASL; oauthbearer: the client's secret")
    password_file: OptionalText = setting(
        None, "a file with the password; or TWINSIEVE_KAFKA__SECURITY__PASSWORD"
    )
    token_endpoint: OptionalText = setting(None, "oauthbearer: the address that gives tokens")
    token_scope: OptionalText = setting(None, "oauthbearer: the scope to ask for")
    token_ca_file: OptionalText = setting(
        None, "oauthbearer: certificates to trust for token_endpoint; none: the system's"
    )
    aws_region: OptionalText = setting(
        None, "oauthbearer: tokens of AWS for MSK in this region, by the machine's role; needs the extra aws"
    )
    ca_file: OptionalText = setting(None, "certificates to trust; none: the system's")
    certificate_file: OptionalText = setting(None, "certificate of the client, for mutual TLS")
    key_file: OptionalText = setting(None, "key of this certificate")
    key_password: SecretStr | None = setting(None, "password of this key")
    key_password_file: OptionalText = setting(
        None, "a file with its password; or TWINSIEVE_KAFKA__SECURITY__KEY_PASSWORD"
    )
    check_hostname: Flag = setting(True, "the broker's certificate must carry its name")


class KafkaSettings(Section):
    """The broker, and how much goes into one poll, block and transaction."""

    bootstrap: Text = setting("localhost:9092", "brokers to ask first")
    compression: Literal["none", "lz4", "zstd", "gzip"] = setting("lz4", "of what comes out")
    poll_messages: Annotated[Whole, Field(ge=1, le=100_000)] = setting(
        5_000, "messages a poll; a transaction takes up to 20,000 or 32 MiB, whatever this says"
    )
    message_bytes: SizeBytes = setting(
        8 << 20, "largest message to write, and room for each partition in a fetch"
    )
    max_unpacked_bytes: SizeBytes = setting(
        64 << 20, "most that one compressed batch may unpack to when read; beyond, it counts as unreadable"
    )
    pending_messages: Annotated[Whole, Field(ge=1, le=10_000_000)] = setting(
        50_000, "originals that wait for their answer, a partition; then it pauses"
    )
    pending_bytes: SizeBytes = setting(
        512 << 20, "memory of those of all partitions of a process, and a poll more"
    )
    session_timeout_ms: DurationMs = setting(
        6_000, "a process that is silent for this time has left", alias="session_timeout"
    )
    transaction_timeout_ms: DurationMs = setting(
        10_000, "an open transaction is given up after this", alias="transaction_timeout"
    )
    request_timeout_ms: DurationMs = setting(
        40_000, "a broker that does not answer is given up", alias="request_timeout"
    )
    block_bytes: AutoSizeBytes = setting(
        0,
        "blocks of the fingerprint log; auto: as large as the app's log, decisions, verdicts and answers "
        "take, at most 3MiB",
        expert=True,
    )
    answer_timeout_ms: AutoDurationMs = setting(
        0,
        "ask the index again after this time without an answer; "
        "auto: 10s, and with shards more than twice near.patience, which is the least there",
        alias="answer_timeout",
        expert=True,
    )
    idle_report_ms: DurationMs = setting(
        1_000, "how soon an idle worker reports its progress", alias="idle_report", expert=True
    )
    options: dict[Text, Text] = setting(
        {},
        "{name: value} of kafka-python, as in {receive_buffer_bytes: 1048576}; a few are allowed",
        expert=True,
    )
    security: SecuritySettings = section()

    @property
    def heartbeat_ms(self) -> int:
        """Time between two heartbeats of a group member. From the answer the member learns of a rebalance, or
        that another process has its name."""
        return min(_HEARTBEAT_MS, self.session_timeout_ms // 3)

    @property
    def least_patience_ms(self) -> int:
        """The least `near.patience`. After a shorter one the index would look up in the segments of a shard
        that was killed before the next shard can answer for them."""
        return self.session_timeout_ms + _TAKES_OVER_MS


class TopicSettings(Section):
    """The internal topics `<app>.fingerprints`, `.verdicts`, `.decisions`, `.key` and, with shards,
    `.answers`, and how topics are created."""

    auto_create: Flag = setting(False, "make missing topics at the start; else `twinsieve topics create`")
    verdict_partitions: Annotated[Whole, Field(ge=1, le=1_000)] = setting(
        4, "of <app>.verdicts, and of <app>.answers with shards"
    )
    replication: Annotated[Whole, Field(ge=1, le=9)] = setting(1, "copies of each topic")
    min_in_sync: Annotated[Whole, Field(ge=1, le=9)] = setting(
        1, "copies that must have a message before it counts"
    )
    output_partitions: OptionalCount = setting(
        None, "of output topics; none: as many as the input", expert=True
    )


class StateSettings(Section):
    """Where snapshots are stored, how often, and how many are kept."""

    dir: Text = setting("./state", "a folder or an fsspec address, as s3://bucket/twinsieve")
    snapshot_every_ms: DurationMs = setting(300_000, "how often", alias="snapshot_every")
    keep: Annotated[Whole, Field(ge=1, le=100)] = setting(2, "how many")
    memory: OptionalSizeBytes = setting(
        None,
        "memory that a near window over near.segment may hold, as 8GiB: the newest segments keep their "
        "index in it; none: full segments are mapped from files as soon as they are written",
    )
    scratch: OptionalText = setting(
        None,
        "folder on a local disk for segments of a near window over near.segment, where `dir` is not on the "
        "same file system or nothing is saved; `run` makes it; none: that of the system for temporary files",
    )
    key: SecretStr | None = setting(None, "keys that sign snapshots, one a line; the first one signs")
    key_file: OptionalText = setting(
        None,
        "a file with keys that sign snapshots (SECURITY.md); or TWINSIEVE_STATE__KEY; none: unsigned",
    )

    @property
    def is_shared(self) -> bool:
        """Whether all processes surely reach `dir`: it is an address of a store.

        A local folder does not count, because nothing tells whether other machines have mounted it too. An
        address chained with `::`, as a cache before a store, counts as local too.

        >>> [StateSettings(dir=name).is_shared for name in ("state", "s3://bucket/a")]
        [False, True]
        """
        protocol, separator, _ = self.dir.partition("://")
        return bool(separator) and "::" not in protocol and protocol not in _PRIVATE


class HttpSettings(Section):
    """The address of the pages /healthz, /readyz and /metrics, and that of the status pages."""

    listen: OptionalText = setting(
        "127.0.0.1:8080",
        "0.0.0.0:8080: to all who reach it, unasked (lint warns); [::]:8080: IPv6 too; none: off",
    )
    pages: OptionalText = setting(
        None, "status pages for a browser on this machine, as 127.0.0.1:8081; no other host; none: off"
    )

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port; None if `listen` is none or has another form."""
        return _address(self.listen)

    @property
    def pages_address(self) -> tuple[str, int] | None:
        """Host and port of the status pages; None if `pages` is none or has another form."""
        return _address(self.pages)


def _address(written: str | None) -> tuple[str, int] | None:
    host, _, port = (written or "").rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() and int(port) <= 65_535 else None


class LogSettings(Section):
    """The level and the format of the log on stderr."""

    level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "of the packages below: no less than warning"
    )
    format: Literal["logfmt", "json"] = setting("logfmt", "key=value, or an object; both one line a record")


class Settings(Section):
    """All settings."""

    app: Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$")] = setting(
        "twinsieve", "names the consumer group, the state and the internal topics; no dots"
    )
    profile: Literal["default", "microblog", "plain", "titles", "sms"] = setting(
        "default",
        "the kind of text: microblog: posts in Chinese; plain: posts in alphabets; titles, sms; default: any "
        "of them (README.md). default and microblog drop tags, chains, tails, links, @names; the others the "
        "last two alone",
    )
    scope: tuple[Text, ...] = setting(
        (), "fields: messages that differ in them never meet, as [tenant]; see exact.fields"
    )
    text: TextSettings = section()
    features: FeatureSettings = section()
    digest: DigestSettings = section()
    exact: ExactSettings = section()
    near: NearSettings = section()
    time: TimeSettings = section()
    input: InputSettings = section()
    output: OutputSettings = section()
    kafka: KafkaSettings = section()
    topics: TopicSettings = section()
    state: StateSettings = section()
    http: HttpSettings = section()
    log: LogSettings = section()
    _warnings: tuple[str, ...] = PrivateAttr(())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was written and has no effect, each with its place; `run` and `lint` show it."""
        return self._warnings

    def with_warnings(self, warnings: tuple[str, ...]) -> Self:
        """The same settings with these warnings."""
        copy = self.model_copy()
        copy._warnings = warnings
        return copy

    @property
    def has_own_key(self) -> bool:
        """Whether the app draws its own key, on Kafka."""
        return self.digest.key == "own" and not self.digest.seed and self.digest.seed_file is None

    @property
    def patience_ms(self) -> int:
        """How long the index waits for an answer of shards, in ms: `near.patience`, or what `auto` means."""
        return self.near.patience_ms or self.kafka.least_patience_ms

    @property
    def answer_ms(self) -> int:
        """How long a worker waits for an answer of the index, in ms: `kafka.answer_timeout`, or what `auto`
        means."""
        return self.kafka.answer_timeout_ms or max(_ANSWER_MS, self.least_answer_ms)

    @property
    def least_answer_ms(self) -> int:
        """The least `kafka.answer_timeout`, in ms; 0: any is right. After a shorter one a worker gives up
        blocks that the index still holds, and asks again: then verdicts on the first ones do not count."""
        return 2 * self.patience_ms + 1_000 if self.near.answers == "shards" else 0

    def passes_null_text(self, *, on_files: bool) -> bool:
        """Whether a message whose text is null or missing is kept; if not, it counts as unreadable."""
        said = self.input.null_text
        if said == "auto":
            return on_files or self.output.dead_letter is None
        return said != "dead_letter"


# `model_construct` checks no values, which tests/settings/test_profiles.py does: pydantic would build a
# validator of its own for each class, at every start.
MICROBLOG_LIMITS = LimitSettings.model_construct(
    short=20, replaced_short=200, replaced=200, only_short=1000, longest=10, places=1, own=30, own_share=450
)
LOW_FLOOR_LAYOUT = LayoutSettings.model_construct(bands=38)
"""Finds similar texts from a similarity of 0.70 on; takes 76 more bytes for each kept message
(`python -m bench.floors`)."""
TITLES_LIMITS = LimitSettings.model_construct(in_place=1, name_places=3, each=6, own=12, own_share=300)
SMS_LIMITS = LimitSettings.model_construct(places=512, inside=18)
PROFILES: dict[str, dict[str, object]] = {
    "default": {},
    "microblog": {
        "similarity": 7_000,
        "differences": "full",
        "limits": MICROBLOG_LIMITS,
        "layout": LOW_FLOOR_LAYOUT,
    },
    "plain": {"similarity": 7_200, "differences": "full", "layout": LOW_FLOOR_LAYOUT},
    "titles": {
        "similarity": 7_500,
        "differences": "full",
        "limits": TITLES_LIMITS,
        "layout": LOW_FLOOR_LAYOUT,
    },
    "sms": {
        "similarity": 8_000,
        "differences": "full",
        "limits": SMS_LIMITS,
        "layout": LOW_FLOOR_LAYOUT,
    },
}
"""The settings of the near stage that each profile changes; all others have their defaults."""
DROPS_TAGS = frozenset({"default", "microblog"})
"""Profiles that remove tags, repost chains and tails from a text; all profiles remove links and @names."""
AUTO = {
    "exact.window.age": "7d, on files none",
    "near.window.age": "24h, on files none",
    "near.method": "text, or none where exact.fields is set",
    "input.id_field": "id, where messages have it",
    "input.time_field": "created_at, where messages have it",
}
"""Keys whose default is `auto`, because it depends on something else; and what `auto` means for each."""
