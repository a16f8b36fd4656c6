"""Former name of `blocks.custom_backend`, for one release."""

from agents.environments.blocks.custom_backend import Backend

__all__ = ["Backend"]
