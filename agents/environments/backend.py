"""Deprecated name of `blocks.custom_backend`, kept for one release."""

from agents.environments.blocks.custom_backend import Backend

__all__ = ["Backend"]
