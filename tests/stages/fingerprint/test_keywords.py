"""Keywords: jieba's choice, as weighted features, without jieba's global state."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import BandLayout
from twinsieve.stages.fingerprint.digest import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.idf import train_idf
from twinsieve.stages.fingerprint.keywords import Keywords

pytestmark = pytest.mark.usefixtures("dictionary_read_once")

NEWS = [
    "国家卫生健康委员会 通报新型冠状病毒肺炎疫情最新情况 湖北省新增确诊病例 武汉市方舱医院投入使用",
    "教育部要求各地学校延迟开学 利用网络平台停课不停学 教师通过直播给学生上课",
    "中国女排队长朱婷 捐款一百万元支持武汉抗击疫情 郎平教练为武汉加油",
]
# jieba's own list, which extract_tags leaves out and we do only where it is given.
ENGLISH = ("the", "of", "is", "and", "to", "in", "that", "we", "for", "an", "are", "by", "be", "as", "on")


def keywords(config: FeatureConfig, text: str) -> dict[str, int]:
    return Keywords(config, 1).keywords(bodies_of([text]), 0)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of jieba.analyse, which we do not use
@pytest.mark.parametrize("text", NEWS)
@pytest.mark.parametrize("flags", [(), ("n", "ns", "nr", "vn")])
def test_words_and_order_are_those_of_extract_tags(text: str, flags: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        import jieba.analyse

        jieba.dt.tmp_dir = folder
        expected = jieba.analyse.TFIDF().extract_tags(text, topK=8, withWeight=True, allowPOS=flags)
    config = FeatureConfig("keywords", top_k=8, parts_of_speech=flags, stop_words=ENGLISH, weights="tfidf")
    found = keywords(config, text)
    assert list(found) == [word for word, _ in expected]
    heaviest = max(found.values())
    for word, weight in expected:
        assert found[word] / heaviest == pytest.approx(weight / expected[0][1], abs=1e-3)


def test_own_dictionary_stop_words_and_folding() -> None:
    text = "雷神山医院 接收病人 雷神山医院 交付 t恤"
    config = FeatureConfig(
        "keywords", dictionary=("雷神山医院 100 nt", "Ｔ恤 9"), stop_words=("交付",), weights="tf"
    )
    assert keywords(config, text) == {"雷神山医院": 2, "接收": 1, "病人": 1, "t恤": 1}
    assert "雷神山医院" not in keywords(FeatureConfig("keywords"), text)
    assert keywords(
        FeatureConfig("keywords", dictionary=("雷神山医院 100 nt",), parts_of_speech=("nt",)), text
    )


def test_weights_of_keywords() -> None:
    text = "武汉加油 武汉医院 医生护士"
    idf = (("武汉", 2.0), ("加油", 1.5), ("医院", 1.0), ("医生", 3.0), ("护士", 1.0))
    words = ["武汉", "加油", "武汉", "医院", "医生", "护士"]

    def found(weights: str) -> dict[str, int]:
        return keywords(FeatureConfig("keywords", top_k=3, weights=weights, idf=idf), text)  # type: ignore[arg-type]

    assert list(found("tfidf").items()) == [("武汉", 1024), ("医生", 768), ("加油", 384)]
    assert found("none") == {"武汉": 1, "医生": 1, "加油": 1}
    assert found("tf") == {"武汉": 2, "医生": 1, "加油": 1}
    quarters = [4 - 4 * i // len(words) for i in range(len(words))]
    assert found("position") == {"武汉": quarters[0] + quarters[2], "医生": quarters[4], "加油": quarters[1]}


def test_too_few_keywords_give_no_fingerprint() -> None:
    config = FeatureConfig("keywords", min_features=3, weights="tfidf")
    made = Fingerprinter(config, BandLayout(), DigestConfig(seed=3)).fingerprints(
        bodies_of([NEWS[0], "的的的的的的的的的的", "短文", "", "武汉加油武汉加油武汉加油"])
    )
    assert made.has_simhash.tolist() == [True, False, False, False, False]
    assert not made.simhashes[1:].any()
    assert made.simhashes[0].all()


def test_a_long_run_of_rare_characters_is_cut_in_linear_time() -> None:
    rare = "".join(chr(0x3400 + i * 7 % 6000) for i in range(30_000))
    words = Keywords(FeatureConfig("keywords"), 1).keywords(bodies_of([rare]), 0)
    assert len(words) <= 10


def test_jieba_keeps_its_state_log_and_temporary_folder_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from twinsieve.stages.fingerprint import segmenter

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


def test_trained_idf_of_words_lowers_what_every_text_has() -> None:
    texts = [text + " 武汉" for text in NEWS]
    pairs = dict(train_idf([bodies_of(texts)], FeatureConfig("keywords"), min_documents=1))
    assert pairs["武汉"] == 1.0
    assert pairs["朱婷"] > pairs["疫情"] > pairs["武汉"]


def test_keyword_simhash_ignores_what_is_no_keyword() -> None:
    config = FeatureConfig("keywords", parts_of_speech=("n", "ns", "nr"), weights="tf")
    maker = Fingerprinter(config, BandLayout(), DigestConfig(seed=3))
    made = maker.fingerprints(bodies_of(["武汉的医院和护士和病人", "武汉的医院与护士与病人"]))
    assert np.array_equal(made.simhashes[0], made.simhashes[1])
    assert made.has_simhash.all()
