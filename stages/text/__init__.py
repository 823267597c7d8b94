"""Turns raw texts into bodies: normal form, rules of the profile, key text."""
