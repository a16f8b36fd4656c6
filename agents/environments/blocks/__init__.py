"""Blocks of environments: each steps all or some environments of a batch."""
