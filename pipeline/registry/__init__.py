"""Values whose schema a schema registry holds: Avro, JSON Schema and Protobuf.

Messages are only read. They go out as they came, so the ids of their schemas stay valid.
"""
