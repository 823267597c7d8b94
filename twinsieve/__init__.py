"""twinsieve drops exact and near duplicates from message streams."""
