"""Figures that a process shows at /metrics."""

from __future__ import annotations

import re
import urllib.request


def metric(port: int, name: str) -> float | None:
    """Sum of the series of that name; None while the process does not say, or has none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            found = re.findall(rb"^%s(?:\{.*\})? ([0-9.e+-]+)$" % name.encode(), page.read(), re.MULTILINE)
    except OSError:
        return None
    return sum(map(float, found)) if found else None
