"""Cuts bodies into words with jieba, without jieba's global state, log and cache file."""

from __future__ import annotations

import ast
import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from twinsieve.stages.contract import Bodies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.dictionary import dictionary_entries, folded
from twinsieve.stages.fingerprint.features import FeatureConfig

MAX_RUN_LENGTH = 500
"""Greatest number of characters that jieba gets in one piece, because its hidden Markov model takes quadratic
time."""


class Segmenter:
    """Cuts bodies into words. The dictionary is loaded at the first use, which takes half a second.

    config: only dictionary, parts_of_speech, drop_parts_of_speech, min_word and the stop words are used
    """

    def __init__(self, config: FeatureConfig) -> None:
        self._dictionary = config.dictionary
        self._flags = frozenset(config.parts_of_speech)
        self._dropped_flags = frozenset(config.drop_parts_of_speech)
        self._min_word = config.min_word
        self._own_stop_words = config.own_stop_words
        self._leaves_out_english = config.stop_words == "jieba"

    def words(self, bodies: Bodies, row: int) -> list[str]:
        """The words of one body that may be keywords, in order, with repeats.

        jieba gets the body with a blank wherever `word_starts` is set. So punctuation and blanks of the
        source text separate words here too. As in jieba's own keywords, words of fewer than min_word
        characters and stop words are left out.
        """
        least, stop_words = self._min_word, self._stop_words
        text = _with_blanks(bodies, row)
        return [word for word in self._cut(text) if len(word.strip()) >= least and word not in stop_words]

    @cached_property
    def _stop_words(self) -> frozenset[str]:
        own = frozenset(folded(self._own_stop_words))
        return own | jieba_stop_words() if self._leaves_out_english else own

    @property
    def _tags(self) -> bool:
        """Whether words need a part of speech; jieba cuts some texts differently when it finds them."""
        return bool(self._flags or self._dropped_flags)

    def _cut(self, text: str) -> Iterator[str]:
        if not self._tags:
            yield from self._jieba.cut(text)
            return
        for word, flag in self._jieba.cut(text):
            if flag not in self._dropped_flags and (flag in self._flags or not self._flags):
                yield word

    @cached_property
    def _jieba(self) -> Any:
        # Cached: to look the tokenizer up for each body would hash the whole dictionary each time.
        return _tagger(self._dictionary) if self._tags else _tokenizer(self._dictionary)


@cache
def jieba_stop_words() -> frozenset[str]:
    """The words that jieba's `extract_tags` leaves out: `jieba.analyse.tfidf.KeywordExtractor.STOP_WORDS`.

    Read from the source file: an import of jieba.analyse takes half a second and loads a second IDF table.
    raises: UsageError if jieba's source has no such table
    """
    _import_jieba()
    source = pkgutil.get_data("jieba", "analyse/tfidf.py") or b""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STOP_WORDS":
            words = [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
            return frozenset(map(str, words))
    raise UsageError("jieba has no table of stop words; install it again, or set features.stop_words: none")


def _with_blanks(bodies: Bodies, row: int) -> str:
    start, end = bodies.starts[row], bodies.starts[row + 1]
    text = bodies.text(row)
    cuts = np.flatnonzero(bodies.word_starts[start:end]).tolist()
    runs = []
    for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True):
        runs += [text[i : min(i + MAX_RUN_LENGTH, b)] for i in range(a, b, MAX_RUN_LENGTH)]
    return " ".join(runs)


def _import_jieba() -> Any:
    # jieba's import causes warnings about its regular expressions and its use of pkg_resources.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    return jieba


def _new_tokenizer(dictionary: tuple[str, ...]) -> Any:
    tokenizer = _import_jieba().Tokenizer()
    # This is Tokenizer.initialize without its log to stderr and without its cache file. That file is in a
    # shared temporary folder, and jieba would read it even if another user wrote it.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    for entry in dictionary_entries(dictionary):
        tokenizer.add_word(*entry)
    return tokenizer


_tokenizer = lru_cache(maxsize=1)(_new_tokenizer)


@lru_cache(maxsize=1)
def _tagger(dictionary: tuple[str, ...]) -> Any:
    _import_jieba()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jieba.posseg import POSTokenizer
    # It needs its own tokenizer, because it removes the flags of the user's words from the tokenizer it gets.
    return POSTokenizer(_new_tokenizer(dictionary))
