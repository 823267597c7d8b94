"""The input topics, as the broker describes them now."""

from __future__ import annotations

from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.settings.model import Settings

NO_INPUT = (
    "input topic does not exist; correct input.topics, or create it: "
    "twinsieve topics create --input-partitions N"
)


def described_inputs(settings: Settings, admin: Admin) -> dict[str, TopicInfo]:
    """Description of each input topic. raises: BrokerError, which names a topic that does not exist"""
    infos = admin.topics(settings.input.topics)
    missing = [name for name, info in infos.items() if info is None]
    if missing:
        raise BrokerError(f"{', '.join(missing)}: {NO_INPUT}", retryable=False)
    return {name: info for name, info in infos.items() if info is not None}
