"""Crash folders of failed environments, and signals that end a run."""
