"""A state of the sieve for each method, as the program of this format version wrote it once.

`python -m tests.golden.states` writes the files anew; do that only together with a new format version.
"""

from __future__ import annotations

from pathlib import Path

from tests.property.streams import PARTS, batch_of
from tests.whole_state import to_bytes
from twinsieve.pipeline.tools.generate.stream import generate
from twinsieve.stages.contract import BandLayout, Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.formats import SECTIONS
from twinsieve.stages.judge.batch_sieve import BatchSieve

FOLDER = Path(__file__).parent
METHODS = ("text", "hamming", "signatures")
JUDGED = 80
"""Of the posts, those that were judged before the state was saved."""
_WINDOW = 1_000
_LAYOUT = BandLayout(24, 4, tables=6, grams="chars")
"""The default when the states were written."""


def state_file(method: str) -> Path:
    """Where the state of a method is, in the format version that is read."""
    return FOLDER / f"state_version_{SECTIONS.versions[-1]}_{method}.bin"


def config_of(method: str) -> SieveConfig:
    """The configuration that the state was saved under."""
    near = NearConfig(method=method, window=Window(_WINDOW), parts=PARTS, share=2)  # type: ignore[arg-type]
    return SieveConfig(near=near, exact=ExactConfig(window=Window(500)), layout=_LAYOUT, scheme_id="golden")


def posts() -> Batch:
    """Generated posts, always the same."""
    return batch_of([(post["text"], None, 0, 0) for post in generate(120, 4)], layout=_LAYOUT)


def main() -> None:
    """Write the files."""
    for method in METHODS:
        sieve = BatchSieve(config_of(method))
        sieve.judge(posts().slice(0, JUDGED))
        state_file(method).write_bytes(to_bytes(sieve))


if __name__ == "__main__":
    main()
