"""Explain why two messages are duplicates or not: the result of every step of the sieve in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.reader import MessageColumns
from twinsieve.pipeline.messages.verdict_values import ten_thousandths
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import compared_fields, scheme_of, sieve_config
from twinsieve.stages.contract import MIN_NEAR_LENGTH, SIMILARITY_SCALE, STORED_LENGTH, Bodies
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import UsageError, shown
from twinsieve.stages.fingerprint.digest import text_key
from twinsieve.stages.fingerprint.seen import SeenFingerprint
from twinsieve.stages.judge.inspect import PairReport, inspect_pair, readable_body
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.near.signatures import shared_parts


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Both messages and the result of each step of the sieve.

    texts, bodies: of the earlier and the later message; lines: (step, its result in words)
    """

    texts: tuple[str, str]
    bodies: tuple[str, str]
    lines: list[tuple[str, str]]
    report: PairReport

    def __repr__(self) -> str:
        """As it is printed, so that a notebook shows it readably."""
        return str(self)

    def __str__(self) -> str:
        """Both texts, both bodies and the lines, for a terminal: nothing in the texts can control it."""
        sides = [f"{side} {what}" for what in ("text", "body") for side in ("earlier", "later")]
        pairs = [*zip(sides, (*self.texts, *self.bodies), strict=True), *self.lines]
        width = max(len(step) for step, _ in pairs)
        return "\n".join(f"{step:{width}}  {printable(result)}" for step, result in pairs)


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    key: the values of the fields that `exact.fields` names, as bytes; None if it names none, if one of them
        is empty, or if the message is only a text
    scope: hash of the message's scope; 0 for none
    """

    text: str
    key: bytes | None = None
    scope: int = 0


def explain(earlier: Message, later: Message, settings: Settings) -> Explanation:
    """The result of every step on two messages, if the earlier one was kept and is inside the windows.

    If `exact.fields` is set, messages without a key count as different in these fields.
    """
    scheme = scheme_of(settings)
    keys = None
    if settings.exact.fields:
        keys = [earlier.key or b"earlier", later.key or b"later"]
    bodies, fingerprints = scheme.read([earlier.text, later.text], keys)
    config = sieve_config(settings, scheme.scheme_id)
    report = inspect_pair(bodies, fingerprints, config, 0, 1)
    lengths = bodies.body_lengths.tolist()
    lines = [("bodies", _bodies(lengths, bodies.exact_only.tolist()))]
    if earlier.scope != later.scope:
        lines.append(("scope", "differs: the two are never compared, whatever the other steps find"))
        report = replace(report, verdict="unique")
    lines.append(("exact", _exact(report, settings, has_key=None not in (earlier.key, later.key))))
    if settings.near.method == "hamming":
        lines.append(("near", _hamming(report, settings)))
    elif settings.near.method == "signatures":
        lines.append(("near", _signatures(fingerprints.part_hashes, config.near.share)))
    elif settings.near.method == "text":
        lines += _near(report, settings, lengths)
    else:
        lines.append(("near", "switched off (near.method: none)"))
    fate = "kept" if report.verdict == "unique" else "dropped, the earlier one leads"
    lines.append(("verdict", f"{report.verdict}: the later message is {fate}"))
    shown_bodies = (readable_body(bodies, 0), readable_body(bodies, 1))
    return Explanation((earlier.text, later.text), shown_bodies, lines, report)


def explain_features(texts: list[str], settings: Settings) -> list[str]:
    """Lines that show the SimHash of each text: features, sums and bits. Of two texts also their distance.

    With `near.distances_by_field` this is done for each of its fields.
    """
    scheme = scheme_of(settings)
    fields = scheme.config.fields
    if fields is None:
        return _fingerprints(texts, scheme, settings)
    lines = []
    for number, name in enumerate(compared_fields(settings)):
        lines += [f"field {name}", *_fingerprints(fields.of(texts, number), scheme, settings)]
    return lines


def _fingerprints(texts: list[str], scheme: Scheme, settings: Settings) -> list[str]:
    seen = [scheme.seen(text) for text in texts]
    lines = []
    for text, (bodies, fingerprint) in zip(texts, seen, strict=True):
        lines += _fingerprint(text, bodies, fingerprint, settings)
    if len(texts) == 2:
        earlier, later = (fingerprint.bits for _, fingerprint in seen)
        if earlier is None or later is None:
            lines.append("distance  none: a text without fingerprint is similar to no other")
        else:
            lines.append(f"distance  {(earlier ^ later).bit_count()} of 64 bits")
    return lines


def _fingerprint(text: str, bodies: Bodies, seen: SeenFingerprint, settings: Settings) -> list[str]:
    lines = [f"text  {text}", f"body  {readable_body(bodies, 0)}"]
    if seen.bits is None:
        if bodies.exact_only[0]:
            why = f"under {MIN_NEAR_LENGTH} characters or digits alone, so compared exactly only"
        else:
            why = f"fewer than {settings.features.min_features} features (features.min_features)"
        return [*lines, f"no fingerprint: {why}"]
    lines.append(f"{'hash':16}  {'weight':>8}  feature")
    lines += [f"{each.hashed:016x}  {each.weight:>8}  {each.text}" for each in seen.features]
    width = max(len(str(total)) for total in seen.sums)
    lines.append("sums, of bit 63 first")
    for high in range(63, -1, -_SUMS_A_LINE):
        totals = (f"{seen.sums[bit]:>{width}}" for bit in range(high, high - _SUMS_A_LINE, -1))
        lines.append(f"{high:>4}  {' '.join(totals)}")
    binary = f"{seen.bits:064b}"
    lines.append(f"bits  {' '.join(binary[i : i + _SUMS_A_LINE] for i in range(0, 64, _SUMS_A_LINE))}")
    return [*lines, f"hex   {seen.bits:016x}"]


def messages_by_id(name: str, ids: list[str], reader: InputReader) -> list[Message]:
    """For each id, the message of the first row that has it, in the order of the file. The same id twice
    gives this message twice. raises: UsageError if an id is missing; FileError"""
    messages = _messages(name, set(ids), reader, lambda columns, _first: map(id_text, columns.ids))
    missing = [message_id for message_id in ids if message_id not in messages]
    if missing:
        raise UsageError(f"{shown(name)}: has no readable row with id {missing[0]!r}; see --id-field")
    return list(messages.values()) if len(messages) > 1 else list(messages.values()) * 2


def messages_by_position(name: str, positions: list[int], reader: InputReader) -> list[Message]:
    """The messages at these positions, counted from 1 as `dedup` counts them, the earlier one first.

    raises: UsageError if no readable row is at a position; FileError
    """
    messages = _messages(
        name, set(positions), reader, lambda columns, first: [first + row for row in columns.rows]
    )
    missing = [position for position in positions if position not in messages]
    if missing:
        raise UsageError(f"{shown(name)}: has no readable row at position {missing[0]}")
    return [messages[position] for position in sorted(positions)]


def _messages(
    name: str,
    wanted: Set[object],
    reader: InputReader,
    labels: Callable[[MessageColumns, int], Iterable[object]],
) -> dict[object, Message]:
    """For each wanted label the first message that has it, if there is one, in the order of the file.

    labels: returns the labels of a chunk's readable messages; called with the chunk's columns and with the
        position of its first row
    """
    messages: dict[object, Message] = {}
    first = 1
    with InputSource(name) as source:
        for chunk in reader.chunks(source):
            columns = chunk.columns
            for row, label in enumerate(labels(columns, first)):
                if label in wanted and label not in messages:
                    key = columns.keys[row] if columns.keys is not None else None
                    key = text_key(key) if isinstance(key, str) else key
                    if row in columns.keyless:
                        key = None
                    messages[label] = Message(columns.texts[row], key, int(columns.scopes[row]))
            if len(messages) == len(wanted):
                break
            first += len(chunk.rows)
    return messages


def _bodies(lengths: list[int], exact_only: list[bool]) -> str:
    line = f"{lengths[0]} and {lengths[1]} characters"
    if any(exact_only):
        line += f"; under {MIN_NEAR_LENGTH} characters or digits alone, so compared exactly only"
    return line


def _exact(report: PairReport, settings: Settings, *, has_key: bool) -> str:
    if settings.exact.method == "none":
        return "switched off (exact.method: none)"
    if settings.exact.fields:
        fields = f"the fields {', '.join(settings.exact.fields)}"
        if not has_key:
            return f"decided by {fields}, which two texts do not have, or which are empty; taken as different"
        return f"{fields} are {'equal' if report.same_key else 'not all equal'}"
    return "the key texts are equal" if report.same_key else "the key texts differ"


def _near(report: PairReport, settings: Settings, lengths: list[int]) -> list[tuple[str, str]]:
    if not report.eligible:
        return [("near", "not compared")]
    near, layout = settings.near, settings.near.layout
    limit = near.similarity / SIMILARITY_SCALE
    how = "estimated over the whole bodies" if report.estimated else f"{report.matched} of {report.compared}"
    share = ten_thousandths(report.matched, report.compared) if report.compared else 0
    side = "at least" if share >= near.similarity else "below"
    lines = [
        ("similarity", f"{share / SIMILARITY_SCALE:.4f} ({how}), {side} {limit:.4g}"),
        ("MinHash lane", _lane(report.bands_shared, f"of {layout.bands} bands shared")),
    ]
    if min(lengths) < layout.simhash_from:
        lines.append(("SimHash lane", f"serves bodies of {layout.simhash_from} characters or more"))
    else:
        lines.append(("SimHash lane", _lane(report.tables_shared, f"of {layout.tables} tables meet")))
    if report.simhash_distance is not None:
        lines.append(("SimHash distance", f"{report.simhash_distance} of 64 bits"))
    lines += [
        ("length ratio", "passes" if report.length_ratio_ok else "too unlike to reach the similarity"),
        ("signature", "passes" if report.signature_ok else "too unlike: the index skips the pair"),
        (
            "char bag",
            "passes" if report.bag_bound_ok else "shares too few characters to reach the similarity",
        ),
        ("differences", _differences(report, near.differences, lengths)),
    ]
    if report.matched < report.compared:
        lines.append(("difference", _aligned(report.parts)))
        lines.append(("", "[earlier|later]; ! where it decides"))
    return lines


def _lane(shared: list[int], what: str) -> str:
    numbers = ", ".join(map(str, shared[:12])) + (", …" if len(shared) > 12 else "")
    return f"{len(shared)} {what}" + (f" ({numbers})" if shared else "; does not find the pair")


def _differences(report: PairReport, level: str, lengths: list[int]) -> str:
    """A line on the difference that keeps the pair apart, or would under `full`, and on the part of long
    texts that was not compared."""
    if report.in_force:
        where = f" (numbers or negations behind the first {STORED_LENGTH} characters)"
        return f"keep them apart: {report.in_force.words}{where * (report.in_force is Rule.TAIL)}"
    line = "switched off" if level == "off" else "none that keeps them apart"
    if report.reason:
        return f"{line}; near.differences: full would ({report.reason.words})"
    if level == "off" or max(lengths) <= STORED_LENGTH:
        return line
    line += f"; only the first {STORED_LENGTH} characters compared"
    if min(lengths) > STORED_LENGTH:
        line += ", and the numbers and negations of what follows if it is about as long"
    return line


_EQUAL_SHOWN = 24
_SUMS_A_LINE = 8


def _aligned(parts: list[tuple[str, str, bool]]) -> str:
    """Both bodies in one line: equal parts once, other parts as [earlier|later], with ! if the part decides.

    parts: (part of the earlier body, part of the later body, whether this difference decides)

    >>> _aligned([("新增", "新增", False), ("12", "15", True), ("例", "例", False)])
    '新增[12|15]!例'
    """
    shown = []
    for earlier, later, decides in parts:
        if earlier == later and not decides:
            half = _EQUAL_SHOWN // 2
            shown.append(earlier if len(earlier) <= _EQUAL_SHOWN else f"{earlier[:half]}…{earlier[-half:]}")
        else:
            shown.append(f"[{earlier}|{later}]{'!' if decides else ''}")
    return "".join(shown)


def _hamming(report: PairReport, settings: Settings) -> str:
    if report.simhash_distance is None:
        return "no fingerprint: too short or without features"
    fields = compared_fields(settings)
    if not fields:
        return _within(report.simhash_distance, report.distance_limit)
    limits = [settings.near.distances_by_field[name] for name in fields]
    distances = [report.simhash_distance, report.second_distance or 0]
    return "; ".join(
        f"{name} {_within(*pair)}" for name, *pair in zip(fields, distances, limits, strict=False)
    )


def _within(distance: int, limit: int) -> str:
    return f"{distance} bits apart, {'within' if distance <= limit else 'over'} {limit}"


def _signatures(parts: NDArray[np.uint64], share: int) -> str:
    """Hashes that rows 0 and 1 have in common, and how many they need."""
    counts = np.count_nonzero(parts, axis=1).tolist()
    if min(counts) < share:
        return f"{counts[0]} and {counts[1]} hashes, too few to have {share} in common: compared with nothing"
    shared = shared_parts(parts, 0, 1)
    side = "enough" if shared >= share else "too few"
    return f"{shared} of {counts[0]} and {counts[1]} hashes in common, {side}: duplicates share {share}"
