"""Deprecated names of modules that moved, kept for one release."""
