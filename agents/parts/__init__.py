"""Modules that moved; this package remains for one release."""
