"""The languages of generated posts. Alone in its file, so that `--help` needs no NumPy."""

LANGUAGES = ("zh", "en", "es", "ru", "ja")
