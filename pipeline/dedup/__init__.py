"""`twinsieve dedup`: one run over files, its outputs, its state and its report."""
