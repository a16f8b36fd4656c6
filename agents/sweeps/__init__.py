"""Searching for settings by many runs."""
