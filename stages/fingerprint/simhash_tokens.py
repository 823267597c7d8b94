"""Tokens of a body for the SimHash: characters of unspaced scripts, and words of spaced scripts.

The hash of a token depends only on its code points. So a word of one character has the same hash as that
character as a token.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.intrinsics import mix64
from twinsieve.stages.kernel import kernel
from twinsieve.stages.text.scripts import is_unspaced

MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
"""Base of the polynomial hashes: over the characters of a word, and over the tokens of a feature."""


@kernel
def fill_tokens(
    chars: NDArray[np.uint32],
    word_starts: NDArray[np.uint8],
    start: int,
    end: int,
    by_words: bool,
    seed: np.uint64,
    tokens: NDArray[np.uint64],
) -> int:
    """Write the hashes of the tokens of chars[start:end] to `tokens`. returns: number of tokens

    by_words: if False, each character is a token. Otherwise a word ends before a character with word_starts
        set, or before a character of an unspaced script
    tokens: uint64[…], room for end - start hashes
    """
    count = 0
    word = np.uint64(0)
    in_word = False
    for i in range(start, end):
        char = chars[i]
        alone = not by_words or is_unspaced(int(char))
        if in_word and (alone or word_starts[i] != 0):
            tokens[count] = mix64(word + seed)
            count += 1
            in_word = False
        if alone:
            tokens[count] = mix64(np.uint64(char) + seed)
            count += 1
        elif in_word:
            word = word * MULTIPLIER + np.uint64(char)
        else:
            word = np.uint64(char)
            in_word = True
    if in_word:
        tokens[count] = mix64(word + seed)
        count += 1
    return count


@kernel(callee=True)
def fill_runs(
    tokens: NDArray[np.uint64], count: int, width: int, features: NDArray[np.uint64], offset: int
) -> int:
    """Write the hashes of all runs to features[offset:]. returns: number of runs

    A run is a sequence of `width` consecutive tokens. Its hash is a polynomial in MULTIPLIER modulo 2^64; the
    token hashes are the coefficients, and the first token has the highest power. The time is linear for any
    width.
    """
    runs = count - width + 1
    if runs <= 0:
        return 0
    if width == 1:
        for i in range(runs):
            features[offset + i] = tokens[i]
        return runs
    if width == 2:
        for i in range(runs):
            features[offset + i] = tokens[i] * MULTIPLIER + tokens[i + 1]
        return runs
    highest = np.uint64(1)
    run = np.uint64(0)
    for i in range(width):
        if i > 0:
            highest *= MULTIPLIER
        run = run * MULTIPLIER + tokens[i]
    features[offset] = run
    for i in range(1, runs):
        run = (run - tokens[i - 1] * highest) * MULTIPLIER + tokens[i + width - 1]
        features[offset + i] = run
    return runs


@kernel(allocates=True)
def term_hashes(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    word_starts: NDArray[np.uint8],
    by_words: bool,
    seed: np.uint64,
    hashes: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> None:
    """Write the hash of each row, taken as one run of all its tokens, and its number of tokens.

    So a feature given as text (of an IDF table) has the same hash as this feature in a body.
    """
    longest = 0
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    tokens = np.empty(longest, np.uint64)
    for row in range(len(starts) - 1):
        counts[row] = fill_tokens(chars, word_starts, starts[row], starts[row + 1], by_words, seed, tokens)
        if counts[row] > 0:
            fill_runs(tokens, counts[row], counts[row], hashes, row)
