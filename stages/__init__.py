"""The pure half of twinsieve: arrays in, verdicts out; no Kafka, clock, file, log or configuration."""
