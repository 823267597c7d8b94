"""The Unicode database of the text stage, frozen as data of the package.

The interpreter's own `unicodedata` and `str` methods follow another Unicode version in every Python, so that
the same message would get another body there. `scripts/unicode_tables.py` writes the file.
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
"""General categories; the low bits of a kind are a place in this list."""
CATEGORY = 0x1F
IS_ALNUM = 1 << 5
"""Letter, digit or number of any script: what `str.isalnum()` says under this Unicode version."""
IS_DECIMAL = 1 << 6
"""Decimal digit of any script."""
IS_SPACE = 1 << 7
"""What `str.isspace()` says."""


@cache
def database() -> dict[str, NDArray[Any]]:
    """The arrays of the data file, by name.

    kind_lengths, kind_values: runs of equal kinds over all code points: category and the bits above
    combining_lengths, combining_values: the same of canonical combining classes
    folding_, nfkc_, nfkd_codes, _lengths, _texts: code points that case folding, NFKC or NFKD change, in
        ascending order, how many characters they become, and all of those one after another;
        Hangul syllables, which are taken apart by rule, are left out
    pairs: uint32[n, 3], first, second, and the character that NFC makes of the two; by second, then first
    """
    data = files("twinsieve.stages.text").joinpath(DATA_FILE).read_bytes()
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
