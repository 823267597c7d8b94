"""What a store keeps of an exact stage: the parts by name, each written once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.exact.runs import FrozenStage
from twinsieve.stages.exact.sections import Sections


class Files:
    """Parts that were written, by name."""

    def __init__(self) -> None:
        self.parts: dict[str, Sections] = {}
        self.new: list[str] = []
        """Names of the parts that the last save wrote."""

    def save(self, frozen: FrozenStage) -> Callable[[], Sections]:
        """Write the parts that are new; returns what reads all sections of this save from the files."""
        names = {place: part.name for place, part in frozen.parts.items()}
        self.new = [part.name for part in frozen.parts.values() if part.name not in self.parts]
        for part in frozen.parts.values():
            if part.name not in self.parts:
                self.parts[part.name] = {name: array.copy() for name, array in part.read().items()}
        held = {place: self.parts[name] for place, name in names.items()}

        def read() -> Sections:
            sections = dict(frozen.sections)
            for place, part in held.items():
                sections |= {f"{place}.{name}": array for name, array in part.items()}
            return sections

        return read

    def keep_only(self, frozen: FrozenStage) -> None:
        """Delete the parts that this state does not name."""
        named = {part.name for part in frozen.parts.values()}
        self.parts = {name: part for name, part in self.parts.items() if name in named}


def same(one: Sections, other: Sections) -> bool:
    """Whether two states have the same sections."""
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


def bytes_of(sections: Sections) -> int:
    """Bytes of all arrays."""
    return sum(array.nbytes for array in sections.values())


def random_digests(count: int, seed: int) -> NDArray[np.uint64]:
    """uint64[count, 2], uniform."""
    return np.random.default_rng(seed).integers(0, 2**64, (count, 2), dtype=np.uint64)
