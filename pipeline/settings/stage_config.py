"""Convert settings to the configuration of the stages."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import DROPS_TAGS, Section, Settings, WindowSettings
from twinsieve.pipeline.settings.named_files import open_regular
from twinsieve.stages.contract import (
    LEVELS,
    BandLayout,
    Differences,
    ExactConfig,
    NearConfig,
    SieveConfig,
    TimeConfig,
    Window,
)
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest_config import AUTO_HASHES
from twinsieve.stages.fingerprint.features import entry_of
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.judge.scheme import (
    DigestConfig,
    FeatureConfig,
    FieldLines,
    Scheme,
    SchemeConfig,
    SignatureConfig,
    TextConfig,
)

MAX_LIST_BYTES = 256 << 20
"""Largest size of a dictionary or of a list of words or weights; jieba's own dictionary has 5 MB."""

MAX_WORDS_BYTES = 1 << 20
"""Largest size of a file with word lists for differences."""

_SHOWN_FINDINGS = 20
_BLANK = re.compile(r"\s")


def scheme_of(settings: Settings) -> Scheme:
    """The fingerprint scheme of these settings. raises: ConfigError; UsageError for problems that only the
    scheme itself finds"""
    return Scheme(scheme_config(settings))


def judging_scheme_of(settings: Settings, secret: Secret | None = None) -> Scheme:
    """`scheme_of` for a sieve of these settings: makes only what its stages read. raises: as there

    secret: of digests; None: that of the settings, if they have one
    """
    near = settings.near
    simhash_from = near.layout.simhash_from if near.method == "text" else 0
    return Scheme(scheme_config(settings, secret), near=near.method != "none", simhash_from=simhash_from)


def scheme_config(settings: Settings, secret: Secret | None = None) -> SchemeConfig:
    """The configuration of the fingerprint scheme, with the contents of word lists that the settings name.

    secret: as for `judging_scheme_of`
    raises: ConfigError, with the line, for a list that cannot be read
    """
    features = settings.features
    return SchemeConfig(
        text=TextConfig(
            profile="microblog" if settings.profile in DROPS_TAGS else "plain",
            fold_variants=settings.text.fold_variants,
            drop=settings.text.drop,
            # Sorted, because another order in the settings must not make another scheme.
            compare=tuple(sorted(settings.text.compare)),
        ),
        features=FeatureConfig(
            features=features.kind,
            dictionary=dictionary(features.dictionary_file),
            own_stop_words=_stop_words(features.stop_words_file),
            idf=_idf(features.idf_file),
            **_same(features, FeatureConfig),
        ),
        layout=band_layout(settings),
        digest=DigestConfig(settings.digest.method, secret or Secret.of_seed(settings.digest.seed)),
        fields=_field_lines(settings),
        signature=signature_config(settings),
    )


def signature_config(settings: Settings) -> SignatureConfig | None:
    """Which parts of a message are hashed; None if `near.method` is not `signatures`."""
    if settings.near.method != "signatures":
        return None
    signature = settings.near.signature
    return SignatureConfig(
        kind=signature.kind,
        hashes=signature.hashes or AUTO_HASHES[signature.kind],
        joined=not signature.share,
        cut=signature.cut,
        rarest=signature.rarest,
        commonest=signature.commonest,
    )


def compared_fields(settings: Settings) -> list[str]:
    """The fields that have a SimHash of their own, in the order of `input.text_field`; often none."""
    by_field = settings.near.distances_by_field if settings.near.method == "hamming" else {}
    return [name for name in settings.input.text_field if name in by_field]


def _field_lines(settings: Settings) -> FieldLines | None:
    fields = settings.input.text_field
    compared = tuple(fields.index(name) for name in compared_fields(settings))
    return FieldLines(len(fields), compared) if compared else None


def band_layout(settings: Settings) -> BandLayout:
    """Shape of the candidate index."""
    return BandLayout(**dict(settings.near.layout))


def sieve_config(settings: Settings, scheme_id: str) -> SieveConfig:
    """The configuration of the sieve: everything besides the input on which verdicts depend."""
    exact, near = settings.exact, settings.near
    signature = signature_config(settings)
    return SieveConfig(
        exact=ExactConfig(method=exact.method, error_rate=exact.error_rate, window=_window(exact.window)),
        near=replace(
            NearConfig(**_same(near, NearConfig)),
            window=_window(near.window),
            memory=settings.state.memory or 0,
            distances=tuple(sorted(near.distances.items())),
            distances_by_field=tuple(near.distances_by_field[name] for name in compared_fields(settings)),
            threads=near.threads or os.cpu_count() or 1,
            differences=Differences(LEVELS.index(near.differences), **dict(near.limits)),
            words=_words(near.words_file),
            details=settings.output.kept_apart_header,
            parts=signature.parts if signature is not None else 0,
            share=near.signature.share or 1,
        ),
        time=TimeConfig(**dict(settings.time)),
        layout=band_layout(settings),
        scheme_id=scheme_id,
        scoped=bool(settings.scope),
        key_is_text=not settings.exact.fields,
    )


def _same(section: Section, config: type[Any]) -> dict[str, Any]:
    """The settings of a section for which the configuration class `config` has a field of the same name."""
    return {each.name: getattr(section, each.name) for each in fields(config) if hasattr(section, each.name)}


def _words(name: str | None) -> str:
    """The checked content of the user's word lists, as text for the stages; "" if there are none."""
    if name is None:
        return ""
    words = _content(name, MAX_WORDS_BYTES)
    try:
        phrases_of(words)
    except UsageError as error:
        raise ConfigError([f"{name}:1:1: {error}"]) from error
    return words


def _window(window: WindowSettings) -> Window:
    return Window(window.messages, window.age_ms)


def _content(name: str, most: int) -> str:
    """The text of a file that the settings name.

    most: largest size in bytes
    raises: ConfigError if the file is larger, or cannot be read
    """
    try:
        with open_regular(Path(name)) as stream:
            held = stream.read(most + 1)
        if len(held) > most:
            raise ConfigError([f"{name}:1:1: has more than {most >> 20} MiB; shorten the list"])
        return held.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError([f"{name}:1:1: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{name}:1:1: is not UTF-8 at byte {error.start}; save it as UTF-8"]) from error


def _lines(name: str | None) -> Iterator[tuple[int, str]]:
    """The lines of a file that are neither empty nor comments, with their numbers; none if `name` is None."""
    if name is None:
        return
    for number, line in enumerate(_content(name, MAX_LIST_BYTES).splitlines(), start=1):
        if line.strip() and not line.startswith("# "):
            yield number, line.strip()


def _stop_words(name: str | None) -> tuple[str, ...]:
    """Words of a list of stop words, one a line."""
    words, findings = [], []
    for number, line in _lines(name):
        words.append(line)
        blank = _BLANK.search(line)
        if blank:
            findings.append(f"{name}:{number}:{blank.start() + 1}: is not one word; write one word a line")
    if findings:
        raise ConfigError(findings[:_SHOWN_FINDINGS])
    return tuple(words)


def dictionary(name: str | None) -> tuple[str, ...]:
    """The lines of a user dictionary; each one is an entry that the segmenter accepts."""
    numbered = list(_lines(name))
    found = (finding for number, line in numbered for finding in _wrong_entry(f"{name}:{number}:1", line))
    if findings := list(islice(found, _SHOWN_FINDINGS)):
        raise ConfigError(findings)
    return tuple(line for _, line in numbered)


def _wrong_entry(where: str, line: str) -> Iterator[str]:
    try:
        entry_of(line)
    except UsageError as error:
        yield f"{where}: {error}"


def _idf(name: str | None) -> tuple[tuple[str, float], ...] | None:
    """Pairs of a feature and its weight, from lines `feature<TAB>idf`, or `word idf` as jieba writes them."""
    if name is None:
        return None
    pairs = []
    findings = []
    for number, line in _lines(name):
        word, _, weight = line.rpartition("\t" if "\t" in line else " ")
        try:
            value = float(weight)
        except ValueError:
            value = math.nan
        if word and math.isfinite(value) and value >= 0.0:
            pairs.append((word, value))
        else:
            findings.append(f"{name}:{number}:1: is not `feature<TAB>idf`; correct the line")
    if findings:
        raise ConfigError(findings[:_SHOWN_FINDINGS])
    return tuple(pairs)
