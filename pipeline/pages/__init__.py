"""HTML pages that hold texts of strangers: one renderer, templates and styles in `data/`."""
