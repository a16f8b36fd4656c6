"""Former name of `agents.environments.blocks.gymnasium_block`, for one release.
"""

from agents.environments.blocks.gymnasium_block import Block
from agents.environments.blocks.gymnasium_block import Report

__all__ = ["Block", "Report"]
