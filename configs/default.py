"""Settings that all configs share: the defaults of `agents/config.py`.

The defaults combine many small gradient steps per batch, values and advantages
that are recomputed before each epoch, and little initial exploration. The best
published scores were reached with similar settings. docs/results.md gives the
effect of each setting.
"""

from agents import config

CONFIG = config.Config()
# `--config default` adapts to task and budget, see docs/algorithm.md. Configs
# that are derived from this config do not.
ADAPTS_TO_TASK = True
