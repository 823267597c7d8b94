"""Messages that no program expects, through the whole service on a real broker.

Each ends in exactly one place: out as it came, or a dead letter that says why. None stops the others.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.broker.services import POSTS, Service, origins, wait_for
from tests.broker.worlds import read_all
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, Partition, Records


def reason(records: Records, row: int) -> bytes | None:
    return dict(records.headers[row]).get("twinsieve-reason")


def test_each_hostile_message_ends_in_one_place(service: Service) -> None:
    def post(text: str) -> bytes:
        return b'{"id": null, "text": "%s"}' % text.encode()

    many: list[tuple[str, str | bytes | None]] = [(f"n{number}", b"") for number in range(10_000)]
    service.produce(
        (b"k", post("今天武汉下雨了，大家出门记得带伞"), []),
        (b"k", None, []),
        (b"k", post("一条消息的头没有值，也应该原样出来"), [("empty", None), ("empty", b"")]),
        (b"k", post("一万个头的消息不会拖垮任何人，也不会丢"), many),
        (b"\xff\xfe", post("键不是文字也没有关系，键只是字节而已"), []),
        (b"k", Random(1).randbytes(5_000_000), []),
        (b"k", post("五兆字节的消息太大了" + "长" * 1_700_000), []),
        (b"k", b"\xff\xfe\x00", []),
        (b"k", b"[" * 100_000, []),
        (b"k", b'{"id": 1}', []),
        (b"k", b'{"text": ["no text"]}', []),
        (b"k", b"", []),
        (None, post("没有键的消息照样要出来，不能丢在半路"), []),
        (b"k", post("今天武汉下雨了，大家出门记得带伞"), []),
    )
    service.start()
    wait_for(lambda: service.count("out", "dup", "dead") >= 14, service)
    out, duplicates, dead = (service.read(kind) for kind in ("out", "dup", "dead"))
    ended = [*origins(out), *origins(duplicates), *origins(dead)]
    assert sorted(ended) == list(range(14)), "each once"
    assert list(origins(duplicates)) == [13]
    assert {offset: reason(dead, row) for offset, row in origins(dead).items()} == {
        5: b"too_large",
        6: b"too_large",
        7: b"not_utf8",
        8: b"invalid_json",
        9: b"missing_field",
        10: b"not_text",
        11: b"empty",
    }
    assert out.values[origins(out)[1]] is None
    assert [*out.headers[origins(out)[2]][:2]] == [("empty", None), ("empty", b"")]
    assert len(out.headers[origins(out)[3]]) == 10_001
    assert out.keys[origins(out)[4]] == b"\xff\xfe"


def test_messages_without_a_timestamp_are_judged_like_any_other(service: Service) -> None:
    rain, sun = POSTS[:2]
    service.post(rain, sun, rain, timestamp_ms=-1)
    service.post(sun)
    source = Partition(service.settings.input.topics[0], 0)
    assert read_all(service.broker, source).timestamps_ms[:3] == [NO_TIMESTAMP] * 3, "none was added"
    service.start()
    wait_for(lambda: service.count("out", "dup", "dead") >= 4, service)
    assert list(origins(service.read("out"))) == [0, 1]
    assert list(origins(service.read("dup"))) == [2, 3]


def test_a_key_that_is_no_text_is_a_dead_letter_where_the_text_is_the_key(
    serving: Callable[..., Service], bootstrap: str
) -> None:
    service = serving(bootstrap, part="key", encoding="text")
    service.produce(
        (b"\xff\xfe\x00", b"undecodable", []),
        ("今天武汉下雨了，大家出门记得带伞".encode(), b"readable", []),
        (None, b"no key at all", []),
    )
    service.start()
    wait_for(lambda: service.count("out", "dead") >= 3, service)
    dead = service.read("dead")
    assert {at: reason(dead, row) for at, row in origins(dead).items()} == {0: b"not_utf8", 2: b"null"}
    assert dead.keys == [b"\xff\xfe\x00", None]
    assert service.read("out").values == [b"readable"]
