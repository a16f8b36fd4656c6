"""Exported policies, which run without this package."""
