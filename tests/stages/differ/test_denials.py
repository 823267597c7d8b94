"""What denies another text is kept apart from it, in each language; what only looks like a denial is not."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, GUARDS, MICROBLOG, reason_of
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.difference import difference
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tokens import Tokens, find_tokens
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.differ.workspace import new_differing
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

DENIED = [
    # Japanese: the alignment cuts the denial in two
    ("会社は昨日の事故の責任を認めました。遺族が話した。", "会社は昨日の事故の責任を認めませんでした。遺族が話した。"),
    ("この店のラーメンは本当に旨い。また行きたい。", "この店のラーメンは本当に旨くない。また行きたい。"),
    ("部屋は清潔で、朝食は美味しかったです。", "部屋は清潔で、朝食は美味しくなかったです。"),
    ("彼は先週その会議に出た。上司もそう話している。", "彼は先週その会議に出なかった。上司もそう話している。"),
    ("彼は昨日の夜も薬を飲んだ。母もそう話している。", "彼は昨日の夜も薬を飲まなかった。母もそう話している。"),
    ("この公園は夜でも静かでした。また散歩したい。", "この公園は夜でも静かではありませんでした。また散歩したい。"),
    ("私はこの町で生まれた人間だ。誰でも知っている。", "私はこの町で生まれた人間ではない。誰でも知っている。"),
    ("駅の前に新しい店がある。若い客が多い。", "駅の前に新しい店がない。若い客が多い。"),
    ("彼女は英語を話せる。会社で役に立つ。", "彼女は英語を話せない。会社で役に立つ。"),
    ("首相は辞任すると記者に答えた。", "首相は辞任せずと記者に答えた。"),
    ("この薬は子供に効きます。医師に相談を。", "この薬は子供に効きません。医師に相談を。"),
    ("弟は肉を食べる人だ。家族も皆そうだ。", "弟は肉を食べない人だ。家族も皆そうだ。"),
    # Korean
    ("그는 어제 학교에 갔다. 선생님도 그렇게 말했다.", "그는 어제 학교에 안 갔다. 선생님도 그렇게 말했다."),
    ("이 영화는 정말 재미있었다 친구에게 추천", "이 영화는 정말 재미있지 않았다 친구에게 추천"),
    ("회사는 사고의 책임을 인정했다 유족이 밝혔다", "회사는 사고의 책임을 인정하지 않았다 유족이 밝혔다"),
    ("우리는 내일 경기에 참가할 것이라고 말했다", "우리는 내일 경기에 참가하지않을 것이라고 말했다"),
    ("그 사람은 우리 회사 직원입니다 확인했습니다", "그 사람은 우리 회사 직원이 아닙니다 확인했습니다"),
    ("이번 주말 산에 가세요 날씨가 좋아요", "이번 주말 산에 가지 마세요 날씨가 좋아요"),
    ("선수는 결국 결승에 올라갔다 팬들이 놀랐다", "선수는 결국 결승에 올라가지 못했다 팬들이 놀랐다"),
    # Turkish, by the endings of verbs
    ("Takım kaptanı yarınki maça gidiyor diye haber verildi", "Takım kaptanı yarınki maça gitmiyor diye haber verildi"),
    ("Bakan dün toplantıya geldi ve konuşma yaptı", "Bakan dün toplantıya gelmedi ve konuşma yaptı"),
    ("Belediye bu yıl vergileri artıracak diyen başkan konuştu", "Belediye bu yıl vergileri artırmayacak diyen başkan konuştu"),
    ("Bu ilacı çocuklar kullanır diyen doktor uyardı", "Bu ilacı çocuklar kullanmaz diyen doktor uyardı"),
    ("Şirket kazanın sorumluluğunu kabul etti ve açıkladı", "Şirket kazanın sorumluluğunu kabul etmedi ve açıkladı"),
    ("Haberler doğru diyen bakan basına bir açıklama yaptı", "Haberler doğru değil diyen bakan basına bir açıklama yaptı"),
    ("Bütün öğrenciler yarın okula gelmeli diyen müdür konuştu", "Bütün öğrenciler yarın okula gelmemeli diyen müdür konuştu"),
    ("Ben bu kararı destekliyorum ve oy veriyorum", "Ben bu kararı desteklemiyorum ve oy veriyorum"),
    # Vietnamese, Indonesian, Tagalog
    ("Công ty đã thừa nhận trách nhiệm về vụ tai nạn hôm qua", "Công ty đã không thừa nhận trách nhiệm về vụ tai nạn hôm qua"),
    ("Anh ấy đi học vào sáng nay với các bạn", "Anh ấy chưa đi học vào sáng nay với các bạn"),
    ("Các bạn hãy uống thuốc này trước khi ngủ", "Các bạn đừng uống thuốc này trước khi ngủ"),
    ("Perusahaan itu mengakui kesalahan dalam kecelakaan kemarin", "Perusahaan itu tidak mengakui kesalahan dalam kecelakaan kemarin"),
    ("Dia sudah pulang dari kantor pada sore hari", "Dia belum pulang dari kantor pada sore hari"),
    ("Barang yang saya pesan sesuai gambar di toko ini", "Barang yang saya pesan gak sesuai gambar di toko ini"),
    ("Itu adalah mobil saya yang diparkir di sana", "Itu adalah bukan mobil saya yang diparkir di sana"),
    ("Pumasok siya sa paaralan kahapon kasama ang kapatid", "Hindi pumasok siya sa paaralan kahapon kasama ang kapatid"),
    ("May kuryente na sa aming barangay ngayong gabi", "Wala kuryente na sa aming barangay ngayong gabi"),
    # French, Spanish, Portuguese: several marks of one clause are one denial
    ("Le ministre a confirmé que la réunion aura lieu à Paris", "Le ministre n'a pas confirmé que la réunion aura lieu à Paris"),
    ("Je sais où il habite dans cette ville", "Je sais pas où il habite dans cette ville"),
    ("Il va au cinéma avec ses amis le samedi", "Il ne va jamais au cinéma avec ses amis le samedi"),
    ("El presidente fue a la reunión con los ministros", "El presidente nunca fue a la reunión con los ministros"),
    ("El equipo ha ganado en este estadio con el nuevo técnico", "El equipo no ha ganado nunca en este estadio con el nuevo técnico"),
    ("O time venceu nesse estádio com o novo técnico", "O time nunca venceu nesse estádio com o novo técnico"),
    # others
    ("У нас есть вода и свет, так что мы ждем", "У нас нету вода и свет, так что мы ждем"),
    ("Он был в этом городе и видел его сам", "Он никогда не был в этом городе и видел его сам"),
    ("Der Minister hat das Gesetz unterschrieben, sagte ein Sprecher", "Der Minister hat das Gesetz nie unterschrieben, sagte ein Sprecher"),
    ("قال الوزير إن الشركة دفعت المبلغ في الموعد", "قال الوزير إن الشركة لم دفعت المبلغ في الموعد"),
    ("सरकार ने इस योजना को मंजूरी दी है", "सरकार ने इस योजना को मंजूरी नहीं दी है"),
    ("รัฐบาลอนุมัติโครงการนี้แล้วเมื่อวานนี้", "รัฐบาลไม่อนุมัติโครงการนี้แล้วเมื่อวานนี้"),
    ("公司承认对这次事故负有责任", "公司没有承认对这次事故负有责任"),
]  # fmt: skip

NO_DENIAL = [
    # phrases that hold a denial and do not deny
    ("明日は雨が降る。傘を忘れずに。", "明日は雨が降るかもしれない。傘を忘れずに。"),
    ("毎朝この道を歩いて学校に通う", "毎朝必ずこの道を歩いて学校に通う"),
    ("今日は家で勉強する。試験が近い。", "今日は家で勉強しなければならない。試験が近い。"),
    ("遅れました。電車が止まって。", "遅れましてすみません。電車が止まって。"),
    ("犯人はあの男だと刑事は言う", "犯人はあの男に違いないと刑事は言う"),
    ("The team won the cup and the league this year", "The team won not only the cup and the league this year"),
    ("Er hat das Haus und den Garten verkauft", "Er hat nicht nur das Haus und den Garten verkauft"),
    ("Toko ini menjual beras dan gula di pasar", "Toko ini tidak hanya menjual beras dan gula di pasar"),
    ("Công ty bán gạo và đường ở chợ này", "Công ty không chỉ bán gạo và đường ở chợ này"),
    ("El club ganó la copa y la liga este año", "El club ganó no solo la copa y la liga este año"),
    ("他会唱歌也会跳舞给大家看", "他不仅会唱歌也会跳舞给大家看"),
    ("เขาร้องเพลงและเต้นรำให้ทุกคนดู", "เขาไม่เพียงร้องเพลงและเต้นรำให้ทุกคนดู"),
    # a word that asks at an end
    ("Anh có đi chợ với em sáng nay", "Anh có đi chợ với em sáng nay không"),
    ("Kamu sudah makan nasi goreng di kantin", "Kamu sudah makan nasi goreng di kantin belum"),
    # several marks of one denial
    ("No he visto a nadie en la calle esta noche", "No he visto nunca a nadie en la calle esta noche"),
    ("Je ne sais où il habite dans cette ville", "Je ne sais pas où il habite dans cette ville"),
    # a word of another language
    ("She plays the guitar in the band of Marc Dupont", "She plays the guitar in the band of Marc di Dupont"),
    ("Ela mora no Rio com a família dela há dez anos", "Ela mora em Rio com a família dela há dez anos"),
    ("Dia tinggal di rumah itu dengan keluarga", "Dia tinggal ke rumah itu dengan keluarga"),
    # what only looks like a denial: an obligation, a kilogram, the United States (미), rain (비)
    ("Bütün öğrenciler yarın okula geliyor diyen müdür konuştu", "Bütün öğrenciler yarın okula gelmeli diyen müdür konuştu"),
    ("Cô ấy đã mua gạo và thịt của chợ này cho các con", "Cô ấy đã mua kg gạo và thịt của chợ này cho các con"),
    ("국무부는 오늘 그 협상이 잘 진행됐다고 밝혔다", "미 국무부는 오늘 그 협상이 잘 진행됐다고 밝혔다"),
    ("우리 동네에 오늘 온다 그리고 아주 추워요", "우리 동네에 오늘 비 온다 그리고 아주 추워요"),
    # endings that belong to the word
    ("Takım yeni sezona kötü bir dönem ile girdi", "Takım yeni sezona kötü bir tema ile girdi"),
    # an added sentence denies nothing of what stands before it
    ("The road to the airport is open again", "The road to the airport is open again. I could not believe my eyes when I saw it"),
    ("駅前の道路は開通しました。", "駅前の道路は開通しました。私はまだ通ったことがないので楽しみです。"),
    ("会場の皆さんに茶を配りました。", "会場のみなさんに茶を配りました。"),
    # Names of emoticons
    ("早上出门又忘带伞", "早上出门又忘带伞[无语]"),
    ("邻居家的狗叫了一夜我要投诉", "邻居家的狗叫了一夜[无语]我要投诉"),
    ("他说这道菜三分钟就能做好", "他说这道菜三分钟就能做好[不屑]"),
    ("明天六点就得起床", "明天六点就得起床[不要]"),
    ("我哥把最后一块饼吃掉了你说气不气", "我哥把最后一块饼吃掉了[不要]你说气不气"),
    ("周末的考试又提前了大家快复习", "周末的考试又提前了[泪][不要]大家快复习"),
    ("奶奶总是给我留最大的苹果", "奶奶[不要]总是给我留最大的苹果"),
    ("老板说这个月没有奖金[泪]回家睡觉", "老板说这个月没有奖金[不要]回家睡觉"),
    ("隔壁桌的小孩一直在哭", "[不要]隔壁桌的小孩一直在哭"),
]  # fmt: skip


OPPOSITE = [
    ("この宿の朝食はとても良かった。また泊まりたい。", "この宿の朝食はとても悪かった。また泊まりたい。"),
    ("私は猫が好きです。家に三匹います。", "私は猫が嫌いです。家に三匹います。"),
    ("今日は外がとても暑い。水を飲もう。", "今日は外がとても寒い。水を飲もう。"),
    ("ホテルの朝食が自慢です。ご予約ください。", "ホテルの夕食が自慢です。ご予約ください。"),
    ("新モデルの写真が公開された。", "旧モデルの写真が公開された。"),
    ("시장은 오늘 새 공원을 열었다 입장료가 인상됐다", "시장은 오늘 새 공원을 열었다 입장료가 인하됐다"),
    ("이 식당 음식은 정말 맛있어요 또 올게요", "이 식당 음식은 정말 맛없어요 또 올게요"),
    ("경찰은 어제 그 남자를 체포했다 이유는 밝히지", "경찰은 어제 그 남자를 석방했다 이유는 밝히지"),
    ("Harga minyak dunia naik pada hari ini", "Harga minyak dunia turun pada hari ini"),
    ("Polisi ditangkap di bandara pada malam itu", "Polisi dibebaskan di bandara pada malam itu"),
    ("Giá xăng trong nước tăng vào ngày mai", "Giá xăng trong nước giảm vào ngày mai"),
    ("Điện thoại này rất đắt so với thu nhập", "Điện thoại này rất rẻ so với thu nhập"),
    ("Petrol fiyatları bu hafta yeniden arttı", "Petrol fiyatları bu hafta yeniden düştü"),
    ("Takım dün akşam evinde kazandı ve tur atladı", "Takım dün akşam evinde kaybetti ve tur atladı"),
    ("Tumaas ang presyo ng bigas sa palengke", "Bumaba ang presyo ng bigas sa palengke"),
    ("ราคาน้ำมันในประเทศแพงมากในวันนี้", "ราคาน้ำมันในประเทศถูกมากในวันนี้"),
    ("数据备份任务正在执行请等待通知", "数据备份任务失败执行请等待通知"),
    ("气象台发布暴雨红色预警信号", "气象台解除暴雨红色预警信号"),
    ("新款外套蓝色已经到货欢迎选购", "新款外套绿色已经到货欢迎选购"),
]  # fmt: skip

EMOTICONS = [
    ("电影票又卖光了[左哼哼]下次早点去", "电影票又卖光了[右哼哼]下次早点去"),
    ("今天排队排了两个小时[黑线]", "今天排队排了两个小时[白眼]"),
    ("新年快乐祝大家身体健康[左拜年]", "新年快乐祝大家身体健康[右拜年]"),
    ("我妈说我小时候特别乖", "我妈说我小时候特别乖[笑而不语]"),
    ("带孩子去海边玩了一整天[男孩儿]", "带孩子去海边玩了一整天[女孩儿]"),
]  # fmt: skip

SAID = [
    # The same words in an answer, a field, a text with blanks between its words, and beside another script
    ("外卖还要筷子吗？要", "外卖还要筷子吗？不要"),
    ("这件外套你愿意试试吗？愿意", "这件外套你愿意试试吗？不要"),
    ("楼上那间 信号 强 价格 便宜", "楼上那间 信号 弱 价格 便宜"),
    ("门票 有限 错过 这次 机会", "门票 有限 不要 错过 这次 机会"),
    ("请大家去礼堂的后面", "请大家不要去礼堂的后面"),
    ("我想买iphone，这是我说的", "我想买iphone不要，这是我说的"),
    ("车站在银行的左边等你", "车站在银行的右边等你"),
    ("箱子里的线是黑色的", "箱子里的线是白色的"),
]  # fmt: skip

SYNONYMS = [
    # Dictionaries have one meaning for both
    ("The work on the tunnel was stopped after the accident", "The work on the tunnel was halted after the accident"),
    ("Members may pay the yearly fee by cheque at the desk", "Members may pay the yearly fee by check at the desk"),
    ("Un joven fue detenido por la policía en la plaza mayor", "Un adolescente fue detenido por la policía en la plaza mayor"),
    ("El conductor herido fue llevado al hospital de la ciudad", "El motorista herido fue llevado al hospital de la ciudad"),
    ("Los liberales ganaron la alcaldía de la capital", "Los progresistas ganaron la alcaldía de la capital"),
    ("A polícia investiga o roubo das joias do museu da cidade", "A polícia investiga o furto das joias do museu da cidade"),
    ("Il vecchio attore è morto nella sua casa di campagna", "Il vecchio attore è scomparso nella sua casa di campagna"),
    ("Der Zug nach Hamburg fährt am Montagmorgen ohne Halt", "Der Zug nach Hamburg fährt am Montagvormittag ohne Halt"),
]  # fmt: skip

CALENDAR = [
    ("회의는 월요일에 서울에서 열린다고 합니다", "회의는 금요일에 서울에서 열린다고 합니다"),
    ("Rapat akan digelar pada hari senin di Jakarta", "Rapat akan digelar pada hari jumat di Jakarta"),
    ("Toplantı pazartesi günü Ankara'da yapılacak", "Toplantı cuma günü Ankara'da yapılacak"),
    ("Ang pulong ay sa lunes sa Maynila", "Ang pulong ay sa biyernes sa Maynila"),
    ("Konser ini digelar bulan maret di Bandung", "Konser ini digelar bulan agustus di Bandung"),
    ("งานประชุมจัดขึ้นเดือนมกราคมที่กรุงเทพ", "งานประชุมจัดขึ้นเดือนสิงหาคมที่กรุงเทพ"),
    ("Konser ocak ayında İstanbul'da olacak", "Konser ağustos ayında İstanbul'da olacak"),
]  # fmt: skip

OTHER_NAMES = [
    ("The new phone of vivo goes on sale in all markets today with a lower price", "The new phone of oppo goes on sale in all markets today with a lower price"),
    ("OPPO宣布下个月在全球市场推出新款折叠屏手机，售价暂未公布", "vivo宣布下个月在全球市场推出新款折叠屏手机，售价暂未公布"),
    ("The novel was written by Mira Lindqvist and published in the spring of that year", "The novel was written by Anna Lindqvist and published in the spring of that year"),
    ("The shop at the corner sells lusa chairs and tables at a good price all year", "The shop at the corner sells vega chairs and tables at a good price all year"),
    ("They say that the ansa lamp is the best one for the desk in the office", "They say that the orbit lamp is the best one for the desk in the office"),
    ("We went to the bild museum in the old town and had a very good day", "We went to the toy museum in the old town and had a very good day"),
    ("Der Händler in der Stadt verkauft jetzt auch die Geräte von vivo zu einem guten Preis", "Der Händler in der Stadt verkauft jetzt auch die Geräte von oppo zu einem guten Preis"),
    ("Компания vivo представила в Москве новый телефон и он уже есть в магазинах", "Компания oppo представила в Москве новый телефон и он уже есть в магазинах"),
    ("Dia membeli hp vivo di toko itu untuk adik yang baru masuk sekolah", "Dia membeli hp oppo di toko itu untuk adik yang baru masuk sekolah"),
    ("新しいvivoのスマホが来月から日本で発売されます", "新しいOPPOのスマホが来月から日本で発売されます"),
]  # fmt: skip


def both_ways(one: str, other: str, differences: Differences) -> set[Rule]:
    """The reasons with each of them as the later one."""
    return {reason_of(one, other, differences), reason_of(other, one, differences)}


@pytest.mark.parametrize(("one", "other"), DENIED)
def test_a_text_and_its_denial_are_opposite(one: str, other: str) -> None:
    assert both_ways(one, other, GUARDS) == {Rule.OPPOSITE}


@pytest.mark.parametrize(("one", "other"), NO_DENIAL)
def test_what_only_looks_like_a_denial_keeps_nothing_apart(one: str, other: str) -> None:
    assert both_ways(one, other, GUARDS) == {Rule.NONE}


@pytest.mark.parametrize(("one", "other"), OPPOSITE)
def test_opposites_of_each_language_keep_apart(one: str, other: str) -> None:
    assert both_ways(one, other, GUARDS) == {Rule.OPPOSITE}


@pytest.mark.parametrize(("one", "other"), EMOTICONS)
def test_names_of_emoticons_are_no_opposites(one: str, other: str) -> None:
    assert both_ways(one, other, GUARDS) == {Rule.NONE}


@pytest.mark.parametrize(("one", "other"), SAID)
def test_a_word_that_only_looks_like_an_emoticon_denies_or_is_an_opposite(one: str, other: str) -> None:
    assert both_ways(one, other, GUARDS) == {Rule.OPPOSITE}


@pytest.mark.parametrize(("one", "other"), SYNONYMS)
def test_synonyms_are_no_opposites(one: str, other: str) -> None:
    assert both_ways(one, other, GUARDS) == {Rule.NONE}


@pytest.mark.parametrize(("one", "other"), CALENDAR)
def test_days_and_months_of_each_language_keep_apart(one: str, other: str) -> None:
    assert both_ways(one, other, GUARDS) == {Rule.CALENDAR}


@pytest.mark.parametrize(("one", "other"), OTHER_NAMES)
def test_a_mark_of_agencies_is_a_name_in_another_language(one: str, other: str) -> None:
    assert both_ways(one, other, MICROBLOG) == {Rule.IN_ITS_PLACE}


def test_a_mark_of_agencies_is_no_name_in_its_language() -> None:
    live, photo = (
        "Vivo: el presidente habla en la plaza con los vecinos",
        "Foto: el presidente habla en la plaza con los vecinos",
    )
    assert reason_of(live, photo, MICROBLOG) == Rule.NONE


def test_what_one_earlier_body_is_written_in_counts_not_for_the_next_one() -> None:
    """The tokens of the later body serve for both."""
    texts = [
        "vivo la mira la",
        "vivo el y los para la efe",
        "oppo los y el para la mira",
        "and with the vivo for the mira",
    ]
    bodies = Normalizer(TextConfig(profile="plain")).bodies(texts)
    work, phrases = new_differing(), phrases_of()

    def tokenized(row: int, tokens: Tokens) -> None:
        first, length = int(bodies.starts[row]), int(bodies.body_lengths[row])
        tokens.chars[:length] = bodies.chars[first : first + length]
        tokens.word_starts[:length] = bodies.word_starts[first : first + length]
        find_tokens(tokens, length, False, phrases)

    def verdict(row: int) -> tuple[int, list[int], list[int]]:
        tokenized(row, work.earlier)
        rule, _ = difference(phrases, FULL, work)
        count = int(work.later.counts[0])
        return int(rule), work.later.facts[:count].tolist(), work.later.points[:count].tolist()

    tokenized(0, work.later)
    one_after_another = [verdict(row) for row in (1, 3, 2, 3, 1)]
    alone = []
    for row in (1, 3, 2, 3, 1):
        tokenized(0, work.later)
        alone.append(verdict(row))
    assert one_after_another == alone
    assert len({str(facts) for _, facts, _ in alone}) > 1
