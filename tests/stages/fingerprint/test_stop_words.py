"""Learnt stop words are those that a plain count finds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.stop_words import train_stop_words

pytestmark = pytest.mark.usefixtures("dictionary_read_once")

_WORDS = ("武汉", "医院", "今天", "ferry", "the", "的", "3")


def test_words_in_a_share_of_the_texts_equal_a_plain_count() -> None:
    @settings(max_examples=30)
    @given(
        texts=st.lists(st.lists(st.sampled_from(_WORDS), min_size=8, max_size=12), min_size=1, max_size=30),
        percent=st.integers(1, 100),
        min_word=st.sampled_from([1, 2]),
    )
    def check(texts: list[list[str]], percent: int, min_word: int) -> None:
        config = FeatureConfig("keywords", min_word=min_word, own_stop_words=("武汉",))
        counts = Counter(word for words in texts for word in set(words) if len(word) >= min_word)
        expected = [word for word in counts if counts[word] * 100 >= percent * len(texts)]
        expected.sort(key=lambda word: (-counts[word], word))
        batches = [bodies_of([" ".join(words)]) for words in texts]
        assert train_stop_words(batches, config, percent / 100, 1) == expected

    check()


def test_texts_of_the_exact_stage_teach_nothing() -> None:
    with pytest.raises(UsageError, match=r"1 texts to learn stop words from, but 2 are needed"):
        train_stop_words(
            [bodies_of(["武汉今天晴", "武汉的医院今天收治病人"])], FeatureConfig("keywords"), 0.5, 2
        )
