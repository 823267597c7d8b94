"""One number in several spellings, and what looks like a spelling and is another number; kernel and plain list agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.differ.test_difference_traps import both
from tests.stages.differ.test_differences import FULL, MICROBLOG, TITLES
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.rules import Rule


def either_way(one: str, other: str, differences: Differences) -> set[Rule]:
    return {both(one, other, differences), both(other, one, differences)}


def stay_one(one: str, other: str, differences: Differences = FULL) -> bool:
    return either_way(one, other, differences) == {Rule.NONE}


def come_apart(one: str, other: str, differences: Differences = FULL) -> bool:
    return Rule.NONE not in either_way(one, other, differences)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Open from 3 May - 9 June in the old town hall", "Open from 3 May -9 June in the old town hall"),
        ("Open from 3 Sept. - 9 Oct. in the old town hall", "Open from 3 Sept.-9 Oct. in the old town hall"),
        ("La feria abre 12 feb. - 15 mar. en la plaza mayor", "La feria abre 12 feb. -15 mar. en la plaza mayor"),
        ("Выставка открыта 5 мая - 20 июня в музее города", "Выставка открыта 5 мая -20 июня в музее города"),
        ("โปรโมชั่นพิเศษ 29 มี.ค. - 25 เม.ย. ทุกสาขา", "โปรโมชั่นพิเศษ 29 มี.ค. -25 เม.ย. ทุกสาขา"),
        ("開催期間：8月3日 - 9月7日、入場は無料です", "開催期間：8月3日 -9月7日、入場は無料です"),
        ("营业时间：9点 - 18点，节假日照常开放", "营业时间：9点 -18点，节假日照常开放"),
        ("See pages 12 - 25 of the printed programme", "See pages 12 -25 of the printed programme"),
        ("Season 4 – 2 discs in one box, as good as new", "Season 4 –2 discs in one box, as good as new"),
        ("Entry: - 12 euro for adults - 7 euro for kids", "Entry: -12 euro for adults -7 euro for kids"),
        ("入場料：- 500 円 大人 - 200 円 子供 です", "入場料：-500 円 大人 -200 円 子供 です"),
        ("Pack for the trip: - 2 shirts - 3 towels and soap", "Pack for the trip: -2 shirts -3 towels and soap"),
    ],
)  # fmt: skip
def test_a_dash_of_a_range_or_a_list_is_no_minus(one: str, other: str) -> None:
    assert stay_one(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is -5 °C outside the house this morning", "It is 5 °C outside the house this morning"),
        ("Tonight -8 degrees in the whole valley again", "Tonight 8 degrees in the whole valley again"),
        ("Heute Nacht -8 Grad im ganzen Tal gemessen", "Heute Nacht 8 Grad im ganzen Tal gemessen"),
        ("今晚气温 -8 度，请大家注意保暖防滑", "今晚气温 8 度，请大家注意保暖防滑"),
        ("今朝の気温は -3 度でした、寒いですね", "今朝の気温は 3 度でした、寒いですね"),
        ("Temperature in Oslo -5, feels quite cold", "Temperature in Oslo 5, feels quite cold"),
        ("Сегодня ночью -7 градусов по всей области", "Сегодня ночью 7 градусов по всей области"),
        ("Shares of the maker -5 % after the report", "Shares of the maker 5 % after the report"),
        ("The index lost ground, -120 points at noon", "The index lost ground, 120 points at noon"),
        ("Account balance: -50 euro on the first day", "Account balance: 50 euro on the first day"),
        ("It will fall from 3 to -5 by the weekend", "It will fall from 3 to 5 by the weekend"),
    ],
)  # fmt: skip
def test_a_minus_is_a_minus_before_what_can_be_below_zero(one: str, other: str) -> None:
    assert come_apart(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Harga Rp75.000 untuk satu paket nasi goreng", "Harga Rp75000 untuk satu paket nasi goreng"),
        ("Der Wagen kostet 12.499,00 Euro beim Händler", "Der Wagen kostet 12499 Euro beim Händler"),
        ("Giá chỉ 250.000 đồng cho một chiếc áo mới", "Giá chỉ 250000 đồng cho một chiếc áo mới"),
        ("O carro custa R$ 1.234.567 na loja do centro", "O carro custa R$ 1234567 na loja do centro"),
        ("Bu telefon yalnız 14.999 lira bu hafta sonu", "Bu telefon yalnız 14999 lira bu hafta sonu"),
        ("Le vélo coûte 1 299,00 euros en magasin", "Le vélo coûte 1299 euros en magasin"),
        ("Le vélo coûte 1 299,00 euros en magasin", "Le vélo coûte 1.299,00 euros en magasin"),
        ("Das Rad kostet 1'299.00 Franken im Laden", "Das Rad kostet 1.299,00 Franken im Laden"),
        ("The house costs ₹12,00,000 in this part of town", "The house costs ₹1200000 in this part of town"),
        ("В городе живет 1 250 000 человек на сегодня", "В городе живет 1250000 человек на сегодня"),
        ("El estadio tiene 45.000 asientos para el público", "El estadio tiene 45 mil asientos para el público"),
        ("The signal is 3.250 volts at the second pin", "The signal is 3.25 volts at the second pin"),
    ],
)  # fmt: skip
def test_thousands_are_one_number_in_all_spellings(one: str, other: str) -> None:
    assert stay_one(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Harga Rp75.000 untuk satu paket nasi goreng", "Harga Rp76.000 untuk satu paket nasi goreng"),
        ("Harga Rp75.000 untuk satu paket nasi goreng", "Harga Rp7500 untuk satu paket nasi goreng"),
        ("Der Wagen kostet 12.499,00 Euro beim Händler", "Der Wagen kostet 12.499,50 Euro beim Händler"),
        ("Der Wagen kostet 12.499,00 Euro beim Händler", "Der Wagen kostet 1249900 Euro beim Händler"),
        ("The server is 10.100.200.101 since the move", "The server is 10.100.200.102 since the move"),
        ("Install version 1.234.567 on the machine", "Install version 1.234.568 on the machine"),
        ("The signal is 0.325 volts at the second pin", "The signal is 325 volts at the second pin"),
        ("Le vélo coûte 1 299,00 euros en magasin", "Le vélo coûte 1 399,00 euros en magasin"),
        ("Le vélo coûte 1 299,00 euros en magasin", "Le vélo coûte 299 euros cette semaine"),
        ("The parcel weighs 2.50 kilos with the box", "The parcel weighs 250 kilos with the box"),
    ],
)
def test_points_do_not_join_other_numbers(one: str, other: str) -> None:
    assert come_apart(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("会议将于2023年4月7日举行，欢迎大家参加", "会议将于2023年04月07日举行，欢迎大家参加"),
        ("展览将于9月2日开幕，欢迎各界朋友参观", "展览将于9/2开幕，欢迎各界朋友参观"),
        ("展览将于9月2日开幕，欢迎各界朋友参观", "展览将于09/02开幕，欢迎各界朋友参观"),
        ("展览将于9月22日开幕，欢迎各界朋友参观", "展览将于9.22开幕，欢迎各界朋友参观"),
        ("ライブは 9.22 に渋谷で開催されます、ぜひ", "ライブは 9/22 に渋谷で開催されます、ぜひ"),
        ("ライブは 9月22日 に渋谷で開催されます", "ライブは 9/22 に渋谷で開催されます"),
        ("The market opens on 3/5 behind the station", "The market opens on 03/05 behind the station"),
        ("The market opens on March 5 behind the station", "The market opens on March 05 behind the station"),
        ("列车将于7时5分到达本站请旅客注意", "列车将于07时05分到达本站请旅客注意"),
        ("比赛定于三月五日举行欢迎前来观看", "比赛定于3月5日举行欢迎前来观看"),
    ],
)
@pytest.mark.parametrize("differences", [FULL, MICROBLOG, TITLES])
def test_a_date_is_one_date_in_two_forms(one: str, other: str, differences: Differences) -> None:
    assert stay_one(one, other, differences)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("会议将于2023年4月7日举行，欢迎大家参加", "会议将于2023年04月08日举行，欢迎大家参加"),
        ("展览将于9月2日开幕，欢迎各界朋友参观", "展览将于9/3开幕，欢迎各界朋友参观"),
        ("展览将于9月22日开幕，欢迎各界朋友参观", "展览将于9.23开幕，欢迎各界朋友参观"),
        ("全程约 9.22 公里的山路要走很久才到", "全程约 9.2 公里的山路要走很久才到"),
        ("全程约 1.5 公里的山路要走很久才到", "全程约 1.05 公里的山路要走很久才到"),
    ],
)
@pytest.mark.parametrize("differences", [FULL, TITLES])
def test_other_dates_come_apart(one: str, other: str, differences: Differences) -> None:
    assert come_apart(one, other, differences)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("这个结局我真的没有想到哈2333", "这个结局我真的没有想到哈23333333"),
        ("这波操作我给满分，太强了6666", "这波操作我给满分，太强了66666666，再来一次"),
        ("主播今天状态真好啊666", "主播今天状态真好啊"),
        ("看到最后真的哭了啊 555", "看到最后真的哭了啊 5555555"),
        ("วันนี้ตลกมากจริงๆ555", "วันนี้ตลกมากจริงๆ555555"),
        ("ลืมกระเป๋าไว้ที่บ้านอีกแล้ว 5555 เศร้าจัง", "ลืมกระเป๋าไว้ที่บ้านอีกแล้ว 555 เศร้าจัง"),
        ("I love this old harbour <3 we will come again", "I love this old harbour we will come again"),
        ("I love this old harbour <3", "I love this old harbour <3333"),
        ("ไม่มีเงินแล้วเดือนนี้ ๕๕๕", "ไม่มีเงินแล้วเดือนนี้ ๕๕๕๕๕"),
        ("最高のライブでした、ありがとう 888", "最高のライブでした、ありがとう 88888888"),
        ("最高の演奏でした8888、また来ます", "最高の演奏でした88888888、また来ます"),
        ("2333 这个结局我真的没有想到", "233333 这个结局我真的没有想到"),
        ("老师讲得太清楚了777", "老师讲得太清楚了77777"),
    ],
)
@pytest.mark.parametrize("differences", [FULL, MICROBLOG])
def test_laughter_in_digits_is_no_number(one: str, other: str, differences: Differences) -> None:
    assert stay_one(one, other, differences)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("这款手机今天只卖888元，数量有限", "这款手机今天只卖8888元，数量有限"),
        ("这款手机今天只卖 888 元，数量有限", "这款手机今天只卖 8888 元，数量有限"),
        ("请大家到三楼的房间666", "请大家到三楼的房间6666"),
        ("如果有问题请拨打555", "如果有问题请拨打5555"),
        ("In an emergency please call 555", "In an emergency please call 5555"),
        ("We meet tonight in room 666", "We meet tonight in room 6666"),
        ("The new flight of the line is number 777", "The new flight of the line is number 7777"),
        ("ราคาพิเศษวันนี้เท่านั้น 555 บาท", "ราคาพิเศษวันนี้เท่านั้น 5555 บาท"),
        ("ผู้เข้าร่วมงานวันนี้ 555 คน", "ผู้เข้าร่วมงานวันนี้ 5555 คน"),
        ("พักอยู่ที่โรงแรมใหม่ห้อง 555", "พักอยู่ที่โรงแรมใหม่ห้อง 5555"),
        ("新作の価格は税込888", "新作の価格は税込8888"),
        ("本市今日新增确诊病例 333 例", "本市今日新增确诊病例 3333 例"),
        ("今天收盘价格是222", "今天收盘价格是2222"),
        ("中奖号码是第666", "中奖号码是第6666"),
        ("Boats of <3 metres may enter the old harbour", "Boats of <33 metres may enter the old harbour"),
    ],
)
@pytest.mark.parametrize("differences", [FULL, MICROBLOG])
def test_repeated_digits_that_measure_stay_numbers(one: str, other: str, differences: Differences) -> None:
    assert come_apart(one, other, differences)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Italian sailor saved from the sinking ferry off Malta", "11 Italian sailors saved from the sinking ferry off Malta"),
        ("Tourist rescued from the flooded river in Nepal", "6 tourists rescued from the flooded river in Nepal"),
        ("La lluvia dejó tres puentes cerrados por todo el valle", "La lluvia dejó 48 puentes cerrados por todo el valle"),
        ("Guardamos un minuto de silencio en la plaza", "Guardamos 5 minutos de silencio en la plaza"),
        ("Three more suspected cases sent home today", "Three suspected cases sent home today"),
        ("Another 5 miners found alive in the shaft", "5 miners found alive in the shaft"),
        ("Weitere 5 Bergleute lebend gefunden im Schacht", "5 Bergleute lebend gefunden im Schacht"),
        ("Another two hotels closed in the centre today", "Two hotels closed in the centre today"),
        ("今天又有3人获救送往医院治疗", "今天有3人获救送往医院治疗"),
        ("A worker died when the wall fell down", "2 workers died when the wall fell down"),
        ("Ein Arbeiter stirbt beim Einsturz der Mauer", "3 Arbeiter sterben beim Einsturz der Mauer"),
        ("Один рабочий погиб при обрушении стены", "5 рабочих погибли при обрушении стены"),
        ("Satu orang tewas dalam kecelakaan di tol pagi ini", "7 orang tewas dalam kecelakaan di tol pagi ini"),
        ("Dua orang tewas dalam kecelakaan di tol pagi ini", "7 orang tewas dalam kecelakaan di tol pagi ini"),
        ("Ba người chết trong vụ tai nạn sáng nay ở Huế", "9 người chết trong vụ tai nạn sáng nay ở Huế"),
        ("Dün akşam iki kişi kazada yaralandı, yol kapandı", "Dün akşam 8 kişi kazada yaralandı, yol kapandı"),
        ("사고로 다섯 명이 다쳤다고 경찰이 밝혔다", "사고로 8 명이 다쳤다고 경찰이 밝혔다"),
        ("Two hundred people came to the old harbour", "300 people came to the old harbour"),
        ("A hundred people came to the old harbour", "300 people came to the old harbour"),
        ("Call 138xxxx1234 for the boat tour tomorrow", "Call 138xxxx1235 for the boat tour tomorrow"),
        ("The first meeting of the new council is tonight", "The 2nd meeting of the new council is tonight"),
        ("Второй матч серии пройдет завтра вечером в Казани", "3 матч серии пройдет завтра вечером в Казани"),
    ],
)  # fmt: skip
def test_how_many_counts_however_it_is_written(one: str, other: str) -> None:
    assert come_apart(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Two hundred people came to the old harbour", "200 people came to the old harbour"),
        ("A hundred people came to the old harbour", "100 people came to the old harbour"),
        ("One million people came to the old harbour", "1,000,000 people came to the old harbour"),
        ("Twenty-one people came to the old harbour", "21 people came to the old harbour"),
        ("Two hundred and five came to the old harbour", "205 came to the old harbour"),
        ("Treinta y cinco barcos en el puerto viejo", "35 barcos en el puerto viejo"),
        ("Dua ratus orang datang ke pelabuhan lama", "200 orang datang ke pelabuhan lama"),
        ("Hai trăm người đã đến bến cảng cũ hôm nay", "200 người đã đến bến cảng cũ hôm nay"),
        ("İstanbul limanına iki yüz kişi geldi bugün", "İstanbul limanına 200 kişi geldi bugün"),
        ("스무 명이 오래된 항구에 왔다고 말했다", "20 명이 오래된 항구에 왔다고 말했다"),
        ("Двадцать пять человек пришли в старую гавань", "25 человек пришли в старую гавань"),
        ("The first boat in the old harbour is here", "The 1st boat in the old harbour is here"),
        ("第一届港口音乐节将于周末举行", "第1届港口音乐节将于周末举行"),
        ("El primero de los barcos llegó al puerto", "El 1º de los barcos llegó al puerto"),
        ("Call 138xxxx1234 for the boat tour tomorrow", "Call 138****1234 for the boat tour tomorrow"),
        ("Twelve million boats came to the harbour", "12 million boats came to the harbour"),
    ],
)  # fmt: skip
def test_a_number_in_words_is_the_number_in_digits(one: str, other: str) -> None:
    assert stay_one(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Our walk through the old harbour, part 2", "Our walk through the old harbour, final part"),
        ("Our walk through the old harbour, part 2", "Our walk through the old harbour"),
        ("Our walk through the old harbour (3)", "Our walk through the old harbour"),
        ("Our walk through the old harbour S01E02", "Our walk through the old harbour S01E03"),
        ("足利の町を歩く 第2回 ぜひ見てください", "足利の町を歩く 最終回 ぜひ見てください"),
        ("古城游记第3集：城墙与老街的故事", "古城游记最终集：城墙与老街的故事"),
        ("La historia del puerto viejo, capítulo 4", "La historia del puerto viejo, capítulo final"),
        ("Die Geschichte des alten Hafens, Teil 3", "Die Geschichte des alten Hafens, letzter Teil"),
    ],
)
def test_parts_of_a_series_come_apart(one: str, other: str) -> None:
    assert come_apart(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I'm at Old Harbour Market (Bergen, Norway) w/ 5 others", "I'm at Old Harbour Market (Bergen, Norway) w/ 17 others"),
        ("Boats in the old harbour at night 12 likes 3 shares", "Boats in the old harbour at night 48 likes 9 shares"),
        ("老港口的夜景真的很美 阅读 120 评论 5", "老港口的夜景真的很美 阅读 980 评论 31"),
        ("Лодки в старой гавани ночью 12 лайков 3 репоста", "Лодки в старой гавани ночью 48 лайков 9 репостов"),
        ("We found one boat in the old harbour today", "We found a boat in the old harbour today"),
    ],
)  # fmt: skip
def test_counts_of_readers_are_no_difference(one: str, other: str) -> None:
    assert stay_one(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Storm kills the mayor and 5 others in the harbour",
            "Storm kills the mayor and 17 others in the harbour",
        ),
        ("The clip of the old harbour now has 1000 views", "The clip of the old harbour now has 5000 views"),
    ],
)
def test_counts_in_a_sentence_are_a_difference(one: str, other: str) -> None:
    assert come_apart(one, other)


_PIECES = st.sampled_from(
    [
        "2333",
        "6666",
        "555",
        "5555",
        "888",
        "<3",
        "<33",
        "-25",
        "-4",
        "-50",
        "25",
        "4",
        "50",
        "29",
        "1",
        "299",
        "299,00",
        "59.000",
        "59000",
        "1.299,00",
        "1299",
        "1,00,000",
        "9.22",
        "9/22",
        "03",
        "05",
        "3",
        "-3c",
        "-$5",
        "$5",
        "5€",
        "-5€",
        "1.234.567",
        "12",
        "mar",
        "monday",
        "c",
        "grad",
        "degrees",
        "balance",
        "points",
        "euro",
        "w",
        "others",
        "likes",
        "shares",
        "part",
        "teil",
        "final",
        "letzter",
        "more",
        "another",
        "one",
        "un",
        "three",
        "first",
        "hundred",
        "million",
        "twenty",
        "and",
        "y",
        "tourist",
        "tourists",
        "to",
        "the",
        "adults",
        "月",
        "日",
        "年",
        "点",
        "度",
        "第",
        "回",
        "集",
        "最終",
        "元",
        "บาท",
        "คน",
        "ห้อง",
        "มีค",
        "阅读",
        "评论",
        "又",
        "有",
        "人",
        "今天",
        "哈",
        "是",
        "万",
        "三",
        "十",
        "房间",
        "ก",
    ]
)
_TEXTS = st.lists(_PIECES, min_size=1, max_size=10)


@given(_TEXTS, st.lists(st.tuples(st.integers(0, 10), st.integers(0, 2), st.lists(_PIECES, max_size=2)), max_size=3),
       st.sampled_from(["", " "]), st.sampled_from([FULL, MICROBLOG, TITLES]))  # fmt: skip
@settings(max_examples=examples(800))
def test_kernel_and_plain_list_agree_on_rows_of_numbers(
    pieces: list[str], edits: list[tuple[int, int, list[str]]], glue: str, differences: Differences
) -> None:
    other = list(pieces)
    for at, size, new in edits:
        at %= len(other) + 1
        other[at : at + size] = new
    both(glue.join(pieces), glue.join(other), differences)
    both("港口 " + " ".join(pieces), "港口 " + glue.join(other), differences)
