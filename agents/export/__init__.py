"""Policies that run without this package."""
