"""The pure half of twinsieve: arrays in, verdicts out. It uses no Kafka, clock, file, log or settings."""
