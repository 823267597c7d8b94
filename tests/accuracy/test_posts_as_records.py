"""Real posts, 300,000 records in every codec: what is read and written again equals what kafka-python reads and writes."""

from __future__ import annotations

import gzip
from itertools import chain, cycle, islice

import numpy as np
import pytest
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from tests.accuracy.data_sets import data_dir
from tests.stages.rows.library_batches import written_by_library
from twinsieve.pipeline.broker.records import Copies, Partition
from twinsieve.pipeline.kafka.record_batches import BatchGroup, header_of, is_whole
from twinsieve.pipeline.kafka.unpack_batches import GZIP, LZ4, SNAPPY, ZSTD
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.stages.rows.record_copies import copy_records

_RECORDS, _BATCH = 300_000, 3_000
_AT = Partition("posts", 1)


@pytest.mark.usefixtures("data_dir")
def test_posts_are_read_and_written_as_kafka_python_does_it() -> None:
    files = sorted(data_dir().glob("*_dev.jsonl.gz"))
    lines = cycle(chain.from_iterable(gzip.decompress(path.read_bytes()).splitlines() for path in files))
    codecs = cycle([0, GZIP, SNAPPY, LZ4, ZSTD])
    for first in range(0, _RECORDS, _BATCH):
        posts = [*islice(lines, _BATCH)]
        builder = MemoryRecordsBuilder(2, next(codecs), 1 << 30)
        for row, post in enumerate(posts):
            headers = [("trace", b"%d" % row)] if row % 3 else []
            builder.append(first + row, b"%d" % row if row % 2 else None, post, headers)
        builder.close()
        packed = bytes(builder.buffer())
        header = header_of(memoryview(packed))
        assert header is not None
        assert is_whole(memoryview(packed), header)
        group = BatchGroup(_AT, 1 << 30)
        assert group.add(memoryview(packed), header)
        records = group.decode()
        assert records is not None
        rows = [*next(MemoryRecords(packed))]
        assert records.values == posts
        columns = records.offsets, records.timestamps_ms, records.keys, map(list, records.headers)
        theirs = [(row.offset, row.timestamp, row.key, row.headers) for row in rows]
        assert [*zip(*columns, strict=True)] == theirs
        table = HeaderTable(_BATCH)
        table.add("origin", texts=table.number_of(b"posts[1]@"), numbers=records.columns.offsets)
        copies = Copies(records, np.arange(_BATCH), table.headers())
        made = copy_records([copies.copied(0)], 1 << 20)
        again = [[*row.headers, ("origin", b"posts[1]@%d" % row.offset)] for row in rows]
        columns = [row.timestamp for row in rows], [row.key for row in rows], posts, again
        expected = written_by_library([*zip(*columns, strict=True)], 1 << 20)
        assert [each._replace(records=bytes(each.records)) for each in made] == expected
