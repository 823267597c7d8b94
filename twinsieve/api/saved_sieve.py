"""The file of `Sieve.save`: the settings, the number of texts judged, the ids, and the engine's state.

    head: `stages/header.py`, magic "twinsieve sieve\\n"
    header: JSON {"settings", "rows", "seeded", "version"}
    two states of `stages/judge/state.py`, each with its own checksums: the ids of leaders, and the engine

The file gets its name only when it is complete. Only its owner can read it, because it holds texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from pydantic import ValidationError

from twinsieve.api.leader_ids import LeaderIds
from twinsieve.api.sieve_options import engine_config
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import read_referenced
from twinsieve.pipeline.settings.stage_config import scheme_of
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import StateError, UsageError
from twinsieve.stages.header import StateHeader
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.judge.state import read_state, write_state

_HEADER = StateHeader(b"twinsieve sieve\n", (1,), "what Sieve.save wrote", "start with a new Sieve")
_SECTIONS = ("profile", "text", "features", "digest", "exact", "near", "time")
"""Sections of the settings that change verdicts on a column of texts."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The content of a saved file. rows: number of texts judged, and so the position of the next text"""

    settings: Settings
    scheme: Scheme
    rows: int
    ids: LeaderIds
    engine: BatchSieve


def write(name: str, settings: Settings, rows: int, ids: LeaderIds, engine: BatchSieve) -> None:
    """Save a sieve under `name`. raises: FileError; then an older file of this name is unchanged"""
    header = orjson.dumps(
        {
            "settings": _plain(settings),
            "rows": rows,
            "seeded": settings.digest.seed != 0,
            "version": program_version(),
        },
        option=orjson.OPT_NON_STR_KEYS,
    )
    with Output(name, mode=0o600, packed=False) as output:
        _HEADER.write(output.write, header)
        write_state(output.stream(), engine.config.scheme_id, {}, dict(ids.to_sections()))
        engine.save(output.stream())
        output.finish()


def read(name: str, seed: int | None) -> Saved:
    """The sieve that was saved in the file `name`.

    seed: the secret seed that the sieve was made with, because the file does not hold it
    raises: StateError if the file is damaged, has another format or was saved under another fingerprint
        scheme; UsageError if the seed is missing; FileError if the file cannot be read
    """
    try:
        with Path(name).open("rb") as stream:
            return _read(stream, seed)
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror}") from error
    except StateError as error:
        raise StateError(f"{name}: {error}") from error
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def leader_window(config: SieveConfig) -> int:
    """How many kept texts ago a leader can be: the near window, or the window of a trie if that is larger."""
    exact = config.exact.window.messages if config.exact.method == "trie" else 0
    return max(config.near.window.messages, exact)


def _read(stream: BinaryIO, seed: int | None) -> Saved:
    header: dict[str, Any] = orjson.loads(_HEADER.read(stream))
    if header["seeded"] and seed is None and header["settings"]["digest"].get("seed_file") is None:
        raise UsageError("was saved with a secret seed; give it, as in Sieve.load(path, seed=…)")
    settings = _settings_of(header, seed)
    scheme = scheme_of(settings)
    config = engine_config(settings, scheme.scheme_id)
    try:
        ids = LeaderIds.from_sections(read_state(stream, scheme.scheme_id, {}), leader_window(config))
    except (KeyError, ValueError) as error:
        raise StateError(f"does not hold its leader ids ({error}); start with a new Sieve") from error
    return Saved(settings, scheme, int(header["rows"]), ids, BatchSieve.load(stream, config))


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings that verdicts depend on, without the secret seed."""
    plain = settings.model_dump(by_alias=True, include=set(_SECTIONS))
    del plain["digest"]["seed"]
    if settings.near.distances_by_field:
        plain["input"] = {"text_field": settings.input.text_field}
    return plain


def _settings_of(header: Mapping[str, Any], seed: int | None) -> Settings:
    plain = dict(header["settings"])
    if seed is not None:
        plain["digest"] = {**plain["digest"], "seed": seed}
    try:
        settings = Settings.model_validate(plain)
    except ValidationError as error:
        if seed is not None and any(detail["loc"][-1] == "seed" for detail in error.errors()):
            raise UsageError("seed cannot be read; it is a whole number below 2^64") from error
        raise StateError(
            f"was saved by twinsieve {header['version']} with settings that this version does not know; "
            "load it with that version, or start with a new Sieve"
        ) from error
    settings, problems = read_referenced(settings, Path(), set())
    if problems:
        raise StateError(f"was saved with {'; '.join(f'{key}, which {text}' for key, text in problems)}")
    return settings
