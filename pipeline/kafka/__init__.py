"""The two Kafka clients behind `pipeline.ports`: kafka-python (default) and confluent-kafka (extra).

Nothing outside this package imports either of them.
"""

from __future__ import annotations

from twinsieve.pipeline.kafka.connect import connect

__all__ = ["connect"]
