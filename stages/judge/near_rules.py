"""`NearRules`: what a look-up needs of the settings, whoever looks up and in whatever segment."""

from __future__ import annotations

import json
from dataclasses import astuple
from hashlib import blake2b

from twinsieve.stages.contract import NO_TIME, SieveConfig
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.judge.rules_digest import rules_digest
from twinsieve.stages.near.hamming import no_chains
from twinsieve.stages.near.propose import Begin, CandidateParams, NearIndex, max_matches
from twinsieve.stages.near.signatures import new_part_chains
from twinsieve.stages.near.verify import Scratch, VerifyParams, new_scratch
from twinsieve.stages.window.lengths import reach_of, signature_limits
from twinsieve.stages.window.ring import RingUse
from twinsieve.stages.window.segments import Segment, SegmentShape

QUESTION_BYTES = 16
_QUESTION_VERSION = 1
"""Version of what a look-up answers: raise it if a segment would give another answer under the same settings
and rules."""


class NearRules:
    """The rules of comparison as kernels take them, and the shape of the segments that fit them.

    probes: most look-ups of a row in buckets; most: most matches of a row in a segment
    shape: of segments
    """

    def __init__(self, config: SieveConfig) -> None:
        near, layout = config.near, config.layout
        self._config = config
        scans = near.candidates == "scan"
        self.is_indexed = near.method == "text" and not scans
        self.shape = SegmentShape(
            near.window.messages,
            near.segment,
            near.memory,
            ring_use(config),
            indexed=self.is_indexed,
            layout=layout,
            load=near.bucket_load,
        )
        self.probes = layout.bands + (layout.tables << layout.weak) if self.is_indexed else 0
        self.most = max_matches(self.probes, near.window.messages, scans or near.method == "hamming")
        # For entries without bits of their keys, and with them.
        limits = [signature_limits(near.similarity, keyed=keyed) for keyed in (False, True)]
        self._candidates = [
            CandidateParams(
                each, reach_of(each), int(scans), int(near.method == "hamming"), compares_texts(config)
            )
            for each in limits
        ]
        self._verify = VerifyParams(
            near.similarity,
            near.differences,
            int(near.same_id == "pass"),
            int(config.scoped),
            near.share,
        )
        self._chains = no_chains()
        self._part_chains = new_part_chains(1, 1)

    @property
    def verify(self) -> VerifyParams:
        """The rules on two messages."""
        return self._verify

    def index(self, segment: Segment, begin: Begin, exact: Begin) -> NearIndex:
        """A segment as kernels take it. begin, exact: where the two windows begin"""
        ring = segment.ring
        return NearIndex(
            begin,
            ring.kept,
            exact,
            ring.columns,
            segment.table.buckets,
            self._chains,
            self._part_chains,
            self._candidates[segment.table.buckets.keyed],
            self._verify,
        )

    def scratch(self) -> Scratch:
        """Working memory of one thread."""
        return new_scratch(phrases_of(self._config.near.words), self.probes)

    def question(self) -> bytes:
        """16 bytes that say what is asked of a segment: the scheme, all rules on two messages, and how
        candidates are found. Answers to another question do not fit."""
        near = self._config.near
        asked = {
            "version": _QUESTION_VERSION,
            "scheme": self._config.scheme_id,
            "rules": rules_digest(near),
            "candidates": near.candidates,
            "load": near.bucket_load,
            "layout": astuple(self._config.layout),
            "scoped": self._config.scoped,
            "texts": compares_texts(self._config),
        }
        written = json.dumps(asked, sort_keys=True, separators=(",", ":"))
        return blake2b(written.encode(), digest_size=QUESTION_BYTES, person=b"twinsieve-asked").digest()


NO_WINDOW = Begin(2**62, NO_TIME)
"""A window that holds no message."""


def ring_use(config: SieveConfig) -> RingUse:
    """The optional columns of the ring that this configuration needs."""
    return RingUse(
        text=config.near.method == "text",
        ids=config.near.same_id == "pass",
        scopes=config.scoped,
        simhashes=config.near.method == "hamming",
        second_simhashes=len(config.near.distances_by_field) > 1,
        parts=config.near.parts if config.near.method == "signatures" else 0,
    )


def compares_texts(config: SieveConfig) -> int:
    """1 if a copy with the same digest tag is confirmed by its stored text."""
    return int(config.key_is_text and config.near.method == "text")
