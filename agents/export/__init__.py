"""Exports policies as functions that run without this package."""
