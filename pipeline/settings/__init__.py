"""One YAML file to typed settings, every problem at its line."""
