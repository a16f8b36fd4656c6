"""Former name of `agents.environments.blocks.backend`, for one release."""

from agents.environments.blocks.backend import Backend

__all__ = ["Backend"]
