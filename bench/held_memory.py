"""Peak memory of one `run` with hostile input, beside what `lint` says of it.

    python -m bench.held_memory [--client confluent] [--case batches]

On a broker of its own, for each case: a process with both roles takes the input until all of it is out.
`batches`: zstd batches that unpack to 58 MB each, of messages of 3.9 MB; `growing`: texts that NFKC makes
eighteen times as long; `large`: messages of `input.max_bytes` that no compression makes smaller. What is
printed is the growth of the process over one that has its libraries and has judged a few messages.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.held_memory import CASES, measure, settings_of
from tests.broker.worlds import fresh
from twinsieve.pipeline.service.cost import held_by


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--case", choices=[*CASES], action="append")
    parser.add_argument("--pending-bytes", default="512MiB")
    options = parser.parse_args()
    print(machine_line())
    with Cluster().start() as cluster, tempfile.TemporaryDirectory() as folder:
        for case in options.case or CASES:
            place = Path(folder) / fresh()
            settings = settings_of(
                options.client, cluster.bootstrap, place, pending_bytes=options.pending_bytes
            )
            growth, base, took, errors = measure(settings, case)
            said = held_by(settings, 1).process
            print(
                f"{options.client}, {case}: {growth >> 20:,} MiB beside {base >> 20} of Python and its "
                f"packages; lint says {said >> 20:,}; {took:.0f} s {'; '.join(errors)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
