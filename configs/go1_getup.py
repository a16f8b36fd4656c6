"""Go1Getup-v1: Unitree Go1 stands up; a task of MuJoCo Playground in EnvPool.

Needs `pip install 'batched-ppo[robots]'`.
"""

from agents.configs import go1

CONFIG = go1.CONFIG.override({"env.id": "Go1Getup-v1", "env.backend": "envpool", "num_envs": 64})
