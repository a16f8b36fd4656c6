"""Deprecated name of modules in `environments.blocks`, kept for one release."""

from agents.environments.blocks.base import StepReport as Report
from agents.environments.blocks.gymnasium_block import GymnasiumBlock as Block

__all__ = ["Block", "Report"]
