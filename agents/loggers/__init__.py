"""Loggers, which send the metrics and films of a run to other programs."""
