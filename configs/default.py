"""Settings that all configs share: the defaults of `agents/config.py`.

They combine many small gradient steps per batch, values and advantages that are
recomputed before each epoch, and little initial exploration, like the best
published scores. docs/results.md gives the effect of each setting."""

from agents import config

CONFIG = config.Config()
