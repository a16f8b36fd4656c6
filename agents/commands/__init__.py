"""Command line: each module parses arguments and calls importable functions."""
