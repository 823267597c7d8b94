"""Texts in which one number, code, sign or state is the message, and texts that only look so."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, TITLES, reason_of
from twinsieve.stages.differ.rules import Rule

APART = [
    # a number behind a label is a number
    ("Breaking: 7 trams stuck on the hill line after the ice storm", "Breaking: 19 trams stuck on the hill line after the ice storm"),
    ("Alert 40 lamp posts dark on the river walk near the mill", "Alert 45 lamp posts dark on the river walk near the mill"),
    ("Update: 4-year-old oak in the park felled by the wind", "Update: 9-year-old oak in the park felled by the wind"),
    ("Python 3-Great talks of the spring meeting are online", "Python 4-Great talks of the spring meeting are online"),
    # a number or code in the place of words
    ("The ferry takes all bikes from the north pier today", "The ferry takes 6 bikes from the north pier today"),
    ("Please meet us in room Cedar for the budget talk", "Please meet us in room 41 for the budget talk"),
    ("Your locker code is PLUMXQ, keep it until Sunday", "Your locker code is 4LUMX7, keep it until Sunday"),
    ("Le train de Lyon part de la voie bleue ce matin", "Le train de Lyon part de la voie 12 ce matin"),
    ("会议今天改在一楼的梅花厅举行，请大家准时到场", "会议今天改在一楼的305室举行，请大家准时到场"),
    ("The sluice gate at the old weir jammed twice", "The sluice gate at the old weir jammed three times"),
    ("Die Schranke am Hafen klemmte heute zweimal", "Die Schranke am Hafen klemmte heute drei Mal"),
    # another name, beside a change that says nothing
    ("The ferry from Oban is late again, please tell the guests at the pier", "Fwd: The ferry from Tarbert is late again, please tell the guests at the pier"),
    ("The ferry from Oban is late again, please tell the guests at the pier", "The ferry from Tarbert is late again, please tell the guests at the pier. Best regards, Ida"),
    ("The ferry from Oban is late again, please tell the guests at the pier", "The ferry from Tarbert is late again, plaese tell the guests at the pier"),
    # Roman numbers
    ("Notes of the seminar on rivers, part I, are in the shared folder", "Notes of the seminar on rivers, part II, are in the shared folder"),
    ("El libro del puerto viejo y sus barcos (III)", "El libro del puerto viejo y sus barcos (V)"),
    # zeros that end a version
    ("Please read chapter 7.1 of the handbook before the exam", "Please read chapter 7.10 of the handbook before the exam"),
    ("Das Gerät läuft jetzt mit der Firmware 2.3 ohne Fehler", "Das Gerät läuft jetzt mit der Firmware 2.30 ohne Fehler"),
    # operators
    ("Homework for Monday: how much is 31 + 7 without a calculator", "Homework for Monday: how much is 31 - 7 without a calculator"),
    ("Homework for Monday: how much is 31+7 without a calculator", "Homework for Monday: how much is 31*7 without a calculator"),
    ("Solve 4y + 9 = 21 and write down each of your steps", "Solve 4y - 9 = 21 and write down each of your steps"),
    ("The exam asks for A ∪ B of the two sets on page nine", "The exam asks for A ∩ B of the two sets on page nine"),
    # names of two letters beside longer ones
    ("The JB speaker with two drivers is back in stock", "The Teufel speaker with two drivers is back in stock"),
    # states
    ("The lift in the east wing stops between floors", "Fixed: the lift in the east wing stops between floors"),
    ("The lift in the east wing stops between floors", "The lift in the east wing stops between floors. Solved!"),
    ("CRITICAL disk of the mail host is nearly full again tonight", "OK disk of the mail host is nearly full again tonight"),
    ("Jazz night in the old brewery on Friday at eight", "Jazz night in the old brewery on Friday at eight - sold out"),
    ("Jazzabend in der alten Brauerei am Freitag um acht", "Jazzabend in der alten Brauerei am Freitag um acht (ausverkauft)"),
    ("周五晚八点老啤酒厂爵士乐演出", "【取消】周五晚八点老啤酒厂爵士乐演出"),
    ("Der Kran am Nordkai ist seit heute früh außer Betrieb", "Der Kran am Nordkai ist seit heute früh in Betrieb"),
    ("O guindaste do cais norte está fora de serviço", "O guindaste do cais norte está em serviço"),
    # editions
    ("Song of the long road and the two lost bells (Live)", "Song of the long road and the two lost bells (Remix)"),
    ("Camera Orla 7 64GB silver with strap and case", "Camera Orla 7 Pro 64GB silver with strap and case"),
    ("Toner Orla 220 black for small offices and schools", "Toner Orla 220XL black for small offices and schools"),
    # a denial beside a word in another spelling
    ("Quán này bán đúng giá", "Quán này ko bán đung giá"),
    # the same numbers in another order
    ("The derby ended 2:1 after a long evening in the rain", "The derby ended 1:2 after a long evening in the rain"),
]  # fmt: skip

ONE = [
    ("【修理済み】北桟橋のクレーンが朝から動かない件", "【修理しました】北桟橋のクレーンが朝から動かない件"),
    ("The sluice gate at the old weir jammed twice", "The sluice gate at the old weir jammed 2 times"),
    ("The ferry from Oban is late again, please tell the guests", "Re: The ferry from Oban is late again, please tell the guests. Thank you!"),
    ("UPDATE 2-Grain prices fall as rain reaches the plains", "UPDATE 3-Grain prices fall as rain reaches the plains"),
    ("UPDATE 2 - Grain prices fall as rain reaches the plains", "UPDATE 5-Grain prices fall as rain reaches the plains"),
    ("Breaking: three trams stuck on the hill line", "Breaking: 3 trams stuck on the hill line"),
    ("Take the 2nd exit behind the bridge to the mill", "Take the second exit behind the bridge to the mill"),
    ("Add ½ a spoon of salt and stir until it is smooth", "Add half a spoon of salt and stir until it is smooth"),
    ("The nightly copy of the archive ended with no errors", "The nightly copy of the archive ended with 0 errors"),
    ("Im Teil II des Kurses geht es um Flüsse", "Im Teil 2 des Kurses geht es um Flüsse"),
    ("Une maison du XVIIe siècle au bord du canal", "Une maison du 17e siècle au bord du canal"),
    ("I want my money back for xx the broken lamp", "I want my money back for xxx the broken lamp"),
    ("The ticket for the ferry costs 4.5 euros this year", "The ticket for the ferry costs 4.50 euros this year"),
    ("Rates rise to 4.5% this spring at the savings bank", "Rates rise to 4.50 % this spring at the savings bank"),
    ("A sack of rice now weighs 2.5 kg in the corner shop", "A sack of rice now weighs 2.50 kg in the corner shop"),
    ("How much is 31 + 7 without a calculator", "How much is 31+7 without a calculator"),
    ("How much is 31 × 7 without a calculator", "How much is 31*7 without a calculator"),
    ("Call the harbour office on 555-201-7788 before noon", "Call the harbour office on 5552017788 before noon"),
    ("Appelez la mairie au 01 44 55 66 77 avant midi", "Appelez la mairie au 01.44.55.66.77 avant midi"),
    ("Der Markt öffnet um 7.30 Uhr auf dem Platz", "Der Markt öffnet um 7:30 Uhr auf dem Platz"),
    ("La séance commence à 19h dans la grande salle", "La séance commence à 19h00 dans la grande salle"),
    ("明天下午3点在图书馆门口集合出发", "明天15点在图书馆门口集合出发"),
    ("O clube paga 30 mil reais pela nova quadra", "O clube paga R$ 30.000 pela nova quadra"),
    ("The pass costs US$ 45 for a whole month", "The pass costs 45 US dollars for a whole month"),
    ("시는 새 다리에 5억원을 쓰기로 결정했다", "시는 새 다리에 500,000,000원을 쓰기로 결정했다"),
    ("Schöne Grüße aus Köln, wir kommen später zurück", "Schoene Gruesse aus Koeln, wir kommen spaeter zurueck"),
    ("Morning all, the printer on floor two does not answer", "Howdy, the printer on floor two does not answer"),
    ("The clerk cannot find my parcel in the depot", "The clerk can't find my parcel in the depot"),
    ("The mayor threatens to close the old swimming hall", "The mayor threaetns to close the old swimming hall"),
    ("There was nothing left in the shop by noon", "There was ntohing left in the shop by noon"),
    ("The bug in the payment form is fixed since Monday", "The bug in the payment form is resolved since Monday"),
    ("今年2月14日晚上桥上下了大雪，交通中断两小时", "今年14日晚上桥上下了大雪，交通中断两小时"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), APART)
def test_one_word_that_is_the_message_keeps_apart(one: str, other: str) -> None:
    assert Rule.NONE not in (reason_of(one, other, TITLES), reason_of(other, one, TITLES))


@pytest.mark.parametrize(("one", "other"), ONE)
def test_what_only_looks_like_another_word_is_none(one: str, other: str) -> None:
    assert {reason_of(one, other, FULL), reason_of(other, one, FULL)} == {Rule.NONE}
