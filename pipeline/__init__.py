"""The world around the sieve: configuration, commands, files, Kafka; every effect behind a narrow port."""
