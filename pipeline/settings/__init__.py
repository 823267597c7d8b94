"""Read a YAML file into typed settings, and report every problem with its line."""

from __future__ import annotations

from twinsieve.stages.errors import SieveError, without_secrets


class ConfigError(SieveError):
    """A configuration file has problems; `findings` holds all of them, one line each."""

    exit_code = 2

    def __init__(self, findings: list[str]) -> None:
        super().__init__("\n".join(findings))
        self.findings = [without_secrets(one) for one in findings]

    def lines(self) -> list[str]:
        """The findings, one line each; a line begins with the place of its problem."""
        return self.findings
