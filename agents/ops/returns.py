"""Earlier name of `agents.ops.gae`; it remains for one release."""

from agents.ops.gae import generalized_advantage

__all__ = ["generalized_advantage"]
