"""Stepping environments from inside the graph."""
