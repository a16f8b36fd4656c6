"""Writes reports on runs from the files in run folders."""
