"""Words and dictionaries of the user, normalised as bodies are."""

from __future__ import annotations

from collections.abc import Iterable

from twinsieve.stages.fingerprint.features import entry_of
from twinsieve.stages.text.compatibility import case_folded, nfkc_texts


def folded(words: Iterable[str]) -> list[str]:
    """The words as bodies contain them: NFKC and case-folded.

    >>> folded(["Ｔ恤", "WHO"])
    ['t恤', 'who']
    """
    return nfkc_texts([case_folded(word) for word in nfkc_texts(list(words))])


def dictionary_entries(lines: Iterable[str]) -> list[tuple[str, int | None, str | None]]:
    """(folded word, frequency, flag) of each line of a dictionary.

    raises: UsageError, as `entry_of`

    >>> dictionary_entries(["ＣＴ 120 n", "雷神山"])
    [('ct', 120, 'n'), ('雷神山', None, None)]
    """
    parts = [entry_of(line) for line in lines]
    words = folded(word for word, _, _ in parts)
    return [(word, frequency, flag) for word, (_, frequency, flag) in zip(words, parts, strict=True)]
