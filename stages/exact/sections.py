"""Checks saved arrays when they are read, with different errors for other settings and for damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import NEW_STATE, DamagedError, StateError

Sections = dict[str, NDArray[np.generic]]
"""Named arrays: a saved part of the state."""


class SavedSections(Mapping[str, NDArray[np.generic]]):
    """The sections of a saved state, some of which are read only when they are asked for.

    here: sections that were read
    elsewhere: by a prefix of names (`trie.0`), a function that reads the sections with this prefix. The
        result of the last call is kept, so that a large part is in memory only while it is taken over
    prefix: names are given without it
    """

    def __init__(
        self, here: Sections, elsewhere: Mapping[str, Callable[[], Sections]], prefix: str = ""
    ) -> None:
        self._here = here
        self._elsewhere = elsewhere
        self._prefix = prefix
        self._last: tuple[str, Sections] = ("", {})

    def within(self, part: str) -> SavedSections:
        """The sections of one part of the state, such as `bloom`, under their names in that part."""
        return SavedSections(self._here, self._elsewhere, f"{self._prefix}{part}.")

    def _found(self, name: str) -> NDArray[np.generic] | None:
        name = self._prefix + name
        if name in self._here:
            return self._here[name]
        for prefix, read in self._elsewhere.items():
            if name.startswith(prefix + "."):
                if self._last[0] != prefix:
                    self._last = (prefix, read())
                return self._last[1].get(name[len(prefix) + 1 :])
        return None

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        found = self._found(name)
        if found is None:
            raise KeyError(self._prefix + name)
        return found

    def __contains__(self, name: object) -> bool:
        return self._found(str(name)) is not None

    def __iter__(self) -> Iterator[str]:
        return (name[len(self._prefix) :] for name in self._here if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class SectionReader:
    """Reads the sections (named arrays) of one part of the state, such as `bloom`, and checks each.

    raises: StateError from each method; the message names the part and says what to do
    """

    def __init__(self, part: str, sections: Mapping[str, NDArray[np.generic]], prefix: str = "") -> None:
        self._part = part
        self._sections = sections
        self._prefix = prefix

    def within(self, prefix: str) -> SectionReader:
        """A reader of the sections whose names begin with the prefix; it takes their names without it."""
        return SectionReader(self._part, self._sections, self._prefix + prefix)

    def has(self, name: str) -> bool:
        """Whether there is a section of this name."""
        return self._prefix + name in self._sections

    def array(self, name: str, dtype: type[np.generic], shape: tuple[int | None, ...]) -> NDArray[np.generic]:
        """The section of this name. It must have this dtype and shape; None in the shape fits any length."""
        name = self._prefix + name
        if name not in self._sections:
            raise self.damaged(f"section {name!r} is missing")
        array = self._sections[name]
        fits = array.dtype == dtype and array.ndim == len(shape)
        if not fits or any(want not in (None, have) for have, want in zip(array.shape, shape, strict=True)):
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise self.damaged(
                f"section {name!r} is {array.dtype}{list(array.shape)}, not {np.dtype(dtype)}[{wanted}]"
            )
        return array

    def same_parameters(self, names: tuple[str, ...], now: NDArray[np.int64]) -> None:
        """Check that the section `parameters` equals `now`; the error names the first difference."""
        saved = self.array("parameters", np.int64, (len(names),))
        for name, was, is_now in zip(names, saved.tolist(), now.tolist(), strict=True):
            if was != is_now:
                raise StateError(
                    f"{self._part}: saved with {_shown(name, was)}, "
                    f"the configuration says {_shown(name, is_now)}; "
                    f"restore the setting or {NEW_STATE}"
                )

    def damaged(self, problem: str) -> DamagedError:
        """The error for arrays that cannot be what twinsieve wrote. problem: what is wrong"""
        return DamagedError(f"{self._part}: {problem}")


def _shown(name: str, value: int) -> str:
    # Show the value as settings write it. A rate is saved as the bits of a float64, and "no age" as -1.
    if name == "exact.error_rate":
        return f"{name} {float(np.int64(value).view(np.float64))!r}"
    if name == "exact.window.age_ms" and value < 0:
        return f"{name} none"
    return f"{name} {value}"
