"""What all configs share; the defaults in `agents/config.py` with reasons.

Many small gradient steps on each segment, values and advantages recomputed at
every epoch, and little initial exploration, as the best published scores have
it. docs/results.md says what each is worth.
"""

from agents import config

CONFIG = config.Config()
