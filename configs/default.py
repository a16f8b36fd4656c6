"""What all configs share; the defaults in `agents/config.py` with reasons.

Many small gradient steps on each segment, values and advantages recomputed at
every epoch, and little initial exploration are what carries the locomotion
tasks on one million steps.
"""

from agents import config

CONFIG = config.Config()
