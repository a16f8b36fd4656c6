"""Algorithms, one per file; comments refer to the equations of their papers."""
