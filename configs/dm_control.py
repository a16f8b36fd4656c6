"""DeepMind Control: select a task with `--set env.id=dm_control/...`.

Rewards lie in [0, 1], and episodes last 1000 steps.
Needs `pip install 'batched-ppo[dm-control]'`.
"""

from agents.configs import default

CONFIG = default.CONFIG.override({"env.max_length": 1000, "steps": 3_000_000})
ADAPTS_TO_TASK = True
