"""What an app is fixed to by its first decision: the settings of its fingerprint scheme, its scope and its
exact keys, by name and value, so that a refusal can name those that differ.

Of a secret only the name is among them (`Secret`). A list of words counts by its content, not by its file
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import orjson

from twinsieve.pipeline.settings.model import DROPS_TAGS, PROFILES, InputSettings, LayoutSettings, Settings
from twinsieve.pipeline.settings.schema import declared
from twinsieve.pipeline.settings.show import value_text
from twinsieve.pipeline.settings.values import duration_text
from twinsieve.stages.fingerprint.secret import NO_SECRET
from twinsieve.stages.judge.scheme import SchemeConfig

FixedSettings = Mapping[str, str]
"""Value of a setting by its key, both written as in a file. A key that is missing has the profile's value."""

ADVICE = "set it as it was, or start a new app and seed it (docs/OPERATIONS.md, Change the profile)"
NEW_APP = (
    "give `app` and the outputs new names, then run `twinsieve topics create`, `twinsieve seed --topic` with "
    "the output of this app, and `twinsieve reset --to` the time at which `seed` began (docs/OPERATIONS.md, "
    "Change the profile)"
)
"""How to go on with an app whose records cannot be used."""
KEY = "digest.key"
"""Says `own` and the name of the app's key, or `seed`."""
_LONGEST = 64
"""A longer value is replaced by its digest: Kafka keeps at most 4,096 bytes beside an offset."""
_OF_FEATURES = (
    "kind",
    "unit",
    "width",
    "top_k",
    "choose",
    "min_features",
    "drop",
    "weights",
    "parts_of_speech",
    "drop_parts_of_speech",
    "min_word",
    "stop_words",
)


def fixed_settings(settings: Settings, config: SchemeConfig) -> FixedSettings:
    """The profile, and of the other settings that an app is fixed to those that are not the profile's.

    config: `scheme_config` of these settings and the secret
    """
    values, defaults = _values(settings), _defaults(settings.profile)
    features = config.features
    values |= {
        f"features.{name}_file": _digest(str(content))
        for name, content in (
            ("dictionary", features.dictionary),
            ("stop_words", features.own_stop_words),
            ("idf", features.idf),
        )
        if content
    }
    if config.digest.secret != NO_SECRET:
        values[KEY] = f"own {config.digest.secret.name}" if settings.has_own_key else "seed"
    return {
        key: value for key, value in values.items() if key == "profile" or value != defaults.get(key, "none")
    }


def key_name(fixed: FixedSettings) -> str:
    """The name of the app's own key; empty if it has none."""
    said, _, name = fixed.get(KEY, "").partition(" ")
    return name if said == "own" else ""


def differing(was: FixedSettings, now: FixedSettings) -> str:
    """The settings that differ, as `profile: was default, is plain`, joined by semicolons.

    If none differs, what else a scheme depends on.

    >>> differing({"profile": "default"}, {"profile": "plain", "text.compare": "[links]"})
    'profile: was default, is plain; text.compare: was [], is [links]'
    """
    keys = [*now, *(key for key in was if key not in now)]
    pairs = [(key, _value(was, key), _value(now, key)) for key in keys]
    lines = [f"{key}: was {before}, is {after}" for key, before, after in pairs if before != after]
    return "; ".join(lines) or "digest.seed, or the version of twinsieve, jieba or OpenCC, is another one"


def reading_digest(source: InputSettings) -> str:
    """16 hex digits that identify the settings which decide where the text of a message is read."""
    parts = [sorted(source.topics), source.encoding, source.part, source.text_field]
    return blake2b(orjson.dumps(parts), digest_size=8).hexdigest()


def profile_cost(settings: Settings) -> str:
    """What another profile costs an app on Kafka, as one line."""
    ages = []
    for name, stage in (("near", settings.near), ("exact", settings.exact)):
        age_ms = stage.window.age_ms
        ages.append(f"{name}.window.age {'none' if age_ms is None else duration_text(age_ms)}")
    alike = [
        name for name in PROFILES if name != settings.profile and _scheme(name) == _scheme(settings.profile)
    ]
    may = (
        f"may change its profile to {' or '.join(alike)}; any other"
        if alike
        else "keeps its profile; another"
    )
    return (
        f"an app on Kafka {may} profile needs a new app, which `seed` fills, or which runs beside the old "
        f"one until its windows are full ({', '.join(ages)}): docs/OPERATIONS.md, Change the profile"
    )


def _scheme(profile: str) -> tuple[bool, object]:
    """What of a fingerprint scheme a profile decides."""
    return profile in DROPS_TAGS, PROFILES[profile].get("layout")


def encode_fixed(fixed: FixedSettings) -> str:
    """The settings as one line of JSON."""
    return orjson.dumps(fixed).decode()


def decode_fixed(text: str) -> FixedSettings:
    """The settings in this text; empty if it holds none."""
    try:
        fixed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return {str(key): str(value) for key, value in fixed.items()} if isinstance(fixed, dict) else {}


def _value(fixed: FixedSettings, key: str) -> str:
    return fixed.get(key) or _defaults(fixed.get("profile", "")).get(key, "none")


def _defaults(profile: str) -> dict[str, str]:
    """The values of these settings under a profile, if nothing else is set."""
    layout = PROFILES.get(profile, {}).get("layout", LayoutSettings())
    settings = Settings()
    near = settings.near.model_copy(update={"layout": layout, "method": "signatures"})
    # Of the methods only `signatures` is a part of the scheme.
    return {**_values(settings.model_copy(update={"near": near})), "near.method": "another"}


def _values(settings: Settings) -> dict[str, str]:
    near = settings.near
    keys = ["profile", "text.fold_variants", "text.drop", "text.compare"]
    keys += [f"features.{name}" for name in _OF_FEATURES]
    keys += ["digest.method", *(f"near.layout.{name}" for name in type(near.layout).model_fields)]
    if near.method == "signatures":
        keys += ["near.method", *(f"near.signature.{name}" for name in type(near.signature).model_fields)]
    keys += ["exact.fields", "scope", "near.same_id"]
    return {key: _written(settings, key) for key in keys}


def _written(settings: Settings, key: str) -> str:
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    if isinstance(value, tuple) and key in ("text.compare", "features.drop"):
        # Another order makes no other scheme.
        value = tuple(sorted(value))
    text = value_text(key, declared()[key], value)
    return text if len(text.encode()) <= _LONGEST else _digest(text)


def _digest(text: str) -> str:
    return f"content {blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"
