"""Former name of modules in `agents.environments.blocks`, for one release."""

from agents.environments.blocks.base import StepReport as Report
from agents.environments.blocks.gymnasium_block import GymnasiumBlock as Block

__all__ = ["Block", "Report"]
