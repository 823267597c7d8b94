"""One more fingerprint column and one more verdict column, as a developer would add them, on the way of a message.

`python -m tests.wire.trial_column FILE` declares each in `stages/contract.py` and fills it where it is made: two
changed files a column, in memory only. It reads FILE, and prints for each row what stands in both columns after each
step.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

FINGERPRINT = {
    "twinsieve.stages.contract": (
        "    signatures: Annotated[",
        '    trial: Annotated[NDArray[np.uint16], PerRow("<u2")]\n'
        '    """characters of the key text, and 1,000"""\n'
        "    signatures: Annotated[",
    ),
    "twinsieve.stages.fingerprint.fingerprinter": (
        "        prints.digests = digests(self._digest, bodies, keys)\n",
        "        prints.digests = digests(self._digest, bodies, keys)\n"
        "        prints.trial[:] = (np.diff(starts) + 1_000).astype(np.uint16)\n",
    ),
}
VERDICT = {
    "twinsieve.stages.contract": (
        '    flags: Annotated[NDArray[np.uint8], PerRow("u1")]\n',
        '    flags: Annotated[NDArray[np.uint8], PerRow("u1")]\n'
        '    trial: Annotated[NDArray[np.int16], PerRow("<i2", fill=-7)]\n'
        '    """the trial of the fingerprint, less 2,000"""\n',
    ),
    "twinsieve.stages.judge.batch_sieve": (
        '        verdicts = Verdicts.blank(len(batch), fill={"kinds": UNJUDGED})\n',
        '        verdicts = Verdicts.blank(len(batch), fill={"kinds": UNJUDGED})\n'
        "        verdicts.trial[:] = batch.fingerprints.trial.astype(np.int16) - 2_000\n",
    ),
}


class _Changed(SourceFileLoader):
    """A module with some lines changed, once each."""

    def __init__(self, name: str, path: str, changes: Sequence[tuple[str, str]]) -> None:
        super().__init__(name, path)
        self._changes = changes

    def get_code(self, fullname: str) -> Any:
        source = Path(self.path).read_text("utf-8")
        for old, new in self._changes:
            assert source.count(old) == 1, f"{self.path} does not hold once: {old}"
            source = source.replace(old, new)
        return compile(source, self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, changes: Sequence[Mapping[str, tuple[str, str]]]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        changes = [each[fullname] for each in self._changes if fullname in each]
        spec = PathFinder.find_spec(fullname, path, target) if changes else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Changed(fullname, spec.origin, changes)
        return spec


def walk(file: Path) -> dict[str, list[int]]:
    """The trial columns of the rows of a JSONL file after each step."""
    import numpy as np

    from twinsieve.pipeline.index.ledger import ledger_from_bytes, ledger_to_bytes
    from twinsieve.pipeline.index.state import IndexState
    from twinsieve.pipeline.messages.reader import MessageReader, make_batch
    from twinsieve.pipeline.settings.model import Settings
    from twinsieve.pipeline.wire.block import Block, BlockFlag, decode_block, encode_block
    from twinsieve.pipeline.wire.frame import What, scheme_hash
    from twinsieve.pipeline.wire.ruling import decode_ruling, encode_ruling
    from twinsieve.stages.contract import NO_TIME, SieveConfig
    from twinsieve.stages.judge.batch_sieve import BatchSieve
    from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

    seen: dict[str, Any] = {}
    scheme = scheme_hash("trial")
    columns = MessageReader(Settings()).read(file.read_bytes().splitlines())
    bodies, prints = Scheme(SchemeConfig()).read(columns.texts)
    seen["file"] = prints.trial  # type: ignore[attr-defined]
    n = len(columns)
    ask = Block(
        bytes(16), 0, 0, 1, BlockFlag.START, 0, n, 0, 0, stable_end=n, topic="in",
        offsets=np.arange(n), kinds=np.zeros(n, np.uint8),
        batch=make_batch(columns, bodies, prints, np.zeros(n, np.int64), NO_TIME),
    )  # fmt: skip
    block = decode_block(encode_block(ask, scheme), scheme, "block")
    seen["block"] = block.batch.fingerprints.trial  # type: ignore[attr-defined]
    index = IndexState(BatchSieve(SieveConfig()))
    ruling = index.rule(block, 0, 0)
    seen["index"] = ruling.verdicts.trial  # type: ignore[attr-defined]
    ledger = ledger_from_bytes(ledger_to_bytes(index.ledger), "snapshot")
    (book,) = ledger.books.values()
    seen["snapshot"] = book.open.chunks[0].verdicts.trial  # type: ignore[attr-defined]
    block.session = 2
    again = IndexState(BatchSieve(SieveConfig()), ledger, 1).rule(block, 1, 0)
    answer = decode_ruling(What.ANSWER, encode_ruling(again, scheme)[1], scheme, "answer")
    seen["answer"] = answer.verdicts.trial  # type: ignore[attr-defined]
    return {name: values.tolist() for name, values in seen.items()}


if __name__ == "__main__":
    sys.meta_path.insert(0, _Finder([FINGERPRINT, VERDICT]))
    print(json.dumps(walk(Path(sys.argv[1]))))
