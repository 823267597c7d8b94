"""From raw text to bodies: normal form, profile rules, key text."""
