"""Measurements that anyone can repeat; each prints a ratio."""
