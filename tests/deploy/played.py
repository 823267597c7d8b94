"""Queries and rules, played by promtool on made-up series."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.deploy.series import Series


def play(
    promtool: str,
    folder: Path,
    series: Series,
    asked: list[tuple[str, int]],
    *,
    rules: Path | None = None,
    scrape_s: int = 15,
) -> list[str]:
    """What each query finds at its time in seconds, in promtool's words; "nil" for nothing."""
    tests = {
        "rule_files": [] if rules is None else [str(rules)],
        "evaluation_interval": f"{scrape_s}s",
        "tests": [
            {
                "interval": f"{scrape_s}s",
                "input_series": series.written(max(at for _, at in asked), scrape_s),
                # No expectation is right, so that promtool prints what it found.
                "promql_expr_test": [
                    {"expr": query, "eval_time": f"{at}s", "exp_samples": [{"labels": "{}", "value": -1}]}
                    for query, at in asked
                ],
            }
        ],
    }
    file = folder / "tests.yaml"
    # JSON is YAML, and is written in an instant.
    file.write_text(json.dumps(tests))
    done = subprocess.run(
        [promtool, "test", "rules", str(file)], capture_output=True, text=True, timeout=300, check=False
    )
    got = re.findall(r"^ +got: ?(.*)$", done.stdout + done.stderr, re.MULTILINE)
    assert len(got) == len(asked), done.stdout + done.stderr
    return got


def asked_of(queries: Iterable[str]) -> set[str]:
    """Names of our metrics that queries ask for, those left out that rules record."""
    return set(re.findall(r"(?<![:\w])twinsieve_\w+", " ".join(queries)))
