"""The two Kafka clients behind `pipeline.broker.ports`: `kafka_python` (default) and `confluent` (an extra).

The files of this folder hold the code that both clients use. Of the rest of the program only
`commands/kafka/connect.py` imports either client.
"""
