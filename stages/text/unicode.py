"""The Unicode database of the text stage, as a data file of the package with a fixed Unicode version.

Python's `unicodedata` and `str` methods are not used: their Unicode version differs between Python versions,
so the same message could get different bodies. `scripts/unicode_tables.py` writes the data file.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNICODE_VERSION = "17.0.0"
DATA_FILE = f"data/unicode-{UNICODE_VERSION}.npz"

CATEGORIES = (
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No",
    "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So",
    "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn",
)  # fmt: skip
"""General categories. Each code point has a `kind`, one number: its low bits are an index into this list."""
CATEGORY = 0x1F
"""Mask of these low bits. The other bits of a kind follow."""
IS_ALNUM = 1 << 5
"""Letter, digit or number of any script: `str.isalnum()` under this Unicode version."""
IS_DECIMAL = 1 << 6
"""Decimal digit of any script."""
IS_SPACE = 1 << 7
"""Blank: `str.isspace()` under this Unicode version."""


@cache
def database() -> dict[str, NDArray[Any]]:
    """The arrays of the data file, by name.

    kind_lengths, kind_values: the kinds of all code points, run-length encoded (category and the bits above)
    combining_lengths, combining_values: the canonical combining classes, encoded in the same way
    folding_codes, nfkc_codes, nfkd_codes: the code points that case folding, NFKC or NFKD changes, ascending;
        without Hangul syllables, which a rule decomposes
    folding_lengths and so on: number of characters of each result; folding_texts and so on: all results, one
        after another
    pairs: uint32[n, 3]: two code points and the one that NFC composes of them; sorted by the second, then
        by the first
    """
    data = files("twinsieve.stages.text").joinpath(DATA_FILE).read_bytes()
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
