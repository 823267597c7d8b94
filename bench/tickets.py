"""How many traps in tickets, mails and alerts are lost, and how many edits are found, by kind.

    python -m bench.tickets [--rows 20000] [--seed 20261130] [--profile default] [--wrong KIND]

A trap is a copy of a base message in which one thing was exchanged: a clerk reads another message. It is
lost if it was dropped for a message of its family (base, copies, edits, traps) that lacks its difference. A
sixth of the traps have a second, harmless difference: a signature, thanks, a typo, a prefix. "For another
trap": other things were exchanged in the two. An edit is a copy with a harmless change; it is found if it was
dropped.

--wrong: also print some lost traps of this kind, or edits that were kept
All texts are generated. One run judges all rows, with windows that hold all of them.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import cycle
from random import Random
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from twinsieve import Sieve

# In a frame: {pool}: a value; {no:a|b} and {op:a|b}: a denial, or opposite verbs; [a|b]: words that mean the
# same; (word): a light word that may be missing, with the blank before it.
TRAVEL = (
    "Booking {ref} to {city} in {month} {no:includes|does not include} a bag, says your agent {name}.",
    "Our flight from {city} to {city} was {count} hours late and nobody at the gate [knew why|told us why].",
    "Can you (please) {op:add|remove} the second bag on booking {ref}? We fly from {city} in {month}.",
    "The hotel in {city} charged us {times} for the same night, the bill of {amount} is [attached|below].",
    "I paid for {count} seats on the night train to {city}, but ticket {ref} shows only one (now).",
    "Your agent {name} told me that the ferry to {city} {no:takes|does not take} [dogs|bicycles] in {month}.",
    "We would like to {op:shorten|extend} our stay in {city} by {count} nights, the reservation is {ref}.",
    "The rental car in {city} had a scratch when we got it, and (now) Ms {surname} wants {amount} for it.",
    "The check-in page [stops|ends] with error {code} when I enter {ref} in your app on {platform}.",
    "At the desk in {city} I heard that {ref} {no:is|is not} a booking for {month}, {name} typed it in.",
)
TRAVEL_NEXT = (
    "There are {count} of us in the group.",
    "Mr {surname} from your office in {city} [saw|has seen] the papers.",
    "We leave {city} early in {month}.",
    "The travel insurance {no:covers|does not cover} that, as far as I know.",
)
DELIVERY = (
    "Order {order} {no:has arrived|has not arrived}, but your page (now) names a depot in {city}.",
    "Parcel {order} with my {goods} went to a shop in {city} that I have never [heard of|been to].",
    "The {goods} that I ordered in {month} came {times}, the order number is {order}.",
    "Please {op:hold|release} parcel {order}, Mr {surname} will be at the depot in {city} by noon.",
    "The {goods} from order {order} came with a [dent|crack|scratch] and I want the {amount} back (please).",
    "My neighbour {name} saw that the driver {op:delivered|collected} the {goods}, but nobody rang my bell.",
    "The {goods} {no:was|was not} in the box that reached me in {city} with order {order}.",
    "I paid {amount} for express to {city} and the {goods} took {count} days to get here.",
    "Invoice {invoice} for the {goods} has postage on it, yet {city} is free from {amount} on.",
    "My order {order} for {count} boxes was split, and the part with the {goods} is in {city} (now).",
)
DELIVERY_NEXT = (
    "The driver came {times} while we were at home.",
    "My street in {city} {no:has|does not have} a parcel locker.",
    "I need the {goods} for a birthday in {month}.",
    "The label says {order}, it was packed by {name}.",
)
BANKING = (
    "My card was charged {times} for {amount} at a petrol station in {city}, the account is {account}.",
    "Please {op:raise|lower} the limit of account {account} to {amount} until the end of {month}.",
    "The transfer of {amount} from {account} to {name} {no:went through|did not go through} in {month}.",
    "Somebody took {amount} from account {account} at a machine in {city} where I have never been.",
    "Your app on {platform} {no:shows|does not show} the {month} statement of (the) account {account}.",
    "I want to {op:open|close} a savings account in the name of {name} at the branch in {city}.",
    "The loan that Ms {surname} offered runs for {count} months, the contract names {amount} a month.",
    "The card reader {serial} answers {code} each time that I sign a transfer of more than {amount}.",
    "The payment to {name} over {amount} was {op:approved|declined} in {month}, see invoice {invoice}.",
    "The cash machine in {city} kept {count} notes and my card, the slip (just) says {code}.",
)
BANKING_NEXT = (
    "The {city} branch told me to write to you.",
    "The last {count} payments {no:are|are not} mine.",
    "Your letter of {month} names Mr {surname} for such cases.",
    "My second account is {account}.",
)
TELECOM = (
    "The internet at our flat in {city} drops {count} times a day and the router (then) shows {code}.",
    "Since {month} my phone {no:rings|does not ring} when somebody calls me from {city}.",
    "I moved to {city} and your technician {name} {op:connected|disconnected} line {account} too early.",
    "Your bill {invoice} has {count} calls to {city} on it that nobody here made.",
    "I wish to {op:upgrade|downgrade} contract {account} from {month} on, {name} in the shop has the form.",
    "SIM card {serial} was {op:locked|unlocked} after {name} in your shop in {city} [looked at|tested] it.",
    "Roaming cost me {amount} in {month}, your chat says that my plan {no:covers|does not cover} {city}.",
    "Your technician {name} came {times} in {month} and the {device} (just) blinks red.",
    "TV box {serial} restarts {times} each evening and then stays on {code} for {count} minutes.",
    "The hotspot of the {device} {no:works|does not work} with my {platform} tablet in {city}.",
)
TELECOM_NEXT = (
    "The speed test gave {count} megabits.",
    "The contract is in the name of {name}.",
    "People next door in {city} {no:have|do not have} the same trouble.",
    "The line number is {account}.",
)
SOFTWARE = (
    "{app} crashes on {platform} with {code} as soon as I [open|print] a file of {count} pages.",
    "The export of {app} {no:works|does not work} on {platform} since the {month} release.",
    "The last update of {app} {op:helped|hurt} the speed on {platform}, a start takes {count} seconds (now).",
    "Please {op:enable|disable} the sync of {app} for user {user}, she is in our {city} office.",
    "User {user} sees {count} licences in {app}, but invoice {invoice} has a different figure.",
    "After the move to {app} the login of {user} fails with {code}, {name} from IT tried it, too.",
    "I {op:installed|removed} {app} {times} on {platform} and the error {code} [stayed|is there again].",
    "The licence key {serial} for {app} is [refused|rejected] on {count} of our {platform} machines.",
    "The search in {app} {no:finds|does not find} mails from {month}, I use it on {platform}.",
    "{app} sent {count} reminders to {name} in {city} (just) because of one open task.",
    "The plugin that {name} made for {app} {op:speeds up|slows down} the import, we are on {platform}.",
)
SOFTWARE_NEXT = (
    "The log of user {user} ends with {code}.",
    "It happens on {platform}, too.",
    "{name} {no:can|cannot} see it in the test system.",
    "We have {count} seats in the contract.",
)
HARDWARE = (
    "My {device} with serial number {serial} makes a loud noise after {count} minutes.",
    "The {device} {no:charges|does not charge} with the cable from your shop in {city}, serial {serial}.",
    "The display of the {device} went dark in {month}, the shop in {city} asks {amount} for a repair.",
    "I sent in the {device} {times} and each time {name} wrote that it is fine, the serial is {serial}.",
    "The {device} and the {device} do not see each other, the display (just) says {code}.",
    "The new firmware {op:improves|worsens} the picture of my {device}, the serial number is {serial}.",
    "The fan of the {device} runs at full speed and the light blinks {count} times, then comes {code}.",
    "Please {op:repair|scrap} the {device} that you got from {name} in {month}, the case is {order}.",
    "We lost the settings of {count} units of the {device} in {city}, the first one was {serial}.",
    "The {device} pairs {times} a day with {platform} and then {no:plays|does not play} the music.",
)
HARDWARE_NEXT = (
    "I bought it in {city} for {amount}.",
    "The warranty {no:ends|does not end} in {month}, the slip says so.",
    "The box of the {device} has {serial} on it.",
    "The manual has {count} pages and none of them [helps|is about that].",
)
UTILITIES = (
    "Meter {serial} at our house in {city} shows {count} units and (now) the bill says {amount}.",
    "Since {month} you take {amount} from account {account}, {name} told us that it would be less.",
    "The power in our street in {city} went off {times} last night, {count} minutes each time.",
    "The final bill {invoice} for the flat in {city} {no:counts|does not count} the days in {month}.",
    "The heating {no:comes on|does not come on} in the mornings, the boiler shows {code} [again|all day].",
    "Please {op:turn on|turn off} the water at the flat of {name} in {city} on the first of {month}.",
    "The reading that I sent for meter {serial} was {op:accepted|rejected}, the account is {account}.",
    "Gas bill {invoice} went {op:up|down} by {amount} though nobody lived in the flat in {month}.",
    "Ms {surname} read meter {serial} in {month} and wrote down {count} units (then).",
    "The solar panels at {account} {no:feed|do not feed} the grid in {city} since {month}.",
)
UTILITIES_NEXT = (
    "There are {count} flats in the house.",
    "Your man in {city} is called {surname}.",
    "The old meter was {serial}.",
    "My tenant {name} {no:pays|does not pay} for it.",
)
GENERAL_NEXT = (
    "I have called your hotline {times} and [was cut off|nobody answered].",
    "{name} in your chat promised me a [call|letter] within {count} days.",
    "My older ticket {order} {no:was|was not} solved.",
    "Can you (please) look into it (now)?",
    "My customer number is {account}.",
    "I wrote to you in {month} and got an answer from Mr {surname}.",
    "It is (really) urgent for [us|my mother|my office].",
    "The invoice is {invoice}, it was sent to {city}.",
    "I {no:want|do not want} a voucher of {amount} for it.",
    "The tip that {name} gave me {op:helped|hurt}.",
    "I am in {city} until the end of {month}.",
    "I do not know what else to [do|try].",
    "We {no:agree|do not agree} to pay {amount} for that.",
    "My colleague {name} in {city} can tell you more.",
    "The picture [below|in my mail] shows {code}.",
    "I cannot wait for {count} days.",
    "If it is not [settled|done] by {month} I will {op:keep|cancel} the contract.",
    "I tried it {times} on {platform}.",
    "It concerns {count} people in our [house|team].",
    "I have been with you for {count} years (now).",
    "Please {op:open|close} ticket {order}.",
    "Ms {surname} [said|wrote] that you will pay {amount}.",
)
ALERTS = (
    "ALERT: {count} servers down in the {city} data centre, {name} is on call.",
    "CRITICAL: node {serial} reports {code}, {count} jobs are waiting for it.",
    "Update: {count} homes in {city} are without power, crews [are on site|work on it].",
    "WARNING: disk of node {serial} at {count} percent, the {month} backup may be too big for it.",
    "Alert: login from {city} to account {account} on {platform} was refused {times}.",
    "Notice: {app} in {city} {no:is|is not} affected by the failure with code {code}.",
    "Incident: payments over {amount} fail with {code} in {count} shops.",
    "Breaking: {count} trains from {city} to {city} are cancelled after the storm.",
    "UPDATE: {app} was {op:started|stopped} on {count} {platform} machines in {city} after {code}.",
    "Monitoring: the queue of {app} {op:grows|shrinks} by {count} an hour since the change by {name}.",
    "ALERT: cards of account {account} were {op:locked|unlocked} from {city} by user {user}.",
    "Live: the tests of {app} on {platform} {no:passed|did not pass}, {name} has the log with {code}.",
)
ALERTS_NEXT = (
    "Ticket {order} was opened by {name}.",
    "The last such case was in {month}.",
    "Runbook {code} {no:applies|does not apply} here.",
    "User {user} was told {times}.",
    "The loss so far is {amount}.",
    "{count} people from {city} have been called in.",
    "Node {serial} was {op:added to|taken from} the pool.",
    "Next check by Ms {surname} in {count} minutes.",
)
NOTICES = (
    "Hi {name}, your parcel {order} is on its way from {city} and will be with you in {count} days.",
    "Dear {name}, your payment of {amount} for invoice {invoice} {no:has reached us|has not reached us}.",
    "Hello {name}, your visit to Ms {surname} in {city} is {op:confirmed|cancelled}, reference {ref}.",
    "{name}, your {device} is ready at our shop in {city}, (please) bring slip {order} and {amount}.",
    "Account {account} was {op:credited|debited} with {amount} on behalf of {name} from {city}.",
    "Dear customer, our technician {name} will come in {month} for meter {serial}.",
    "Hi {name}, {count} items of order {order} are on the way, the {goods} follows in {month}.",
    "Boarding for booking {ref} to {city} starts in {count} minutes, (please) go to the gate, {name}.",
    "Your table for {count} in {city} is booked in the name of {surname}, the reference is {ref}.",
    "We have {op:accepted|rejected} your claim {order} about the {goods}, the sum was {amount}.",
    "Dear {name}, you {no:have|do not have} to pay the {month} bill {invoice} over {amount} yet.",
    "Your trial of {app} on {platform} ends in {count} days, user {user}, then it costs {amount} a month.",
)
NOTICES_NEXT = (
    "Questions? Ask {name} in our {city} office.",
    "Do not share code {code} with anybody.",
    "Your customer number is {account}.",
    "The next bill comes in {month}.",
    "We tried to call you {times}.",
    "A discount of {amount} {no:is|is not} included.",
    "The service on {platform} is free.",
    "Your contact is Mr {surname}, please quote {order}.",
)
GROUPS = (
    *((TRAVEL, TRAVEL_NEXT + GENERAL_NEXT), (DELIVERY, DELIVERY_NEXT + GENERAL_NEXT)),
    *((BANKING, BANKING_NEXT + GENERAL_NEXT), (TELECOM, TELECOM_NEXT + GENERAL_NEXT)),
    *((SOFTWARE, SOFTWARE_NEXT + GENERAL_NEXT), (HARDWARE, HARDWARE_NEXT + GENERAL_NEXT)),
    *((UTILITIES, UTILITIES_NEXT + GENERAL_NEXT), (ALERTS, ALERTS_NEXT), (NOTICES, NOTICES_NEXT)),
)
"""Sentences that open a message, and those that may follow. A message has one group."""
WORDS = {
    "name": "Amara Bjorn Carla Dmitri Elif Fergus Greta Hassan Imani Joaquin Kerstin Luca Mei Nadia Oskar "
    "Priya Quentin Rosa Stefan Tomoko Ulrich Vera Wanda Xavier Yusuf Zoe Alan Brenda Claire Derek Emily",
    "surname": "Abbott Bianchi Castellano Dvorak Eriksen Fairweather Grosz Haddad Ivanov Jansson Kowalczyk "
    "Lombard Mwangi Novak Ogunleye Petrov Quigley Rosenthal Sharma Tanaka Underhill Vogel Whitmore Yilmaz",
    "city": "Aberdeen Bristol Cork Dresden Exeter Florence Ghent Hamburg Izmir Jakarta Krakow Lisbon Malmo "
    "Nairobi Oslo Porto Quito Rotterdam Seville Turin Utrecht Valencia Warsaw York Zagreb Austin Boston "
    "Chicago Denver Montreal Perth New_York Cape_Town Santa_Fe Tel_Aviv",
    "month": "January February March April May June July August September October November December",
    "platform": "iOS Android Windows macOS Linux ChromeOS",
    "times": "twice twice three_times three_times four_times five_times",
    "goods": "kettle toaster desk_lamp rucksack mattress hammock blender raincoat Lumo_chair Tarn_tent "
    "Bexley_sofa wall_clock tool_box Orrin_bike yoga_mat rice_cooker garden_hose BX40_drill KitePro_jacket",
    "device": "laptop printer Velora_3 Nimbus_router Zentab XR450 Pixelon Orbit_speaker CamDuo K7_keyboard "
    "monitor headset Trillo_watch Aerobook M20 Solis_projector webcam Quartz_Mini Brio_phone DeskHub_2",
    "app": "Ledgerly Taskwell Mailnook Formica PlanDeck Chronos_5 Docuvault Inkwell CRM360 Stockpile Notary "
    "Paperjet Q4Sheets Teamroom Vaultkey Roster_Plus",
}
VALUES = {pool: tuple(word.replace("_", " ") for word in words.split()) for pool, words in WORDS.items()}
SHAPES = {
    "serial": ("AA9A9AA99", "9A9AA9A9A", "AAAAAAAAA", "SN-99999-AA", "A99-9999"),
    "order": ("#99999", "SO-999999", "9999-9999", "A9A99AA", "AAAAAA"),
    "ref": ("AAAAAA", "A9AAA9", "9AAA9A", "AA9999"),
    "invoice": ("INV-99999", "9999999", "R9999/99", "A-99999"),
    "code": ("E9999", "ERR-999", "0x8009999", "A99", "HTTP 509", "999"),
    "account": ("9999-9999", "99 999 999", "KX99999", "AAA-9999", "AAAAAAA"),
    "amount": ("$99.90", "£999", "€99.50", "999 EUR", "USD 9999", "$9,990", "99 dollars"),
}
"""What a value looks like. A: a letter; 9: a digit from 1 to 9"""
LETTERS = "BCDFGHJKLMNPQRTVWXZ"
COUNTS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "eleven", "twelve")
POOLS = {
    "number": ("count",),
    "name": ("name", "surname"),
    "city": ("city",),
    "product": ("goods", "device", "app"),
    "serial": ("serial",),
    "order number": ("order", "ref"),
    "invoice": ("invoice",),
    "error code": ("code",),
    "platform": ("platform",),
    "month": ("month",),
    "twice": ("times",),
    "denial": ("no",),
    "helps / hurts": ("op",),
    "account": ("account", "user"),
    "amount": ("amount",),
}
"""The kinds of traps, and the pools of which each exchanges a value."""
EDITS = ("light word", "RT", "tail", "signature", "greeting", "head", "cut end", "contraction", "typo")
TWO_TYPOS = "two typos"
GREETINGS = ("Hi all, ", "Hello everyone, ", "Morning all, ", "Howdy, ", "Hi there, ", "Hello, ")
HEADS = ("just so you know, ", "I have to say that ", "it seems that ", "well, ", "I am writing because ")
FORWARDED = ("Fwd: ", "FW: ", "Re: ", "Fwd: Re: ", "RT @help_line: ", "RT @k_fisher: ")
SIGNATURES = (
    " Best regards, Paula",
    " -- Gus",
    " Cheers, Nina",
    " Sent from my phone",
    "\nRegards\nTheo",
    " ^LB",
)
TAILS = (" #help", " #fail", " #help #service", " https://help.example/t/A9A99A", " https://t.example/9AA9A9")
THANKS = (" Thanks!", " Thanks", " Thank you.", " Many thanks in advance.")
CONTRACTIONS = (
    *(("cannot", "can't", "can not"), ("I am", "I'm"), ("I have been", "I've been")),
    *((f"{verb} not", f"{verb}n't") for verb in ("do", "does", "did", "is", "are", "was", "has", "have")),
    *(("It is", "It's"), ("it is", "it's"), ("I have called", "I've called")),
)
SLOT = re.compile(r"\{(no|op):([^|]*)\|([^}]*)\}|\{(\w+)\}| \((\w+)\)|\[([^\]]*)\]")
STAYS_CAPITAL = re.compile(r"I\b|Mr |Ms |[A-Z]{2}")
LIGHT_HEAD = re.compile(r"((the|my|our|your|i|we|please|can you) ){1,2}", re.IGNORECASE)
VOCABULARY = frozenset(re.findall(r"[a-z]+", repr(GROUPS).lower()))
SHOWN = 20


class Piece(NamedTuple):
    """A part of a message. pool: of a value, `light`, `front`, or "" for words; other: a pair's other side"""

    pool: str
    text: str
    other: str = ""


Message = tuple[Piece, ...]
"""The parts of a message; the first is the greeting, the second the head. Both may be empty."""


class Row(NamedTuple):
    """A row of the run. kind: base, copy, a kind of traps or edits; slot: place of a trap's piece, else -1"""

    family: int
    kind: str
    text: str
    message: Message
    slot: int = -1
    second: bool = False


class Judged(NamedTuple):
    """A row and the one that it was dropped for, None for a kept row."""

    row: Row
    leader: Row | None

    @property
    def lost(self) -> bool:
        """Whether it was dropped for a message of its family that lacks its difference."""
        row, leader = self.row, self.leader
        if leader is None or leader.family != row.family:
            return False
        return leader.message[row.slot].text != row.message[row.slot].text

    @property
    def is_wrong(self) -> bool:
        """Whether it is a lost trap, an edit or copy that was kept, or a base message that was dropped."""
        kind = self.row.kind
        return self.lost if kind in POOLS else (self.leader is None) == (kind != "base")


def make_rows(count: int, rng: Random) -> list[Row]:
    """This many rows in their order: 40 % base messages, 30 % traps, 25 % edits, 5 % copies of bases."""
    bases = _bases(count * 2 // 5, rng)
    rows = [Row(family, "base", _written(base), base) for family, base in enumerate(bases)]
    kinds = [kind for _, kind in zip(range(count * 3 // 10), cycle(POOLS))]
    kinds += [kind for _, kind in zip(range(count // 4), cycle((*EDITS, TWO_TYPOS)))]
    kinds += ["copy"] * (count - len(rows) - len(kinds))
    for kind in kinds:
        made = None
        while made is None:
            family = rng.randrange(len(bases))
            made = _derived(family, kind, bases[family], rng)
        rows.append(made)
    starts = [rng.random() for _ in bases]
    keys = [starts[row.family] if row.kind == "base" else rng.uniform(starts[row.family], 1) for row in rows]
    return [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)]


def _bases(count: int, rng: Random) -> list[Message]:
    """Messages of 60 to 300 characters; no two with the same opening share 60 % of the words of both."""
    bases: list[Message] = []
    words_of: dict[str, list[set[str]]] = defaultdict(list)
    for _ in range(200 * count):
        opening, base = _base(rng)
        words = set(_written(base[2:]).split())
        alike = any(len(words & other) > 0.6 * len(words | other) for other in words_of[opening])
        if not alike and 60 <= len(_written(base)) <= 300:
            words_of[opening].append(words)
            bases.append(base)
        if len(bases) == count:
            return bases
    raise SystemExit(f"the grammar has no {count:,} different messages; ask for fewer --rows")


def _base(rng: Random) -> tuple[str, Message]:
    """(frame of the first sentence, a message of one to three sentences)"""
    openings, nexts = rng.choice(GROUPS)
    frames = [rng.choice(openings), *rng.sample(nexts, rng.choices((0, 1, 2), (20, 45, 35))[0])]
    short, is_letter = rng.random() < 0.4, openings not in (ALERTS, NOTICES)
    has_head = is_letter and not frames[0].startswith(("Please", "Can")) and rng.random() < 0.3
    pieces = [
        Piece(
            "front" if is_letter else "", rng.choice(GREETINGS) if is_letter and rng.random() < 0.3 else ""
        ),
        Piece("front", _said(rng.choice(HEADS), short) if has_head else ""),
    ]
    taken: set[str] = set()
    for frame in frames:
        pieces += _pieces(_said(frame, short), taken, rng)
    first = pieces[2].text
    if not pieces[2].pool and not STAYS_CAPITAL.match(first):
        pieces[2] = Piece("", first[:1].lower() + first[1:])
    return frames[0], tuple(pieces[:-1])


def _said(text: str, short: bool) -> str:
    """The text, with contractions if it is to be short."""
    for long, other, *_ in CONTRACTIONS if short else ():
        text = re.sub(rf"\b{long}\b", other, text)
    return text


def _pieces(frame: str, taken: set[str], rng: Random) -> Iterator[Piece]:
    """A sentence and a blank. taken: values that the message has, and will not have again"""
    end = 0
    for slot in SLOT.finditer(frame):
        if slot.start() > end:
            yield Piece("", frame[end : slot.start()])
        end = slot.end()
        pair, one, other, pool, light, same = slot.groups()
        if pool:
            while (value := _value(pool, rng)) in taken:
                pass
            taken.add(value)
            yield Piece(pool, value)
        elif same:
            yield Piece("", rng.choice(same.split("|")))
        else:
            sides = rng.sample((one, other) if pair else ("", f" {light}"), 2)
            yield Piece(pair or "light", *sides)
    yield Piece("", frame[end:])
    yield Piece("", " ")


def _value(pool: str, rng: Random) -> str:
    """A value of a pool."""
    if pool == "count":
        return rng.choice(COUNTS) if rng.random() < 0.25 else str(rng.randint(2, 48))
    if pool == "user":
        end = str(rng.randint(11, 99)) if rng.random() < 0.5 else ""
        return rng.choice("abcdefghjklm") + rng.choice(VALUES["surname"]).lower() + end
    return _filled("[A9]", rng.choice(SHAPES[pool]), rng) if pool in SHAPES else rng.choice(VALUES[pool])


def _filled(signs: str, text: str, rng: Random) -> str:
    """The text with other signs in place of these. signs: a regular expression"""
    return re.sub(signs, lambda found: rng.choice(LETTERS if found[0] == "A" else "123456789"), text)


def _exchanged(piece: Piece, rng: Random) -> str:
    """Another value of the pool: in an amount other digits, in a third of the codes a single other digit."""
    digits = [place for place, sign in enumerate(piece.text) if sign.isdigit()]
    if piece.other:
        return piece.other
    if piece.pool == "amount":
        return _filled("[1-9]", piece.text, rng)
    if piece.pool in SHAPES and digits and rng.random() < 1 / 3:
        place = rng.choice(digits)
        return piece.text[:place] + rng.choice("123456789") + piece.text[place + 1 :]
    return _value(piece.pool, rng)


def _written(message: Message) -> str:
    """The message as text: a capital begins a sentence."""
    text = "".join(piece.text for piece in message)
    return re.sub(r"(^|[.?!] )([a-z])", lambda found: found[1] + found[2].upper(), text)


def _having(message: Message, place: int, pool: str, text: str) -> Message:
    """The message with another piece at this place."""
    return (*message[:place], Piece(pool, text), *message[place + 1 :])


def _derived(family: int, kind: str, base: Message, rng: Random) -> Row | None:
    """A trap, edit or copy of this base message; None if it has no place for this kind, or by chance."""
    if kind not in POOLS:
        edited = _edited(kind, base, rng)
        return None if edited in (None, _written(base)) else Row(family, kind, str(edited), base)
    slots = [place for place, piece in enumerate(base) if piece.pool in POOLS[kind]]
    if not slots:
        return None
    slot = rng.choice(slots)
    old, new = base[slot], _exchanged(base[slot], rng)
    # "3" for "three" is no trap, and a value that the message has elsewhere could read as a slip.
    if new in {piece.text for piece in base} or (kind == "number" and new.isdigit() != old.text.isdigit()):
        return None
    trap = _having(base, slot, old.pool, new)
    second = rng.random() < 1 / 6
    text = _edited(rng.choice(("signature", "thanks", "typo", "RT")), trap, rng) if second else _written(trap)
    return Row(family, kind, str(text), trap, slot, second) if second == (text != _written(trap)) else None


def _edited(kind: str, message: Message, rng: Random) -> str | None:
    """The message with a harmless change of this kind, None if it has no place for it."""
    text = _written(message)
    match kind:
        case "copy":
            bare = text.rstrip(".?")
            marks = (bare, f"{bare}!!", text.replace(". ", "! "), text.replace(". ", ".\n"))
            return rng.choice((*marks, text.upper(), text.lower(), text.replace(" ", "  "), f" {text}\n"))
        case "light word":
            return _with_light_word(message, rng)
        case "RT":
            return rng.choice(FORWARDED) + text
        case "tail":
            return text + _filled("[A9]", rng.choice(TAILS), rng)
        case "thanks":
            return text + rng.choice(THANKS)
        case "signature":
            return text + rng.choice(SIGNATURES)
        case "greeting" if message[0].pool:
            return _written(_having(message, 0, "front", rng.choice(GREETINGS)))
        case "head" if message[1].text:
            return _written(_having(message, 1, "front", ""))
        case "head" if not message[0].text and (found := LIGHT_HEAD.match(text)):
            return text[found.end() :]
        case "cut end":
            return _with_cut_end(message, rng)
        case "contraction":
            return _with_contraction(text, rng)
        case "typo":
            return _written(_with_typo(message, rng))
        case "two typos":
            return _written(_with_typo(_with_typo(message, rng), rng))
    return None


def _with_light_word(message: Message, rng: Random) -> str | None:
    """A light word is added or left out, or a "the" is left out."""
    places = [at for at, piece in enumerate(message) if piece.pool == "light" or " the " in piece.text]
    if not places:
        return None
    place = rng.choice(places)
    pool, text, other = message[place]
    return _written(_having(message, place, pool, other if pool else text.replace(" the ", " ", 1)))


def _with_cut_end(message: Message, rng: Random) -> str | None:
    """Cut at 85 % of the text or later, not inside of a value."""
    text, end = _written(message), 0
    spots: list[int] = []
    for piece in message:
        spots += [end] if piece.pool else range(end, end + len(piece.text))
        end += len(piece.text)
    spots = [spot for spot in spots if 0.85 * len(text) <= spot < len(text) - 3]
    return text[: rng.choice(spots)].rstrip() + rng.choice(("…", "...", " …")) if spots else None


def _with_contraction(text: str, rng: Random) -> str | None:
    """Another way to write a contraction that it has or could have."""
    found = [(form, forms) for forms in CONTRACTIONS for form in forms if re.search(rf"\b{form}\b", text)]
    if not found:
        return None
    form, forms = rng.choice(found)
    return re.sub(rf"\b{form}\b", rng.choice([other for other in forms if other != form]), text, count=1)


def _with_typo(message: Message, rng: Random) -> Message:
    """A letter inside of a word of five or more is left out, doubled, or changes places with the next one."""
    words = [
        (place, found.start(), found[0])
        for place, piece in enumerate(message)
        for found in re.finditer(r"\b[a-z]{5,}\b", "" if piece.pool else piece.text)
        if found[0] in VOCABULARY
    ]
    if not words:
        return message
    place, start, word = rng.choice(words)
    wrong = word
    while wrong in VOCABULARY:
        at = rng.randrange(1, len(word) - 2)
        one, two = word[at], word[at + 1]
        wrong = word[:at] + rng.choice((two, one + one + two, two + one)) + word[at + 2 :]
    text = message[place].text
    return _having(message, place, "", text[:start] + wrong + text[start + len(word) :])


def main() -> None:
    """Print machine, rows and tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--profile", default="default")
    parser.add_argument("--wrong", choices=(*POOLS, *EDITS, TWO_TYPOS, "base", "copy"))
    asked = parser.parse_args()
    rows = make_rows(asked.rows, Random(asked.seed))
    sieve = Sieve(settings={"profile": asked.profile}, window=len(rows), exact_window=len(rows), exact="trie")
    verdicts = sieve.judge([row.text for row in rows])
    pairs = zip(rows, verdicts.leader.tolist(), strict=True)
    judged = [Judged(row, rows[leader] if leader >= 0 else None) for row, leader in pairs]
    console = Console(width=120, highlight=False)
    console.print(machine_line(), f"{len(rows):,} rows, seed {asked.seed}, profile {asked.profile}", sep="\n")
    bases = {row.family: row.text for row in rows if row.kind == "base"}
    for row, leader in [one for one in judged if one.row.kind == asked.wrong and one.is_wrong][:SHOWN]:
        console.print(f"base: {bases[row.family]}\n{row.kind}: {row.text}", markup=False, soft_wrap=True)
        verdict = f"leader, {leader.kind}: {leader.text}" if leader else "kept"
        console.print(f"{verdict}\n", markup=False, soft_wrap=True)
    _show_tables(console, judged)


def _show_tables(console: Console, judged: list[Judged]) -> None:
    by_kind = defaultdict(list)
    for one in judged:
        by_kind[one.row.kind].append(one)
    by_kind["all traps"] = [one for kind in POOLS for one in by_kind[kind]]
    by_kind["all but two typos"] = [one for kind in EDITS for one in by_kind[kind]]
    traps = Table("trap", "rows", "lost", "share", "alone", "with a second difference", "for another trap")
    for kind in (*POOLS, "all traps"):
        some = by_kind[kind]
        plain = [one for one in some if one.leader is None or one.leader.kind not in POOLS]
        alone, second = ([one.lost for one in plain if one.row.second == also] for also in (False, True))
        other = sum(one.lost for one in some) - sum(alone) - sum(second)
        traps.add_row(kind, *_counts(one.lost for one in some), _of_all(alone), _of_all(second), str(other))
    edits = Table("edit", "rows", "found", "share")
    for kind in (*EDITS, TWO_TYPOS, "all but two typos"):
        edits.add_row(kind, *_counts(one.leader is not None for one in by_kind[kind]))
    console.print(traps, edits)
    for kind, what in (("copy", "copies kept"), ("base", "base messages dropped for another message")):
        console.print(f"{what}: {_of_all([one.is_wrong for one in by_kind[kind]])}")


def _counts(found: Iterable[bool]) -> tuple[str, str, str]:
    all_found = list(found)
    return f"{len(all_found):,}", f"{sum(all_found):,}", f"{sum(all_found) / max(len(all_found), 1):.1%}"


def _of_all(found: list[bool]) -> str:
    return f"{sum(found):,} of {len(found):,}"


if __name__ == "__main__":
    main()
