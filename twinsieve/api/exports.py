"""Names of the rooms below that are public too: the errors, and the version."""

from __future__ import annotations

from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.settings import ConfigError
from twinsieve.stages.errors import SieveError, StateError, UsageError

__all__ = ["ConfigError", "FileError", "SieveError", "StateError", "UsageError", "program_version"]
