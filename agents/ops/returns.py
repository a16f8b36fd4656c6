"""Earlier name of `agents.ops.gae`; it remains for one release."""

from __future__ import annotations

from agents.ops.gae import generalized_advantage

__all__ = ["generalized_advantage"]
