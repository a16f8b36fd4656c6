"""Deprecated name of `agents.ops.gae`, kept for one release."""

from agents.ops.gae import generalized_advantage

__all__ = ["generalized_advantage"]
