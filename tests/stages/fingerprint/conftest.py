"""What tests of fingerprints share: jieba's dictionary, read once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest


@pytest.fixture
def dictionary_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every segmenter gets a copy of its own of what jieba reads from its dictionary.

    Reading it takes about a second, and a segmenter with flags reads it twice.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jieba import Tokenizer
        from jieba.posseg import POSTokenizer
    read, read_tags = Tokenizer.gen_pfdict, POSTokenizer.load_word_tag

    def gen_pfdict(file: Any) -> tuple[dict[str, int], int]:
        if "frequencies" not in _READ:
            _READ["frequencies"] = read(file)
        file.close()
        frequencies, total = _READ["frequencies"]
        return dict(frequencies), total

    def load_word_tag(tagger: Any, file: Any) -> None:
        if "tags" not in _READ:
            read_tags(tagger, file)
            _READ["tags"] = tagger.word_tag_tab
        file.close()
        tagger.word_tag_tab = dict(_READ["tags"])

    monkeypatch.setattr(Tokenizer, "gen_pfdict", staticmethod(gen_pfdict))
    monkeypatch.setattr(POSTokenizer, "load_word_tag", load_word_tag)


_READ: dict[str, Any] = {}
