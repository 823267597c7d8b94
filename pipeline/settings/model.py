"""All settings of twinsieve, with their defaults.

`Settings` is the schema: the same keys stand in the YAML file, in the environment
(`TWINSIEVE_NEAR__SIMILARITY`) and in `--set near.similarity=0.85`. Values are checked one by one here and
against each other in `checks.py`; `load.py` reads them, `stage_config.py` hands them to the
stages. `config/` explains each key. Durations are held in milliseconds and sizes in bytes, whatever
unit they came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, create_model

from twinsieve.pipeline.settings.values import (
    Count,
    DurationMs,
    Flag,
    Names,
    OptionalCount,
    OptionalDurationMs,
    OptionalText,
    Ratio,
    Share,
    Similarity,
    SizeBytes,
    Text,
    Whole,
    read_auto,
)
from twinsieve.stages import contract
from twinsieve.stages.contract import Differences

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_HEARTBEAT_MS = 500


class Section(BaseModel):
    """A frozen mapping of settings; a key that is not here is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False, populate_by_name=True)


class WindowSettings(Section):
    """How much is remembered: at most `messages` kept ones, and none older than `age` (none: no limit)."""

    messages: Count = 1_000_000
    age_ms: OptionalDurationMs = Field(default=DAY_MS, alias="age")


class ExactWindowSettings(WindowSettings):
    """A Bloom filter remembers longer than the ring, for a few bytes a message."""

    messages: Count = 10_000_000
    age_ms: OptionalDurationMs = Field(default=7 * DAY_MS, alias="age")


class TextSettings(Section):
    """How a body is made of a text, beside the profile; compare: what keeps two apart that is another one."""

    fold_variants: Literal["none", "simplified", "traditional"] = "none"
    drop: tuple[Text, ...] = ()
    compare: tuple[Literal["links", "mentions", "tags"], ...] = ()


class FeatureSettings(Section):
    """What the SimHash is made of; paths are relative to the settings file."""

    kind: Literal["chars", "shingles", "keywords"] = "chars"
    unit: Literal["chars", "words"] = "chars"
    width: Annotated[Whole, Field(ge=1, le=64)] = 3
    top_k: Annotated[Whole, Field(ge=1, le=1000)] = 10
    min_features: Annotated[Whole, Field(ge=1, le=1000)] = 1
    weights: Literal["none", "tf", "tfidf", "position"] = "tf"
    parts_of_speech: tuple[Text, ...] = ()
    dictionary_file: OptionalText = None
    stop_words_file: OptionalText = None
    idf_file: OptionalText = None


class DigestSettings(Section):
    """The 128-bit digest of a key text; the seed is a secret and never stands in the file itself."""

    method: Literal["mmh3", "blake2b"] = "mmh3"
    seed: Annotated[Whole, Field(ge=0, lt=1 << 64, repr=False)] = 0
    seed_file: OptionalText = None


class ExactSettings(Section):
    """Stage one: equal key texts, or equal fields."""

    method: Literal["bloom", "trie", "none"] = "bloom"
    error_rate: Ratio = 1e-6
    window: ExactWindowSettings = Field(default_factory=ExactWindowSettings)
    fields: tuple[Text, ...] = ()


class LayoutSettings(Section):
    """Shape of the candidate index, part of the fingerprint scheme; a profile may have its own."""

    bands: Annotated[Whole, Field(ge=1, le=64)] = 24
    rows: Annotated[Whole, Field(ge=1, le=8)] = 4
    tables: Annotated[Whole, Field(ge=1, le=16)] = 6
    key_bits: Annotated[Whole, Field(ge=8, le=32)] = 24
    weak: Annotated[Whole, Field(ge=0, le=6)] = 2
    simhash_from: Annotated[Whole, Field(ge=1, le=1_000_000)] = 64
    grams: Literal["chars", "by_script"] = "chars"


def _limits() -> type[Section]:
    """A key for each limit of `Differences`, with its bounds and default."""
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(Differences, include_extras=True).items():
        for bound in getattr(hint, "__metadata__", ()):
            limited = (
                Share
                if isinstance(bound, contract.PerMille)
                else Annotated[Whole, Field(ge=bound.low, le=bound.high)]
            )
            fields[name] = (limited, Differences._field_defaults[name])
    return create_model("LimitSettings", __base__=Section, __doc__=Differences.__doc__, **fields)


if TYPE_CHECKING:
    LimitSettings = Section
else:
    LimitSettings = _limits()


class NearSettings(Section):
    """Stage two: alike bodies. `similarity` is held as an integer out of 10,000.

    A profile may have its own similarity, differences, limits and layout (PROFILES) where none is written.
    """

    method: Literal["text", "hamming", "none"] = "text"
    similarity: Similarity = 8_500
    window: WindowSettings = Field(default_factory=WindowSettings)
    differences: Literal["off", "guards", "full"] = "guards"
    limits: LimitSettings = Field(default_factory=LimitSettings)
    words_file: OptionalText = None
    same_id: Literal["drop", "pass"] = "drop"
    candidates: Literal["index", "scan"] = "index"
    bucket_load: Annotated[float, Field(ge=0.5, le=64.0, allow_inf_nan=False)] = 8.4
    shards: Annotated[int, BeforeValidator(read_auto), Field(ge=0, le=64)] = 0
    layout: LayoutSettings = Field(default_factory=LayoutSettings)
    distances: dict[Annotated[Whole, Field(ge=1)], Annotated[Whole, Field(ge=0, le=7)]] = Field(
        default_factory=lambda: {8: 3}
    )
    blocks: Annotated[int, BeforeValidator(read_auto), Field(ge=0, le=64)] = 0


class TimeSettings(Section):
    """Stream time: how far ahead a message may set it, and what becomes of late messages."""

    max_ahead_ms: DurationMs = Field(default=300_000, alias="max_ahead")
    late: Literal["insert", "judge"] = "insert"
    late_after_ms: DurationMs = Field(default=HOUR_MS, alias="late_after")


class InputSettings(Section):
    """Where messages come from and where text, id and time stand in them.

    Field names are paths: `user.name`, `entities[0].text`; `["a.b"]` or `a\\.b` for a name with a dot in it.
    Several text fields are one text, a line each; a message needs one of them.
    """

    topics: tuple[Text, ...] = ("posts",)
    encoding: Literal["json", "text"] = "json"
    part: Literal["value", "key"] = "value"
    text_field: Names = ("text",)
    id_field: OptionalText = "id"
    time_field: OptionalText = "created_at"
    max_bytes: SizeBytes = 4 << 20
    null_value: Literal["pass", "drop", "dead_letter"] = "pass"
    null_text: Literal["auto", "pass", "dead_letter", "fail"] = "auto"
    start: Literal["earliest", "latest"] = "earliest"
    trimmed: Literal["stop", "continue"] = "stop"


class OutputSettings(Section):
    """Where messages go. `none` switches duplicates and dead letters off."""

    topic: Text = "posts.unique"
    duplicates: OptionalText = "posts.duplicates"
    dead_letter: OptionalText = "posts.dead"
    origin_header: Flag = True
    kept_apart_header: Flag = False


class SecuritySettings(Section):
    """How to reach the broker; passwords come from the environment or from files."""

    protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    ca_file: OptionalText = None
    certificate_file: OptionalText = None
    key_file: OptionalText = None
    key_password: SecretStr | None = None
    key_password_file: OptionalText = None
    check_hostname: Flag = True
    mechanism: Literal["plain", "scram-sha-256", "scram-sha-512"] = "scram-sha-512"
    username: OptionalText = None
    password: SecretStr | None = None
    password_file: OptionalText = None


class KafkaSettings(Section):
    """The broker, the client, and how much goes into one poll, block and transaction."""

    client: Literal["kafka-python", "confluent"] = "kafka-python"
    bootstrap: Text = "localhost:9092"
    security: SecuritySettings = Field(default_factory=SecuritySettings)
    compression: Literal["none", "lz4", "zstd", "gzip"] = "lz4"
    poll_messages: Annotated[Whole, Field(ge=1, le=100_000)] = 5_000
    block_bytes: SizeBytes = 900 << 10
    message_bytes: SizeBytes = 8 << 20
    max_unpacked_bytes: SizeBytes = 64 << 20
    pending_messages: Annotated[Whole, Field(ge=1, le=10_000_000)] = 50_000
    pending_bytes: SizeBytes = 512 << 20
    answer_timeout_ms: DurationMs = Field(default=10_000, alias="answer_timeout")
    idle_report_ms: DurationMs = Field(default=1_000, alias="idle_report")
    session_timeout_ms: DurationMs = Field(default=6_000, alias="session_timeout")
    transaction_timeout_ms: DurationMs = Field(default=10_000, alias="transaction_timeout")
    request_timeout_ms: DurationMs = Field(default=40_000, alias="request_timeout")

    @property
    def heartbeat_ms(self) -> int:
        """How often a group member speaks up; by the answer it learns of a rebalance, and of a namesake."""
        return min(_HEARTBEAT_MS, self.session_timeout_ms // 3)


class TopicSettings(Section):
    """The internal topics `<app>.fingerprints`, `.verdicts`, `.decisions`, and who makes topics."""

    auto_create: Flag = False
    verdict_partitions: Annotated[Whole, Field(ge=1, le=1_000)] = 4
    output_partitions: OptionalCount = None
    replication: Annotated[Whole, Field(ge=1, le=9)] = 1
    min_in_sync: Annotated[Whole, Field(ge=1, le=9)] = 1


class StateSettings(Section):
    """Where snapshots go: a folder, or any fsspec address."""

    dir: Text = "./state"
    snapshot_every_ms: DurationMs = Field(default=300_000, alias="snapshot_every")
    keep: Annotated[Whole, Field(ge=1, le=100)] = 2


class HttpSettings(Section):
    """Where /healthz, /readyz and /metrics answer; `none` switches them off."""

    listen: OptionalText = "127.0.0.1:8080"

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port; None where `listen` is none or has another form."""
        host, _, port = (self.listen or "").rpartition(":")
        return (host.strip("[]"), int(port)) if host and port.isdecimal() and int(port) <= 65_535 else None


class LogSettings(Section):
    """What goes to stderr, and how: our own records from this level on, warnings of the packages below."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["logfmt", "json"] = "logfmt"


class Settings(Section):
    """Everything that can be set."""

    app: Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$")] = "twinsieve"
    profile: Literal["default", "microblog", "plain", "titles", "sms"] = "default"
    text: TextSettings = Field(default_factory=TextSettings)
    features: FeatureSettings = Field(default_factory=FeatureSettings)
    digest: DigestSettings = Field(default_factory=DigestSettings)
    exact: ExactSettings = Field(default_factory=ExactSettings)
    near: NearSettings = Field(default_factory=NearSettings)
    time: TimeSettings = Field(default_factory=TimeSettings)
    scope: tuple[Text, ...] = ()
    input: InputSettings = Field(default_factory=InputSettings)
    output: OutputSettings = Field(default_factory=OutputSettings)
    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    topics: TopicSettings = Field(default_factory=TopicSettings)
    state: StateSettings = Field(default_factory=StateSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    def passes_null_text(self, *, on_files: bool) -> bool:
        """Whether a message comes out whose text is null or missing; else it is unreadable."""
        said = self.input.null_text
        if said == "auto":
            return on_files or self.output.dead_letter is None
        return said != "dead_letter"


MICROBLOG_LIMITS = LimitSettings.model_validate(
    {
        "short": 20,
        "replaced_short": 200,
        "replaced": 200,
        "only_short": 1000,
        "longest": 10,
        "places": 1,
        "own": 30,
    }
)
LOW_FLOOR_LAYOUT = LayoutSettings(bands=36, rows=3, grams="by_script")
"""Finds what is alike from .70 on, for 91 bytes more a kept message (`python -m bench.floors`)."""
TITLES_LIMITS = LimitSettings.model_validate({"in_place": 1})
SMS_LIMITS = LimitSettings.model_validate({"places": 512, "inside": 18})
PROFILES: dict[str, dict[str, object]] = {
    "default": {},
    "microblog": {
        "similarity": 7_000,
        "differences": "full",
        "limits": MICROBLOG_LIMITS,
        "layout": LOW_FLOOR_LAYOUT,
    },
    "plain": {},
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
"""What a profile says of the near stage; the rest has its default."""
DROPS_TAGS = frozenset({"default", "microblog"})
"""Profiles that leave tags, repost chains and tails out of a text; the others drop links and @names alone."""
AUTO = {
    "exact.window.age": "7d, on files none",
    "near.window.age": "24h, on files none",
    "near.method": "text, or none where exact.fields is set",
    "input.id_field": "id, where messages have it",
    "input.time_field": "created_at, where messages have it",
}
"""Keys whose default depends on something else: it is `auto`, which means this."""
