"""What indexes say of the answers of shards, scraped from processes that may be killed at any time."""

from __future__ import annotations

import threading
from collections import defaultdict

from tests.broker.server import free_ports
from tests.service.scraped import Pages

_EVERY_S = 0.5
_ROWS, _LEFT = "index_answered_rows_total", "index_left_rows_total"
_ALONE = "index_unanswered_segments"


class ShardCounts:
    """Scrapes each process twice a second, in a thread. What one counted right before its death is missing."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._pages: dict[int, Pages] = {}
        self._counts: defaultdict[int, dict[str, float]] = defaultdict(dict)
        """By port."""
        self._judging: list[float] = []
        """Segments that nobody answered for, at each look at an index that judges."""

    def address(self) -> str:
        """A new address, for a process that starts now."""
        (port,) = free_ports(1)
        self._pages[port] = Pages(port)
        return f"127.0.0.1:{port}"

    def run(self) -> None:
        """Until stopped."""
        while not self.stop.wait(_EVERY_S):
            for port, pages in list(self._pages.items()):
                # Empty while it starts, and after its end.
                found = {name: held[()] for name, held in pages.metrics().items() if () in held}
                self._counts[port] |= {name: found[name] for name in (_ROWS, _LEFT) if name in found}
                if _ALONE in found:
                    self._judging.append(found[_ALONE])

    @property
    def answered(self) -> float:
        """Rows (times segments) judged with answers so far."""
        return self._sum(_ROWS)

    def _sum(self, name: str) -> float:
        return sum(held.get(name, 0.0) for held in list(self._counts.values()))

    def __str__(self) -> str:
        rows, left = self.answered, self._sum(_LEFT)
        alone = sum(segments > 0 for segments in self._judging)
        return (
            f"{rows:.0f} rows (times segments) judged with answers, {left:.0f} of them looked up all the same; "
            f"at {alone} of {len(self._judging)} looks nobody answered for some segment"
        )
