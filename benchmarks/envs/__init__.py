"""Environments that only benchmarks and tests use."""
