"""The two Kafka clients behind `pipeline.broker.ports`: `kafka_python` (default) and `confluent` (an extra).

Here is what both need; only `commands/kafka/connect.py` imports either of them.
"""
