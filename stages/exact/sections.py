"""Checks saved arrays when they are read, with different errors for other settings and for damage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import NEW_STATE, StateError

Sections = dict[str, NDArray[np.generic]]
"""Named arrays: a saved part of the state."""


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

    def damaged(self, problem: str) -> StateError:
        """The error for arrays that cannot be what twinsieve wrote. problem: what is wrong"""
        return StateError(f"{self._part}: {problem}; the state is damaged, {NEW_STATE} or an older snapshot")


def _shown(name: str, value: int) -> str:
    # Show the value as settings write it. A rate is saved as the bits of a float64, and "no age" as -1.
    if name == "exact.error_rate":
        return f"{name} {float(np.int64(value).view(np.float64))!r}"
    if name == "exact.window.age_ms" and value < 0:
        return f"{name} none"
    return f"{name} {value}"
