"""How many written pairs of each kind get the wanted verdict: numbers behind labels, codes for words …

    python -m bench.kinds [--profile default] [--wrong KIND]

--wrong: also print the pairs of this kind that do not, but those that are only counted
The pairs are in tests/accuracy/kinds/.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.kinds import KINDS, WrittenPair, written_pairs


def main() -> None:
    """Print machine and table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("--profile", default="default")
    parser.add_argument("--wrong", choices=KINDS)
    asked = parser.parse_args()
    console = Console(width=150, highlight=False)
    console.print(machine_line())
    table = Table("kind", "as wanted", "same", "different", "not English", "counted only")
    for kind in KINDS:
        pairs = written_pairs(kind, asked.profile)
        table.add_row(
            kind,
            _share(pairs),
            _share([pair for pair in pairs if pair.same]),
            _share([pair for pair in pairs if not pair.same]),
            _share([pair for pair in pairs if pair.language != "en"]),
            _share([pair for pair in pairs if pair.counted_only]),
        )
        if kind == asked.wrong:
            for pair in pairs:
                if not pair.as_wanted and not pair.counted_only:
                    want = "same" if pair.same else "different"
                    console.print(pair.number, want, pair.language, style="bold")
                    console.print(f"  {pair.earlier}\n  {pair.later}", markup=False)
    console.print(table)


def _share(pairs: list[WrittenPair]) -> str:
    return f"{sum(pair.as_wanted for pair in pairs)} of {len(pairs)}"


if __name__ == "__main__":
    main()
