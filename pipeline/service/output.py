"""One app has one output: whoever starts it with another would suppress the messages of both.

The index writes the output's name beside each log offset that it commits. What uses the app's name for
another pipeline finds it there.
"""

from __future__ import annotations

from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Admin, BrokerError, Partition
from twinsieve.pipeline.index.ends import recorded_output
from twinsieve.pipeline.settings.model import Settings


def refuse_another_output(settings: Settings, admin: Admin) -> None:
    """Do nothing where the app has no output yet, or this one. Input topics may come and go.

    raises: BrokerError for another output, with what to do; a retryable one where no broker can tell just now
    """
    group = Names(settings.app).index
    # The index before this one may have died in a transaction, which is open until the next one takes over.
    held = admin.group_offsets(group, stable=False).get(Partition(Names(settings.app).fingerprints, 0))
    known = recorded_output(held)
    if known and known != settings.output.topic:
        raise BrokerError(
            f"app {settings.app} writes to {known}, and output.topic is {settings.output.topic}: two "
            "pipelines of one app would suppress each other's messages; use another app name, or, if the "
            "output has moved for good, stop every process and start the first one with "
            "`twinsieve run --move-output`",
            retryable=False,
        )
