"""Keywords: jieba's choice, as weighted features, without jieba's global state."""

from __future__ import annotations

import logging
import math
import pkgutil
import tempfile
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import BandLayout
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint import segmenter
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FLAGS, FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.keywords import Keywords

pytestmark = pytest.mark.usefixtures("dictionary_read_once")

NEWS = [
    "国家卫生健康委员会 通报新型冠状病毒肺炎疫情最新情况 湖北省新增确诊病例 武汉市方舱医院投入使用",
    "教育部要求各地学校延迟开学 利用网络平台停课不停学 教师通过直播给学生上课",
    "中国女排队长朱婷 捐款一百万元支持武汉抗击疫情 郎平教练为武汉加油",
    "the ferry to the island is late and the ferry of the evening is not to be seen by all of you in the harbour",
    "this is one of the reports that 武汉 hospitals have to be ready for patients from all of hubei",
]


def keywords(config: FeatureConfig, text: str) -> dict[str, int]:
    return Keywords(config).keywords(bodies_of([text]), 0)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of jieba.analyse, which we do not use
@pytest.mark.parametrize("text", NEWS)
@pytest.mark.parametrize("flags", [(), ("n", "ns", "nr", "vn", "eng")])
def test_words_and_order_are_those_of_extract_tags(text: str, flags: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        import jieba.analyse

        jieba.dt.tmp_dir = folder
        expected = jieba.analyse.TFIDF().extract_tags(text, topK=8, withWeight=True, allowPOS=flags)
    config = FeatureConfig("keywords", top_k=8, parts_of_speech=flags, weights="tfidf")
    found = keywords(config, text)
    assert sorted(found, key=found.__getitem__, reverse=True) == [word for word, _ in expected]
    heaviest = max(found.values(), default=0)
    for word, weight in expected:
        assert found[word] / heaviest == pytest.approx(weight / expected[0][1], abs=1e-3)


def test_own_dictionary_stop_words_and_folding() -> None:
    text = "雷神山医院 接收病人 雷神山医院 交付 t恤"
    config = FeatureConfig(
        "keywords", dictionary=("雷神山医院 100 nt", "Ｔ恤 9"), own_stop_words=("交付",), weights="tf"
    )
    assert keywords(config, text) == {"雷神山医院": 2, "接收": 1, "病人": 1, "t恤": 1}
    assert "雷神山医院" not in keywords(FeatureConfig("keywords"), text)
    assert keywords(
        FeatureConfig("keywords", dictionary=("雷神山医院 100 nt",), parts_of_speech=("nt",)), text
    )


def test_too_few_keywords_give_no_fingerprint() -> None:
    config = FeatureConfig("keywords", min_features=3, weights="tfidf")
    made = Fingerprinter(config, BandLayout(), DigestConfig()).fingerprints(
        bodies_of([NEWS[0], "的的的的的的的的的的", "短文", "", "武汉加油武汉加油武汉加油"])
    )
    assert made.has_simhash.tolist() == [True, False, False, False, False]
    assert not made.simhashes[1:].any()
    assert made.simhashes[0].all()


def test_a_long_run_of_rare_characters_is_cut_in_linear_time() -> None:
    rare = "".join(chr(0x3400 + i * 7 % 6000) for i in range(30_000))
    words = Keywords(FeatureConfig("keywords")).keywords(bodies_of([rare]), 0)
    assert len(words) <= 10


def test_jieba_keeps_its_state_log_and_temporary_folder_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    segmenter._tokenizer.cache_clear()
    segmenter._tagger.cache_clear()
    import jieba

    known = dict(jieba.dt.FREQ)
    logging.getLogger("jieba").setLevel(logging.DEBUG)
    config = FeatureConfig("keywords", dictionary=("雷神山医院 100 nt",), parts_of_speech=("nt",))
    assert keywords(config, "雷神山医院收治病人")
    assert known == jieba.dt.FREQ
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_flags_of_own_words_survive_another_dictionary_in_between() -> None:
    own = FeatureConfig("keywords", dictionary=("雷神山医院 100 nt",), parts_of_speech=("nt",))
    for config in (own, FeatureConfig("keywords", parts_of_speech=("ns",)), own):
        found = keywords(config, "武汉雷神山医院收治病人")
    assert found == {"雷神山医院": 1}


def test_keyword_simhash_ignores_what_is_no_keyword() -> None:
    config = FeatureConfig("keywords", parts_of_speech=("n", "ns", "nr"), weights="tf")
    maker = Fingerprinter(config, BandLayout(), DigestConfig())
    made = maker.fingerprints(bodies_of(["武汉的医院和护士和病人", "武汉的医院与护士与病人"]))
    assert np.array_equal(made.simhashes[0], made.simhashes[1])
    assert made.has_simhash.all()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_stop_words_and_flags_are_those_of_jieba() -> None:
    from jieba.analyse.tfidf import KeywordExtractor
    from jieba.posseg.prob_emit import P

    assert segmenter.jieba_stop_words() == KeywordExtractor.STOP_WORDS
    assert len(KeywordExtractor.STOP_WORDS) == 31
    lines = (pkgutil.get_data("jieba", "dict.txt") or b"").decode().splitlines()
    assert {line.split()[2] for line in lines} | {flag for _, flag in P} | {"eng"} == FLAGS


@cache
def jieba_idf() -> dict[str, int]:
    lines = (pkgutil.get_data("jieba", "analyse/idf.txt") or b"").decode().splitlines()
    return {
        word.casefold(): max(1, round(float(idf) * 256)) for word, idf in (line.split() for line in lines)
    }


def plain_keywords(config: FeatureConfig, text: str) -> dict[str, int]:
    """The rule of docs/CLASSICS.md, a step at a time; jieba cuts."""
    if config.parts_of_speech or config.drop_parts_of_speech:
        cut = [(word, flag) for word, flag in segmenter._tagger(config.dictionary).cut(text)]
    else:
        cut = [(word, "") for word in segmenter._tokenizer(config.dictionary).cut(text)]
    words = []
    for word, flag in cut:
        if config.parts_of_speech and flag not in config.parts_of_speech:
            continue
        if flag in config.drop_parts_of_speech or len(word.strip()) < config.min_word:
            continue
        if config.stop_words == "jieba" and word in segmenter.jieba_stop_words():
            continue
        if word not in config.own_stop_words:
            words.append(word)
    idf = jieba_idf()
    missing = sorted(idf.values())[len(idf) // 2]
    counts = Counter(words)
    by_idf = {word: counts[word] * idf.get(word, missing) for word in counts}
    value = counts if config.choose == "frequency" else by_idf
    chosen = sorted(counts, key=lambda word: (-value[word], words.index(word)))[: config.top_k]
    levels = sorted({value[word] for word in chosen})
    weights = {}
    for word in sorted(chosen, key=words.index):
        match config.weights:
            case "none":
                weights[word] = 1
            case "tf":
                weights[word] = counts[word]
            case "tfidf":
                weights[word] = by_idf[word]
            case "position":
                weights[word] = sum(4 - 4 * i // len(words) for i, one in enumerate(words) if one == word)
            case "scale5":
                rank, most = levels.index(value[word]), len(levels) - 1
                weights[word] = 1 + math.floor(Fraction(4 * rank, most) + Fraction(1, 2)) if most else 5
    return weights


_PIECES = [
    "美国",
    "51区",
    "雇员",
    "称",
    "内部",
    "有",
    "飞碟",
    "看见",
    "灰色",
    "外星人",
    "the",
    "of",
    "ferry",
    "的",
    "吧",
    "我们",
]
_OWN = ("51区 1000 nz", "9架 1000 m")


@pytest.mark.parametrize(
    ("choose", "weights"), [*product(["tfidf", "frequency"], ["none", "tf", "tfidf", "position", "scale5"])]
)
def test_keywords_equal_the_plain_rule(choose: str, weights: str) -> None:
    @settings(max_examples=examples(12))
    @given(
        words=st.lists(
            st.tuples(st.sampled_from(_PIECES), st.sampled_from(["", " "])), min_size=1, max_size=40
        ),
        top_k=st.integers(1, 12),
        min_word=st.integers(1, 3),
        flags=st.sampled_from([((), ()), ((), ("u", "y", "r")), (("n", "nz", "ns", "v"), ("r",))]),
        stop=st.sampled_from(["jieba", "none"]),
    )
    def check(
        words: list[tuple[str, str]],
        top_k: int,
        min_word: int,
        flags: tuple[tuple[str, ...], tuple[str, ...]],
        stop: str,
    ) -> None:
        config = FeatureConfig(
            "keywords",
            top_k=top_k,
            choose=choose,  # type: ignore[arg-type]
            parts_of_speech=flags[0],
            drop_parts_of_speech=flags[1],
            min_word=min_word,
            dictionary=_OWN,
            stop_words=stop,  # type: ignore[arg-type]
            own_stop_words=("内部",),
            weights=weights,  # type: ignore[arg-type]
        )
        text = "".join(word + blank for word, blank in words).strip()
        assert list(keywords(config, text).items()) == list(plain_keywords(config, text).items())

    check()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"parts_of_speech": ("noun",)}, "'noun' in features is no flag of jieba"),
        ({"drop_parts_of_speech": ("u", "N")}, "'N' in features is no flag of jieba"),
        ({"parts_of_speech": ("n", "v"), "drop_parts_of_speech": ("v",)}, "both name 'v'"),
        ({"min_word": 0}, "features.min_word is 0"),
        ({"choose": "idf"}, "features.choose is 'idf'"),
        ({"stop_words": "english"}, "features.stop_words is 'english'"),
    ],
)
def test_settings_of_keywords_that_cannot_be_met(change: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        FeatureConfig("keywords", **change)  # type: ignore[arg-type]


def test_a_flag_of_the_own_dictionary_may_be_asked_for() -> None:
    config = FeatureConfig("keywords", dictionary=("雷神山医院 100 own",), parts_of_speech=("own",))
    assert keywords(config, "武汉雷神山医院收治病人") == {"雷神山医院": 1}


def test_weights_of_five_levels_are_for_keywords() -> None:
    with pytest.raises(UsageError, match="scale5, which is for keywords, not chars"):
        FeatureConfig("chars", weights="scale5")
