"""Why a message was dropped or kept: of a run on files, of an app on Kafka, of any two texts."""
