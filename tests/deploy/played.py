"""Queries and rules, played by promtool on made-up series."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.series import Series

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus/alerts.yaml"


def play(
    promtool: str,
    folder: Path,
    series: Series,
    asked: list[tuple[str, int]],
    *,
    file: Path | None = None,
    scrape_s: int = 15,
) -> list[str]:
    """What each query finds at its time in seconds, in promtool's words; "nil" for nothing.

    file: rules that are evaluated meanwhile
    """
    tests = {
        "rule_files": [] if file is None else [str(file)],
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
    tests_file = folder / "tests.yaml"
    # JSON is YAML, and is written in an instant.
    tests_file.write_text(json.dumps(tests))
    done = subprocess.run(
        [promtool, "test", "rules", str(tests_file)], capture_output=True, text=True, timeout=300, check=False
    )
    got = re.findall(r"^ +got: ?(.*)$", done.stdout + done.stderr, re.MULTILINE)
    assert len(got) == len(asked), done.stdout + done.stderr
    return got


def asked_of(queries: Iterable[str]) -> set[str]:
    """Names of our metrics that queries ask for, those left out that rules record."""
    return set(re.findall(r"(?<![:\w])twinsieve_\w+", " ".join(queries)))


def rules() -> list[dict[str, Any]]:
    """Alert rules and recording rules, in the order of the file."""
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]
