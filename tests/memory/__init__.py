"""An embedded broker in memory: what a Kafka cluster does, on an injected clock, with fault hooks."""
