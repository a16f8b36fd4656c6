"""BatchPPO of 2017, with the settings of its source code.

docs/algorithm.md lists the source of each setting, and the differences that
remain.
"""

from typing import Any

from agents import config as config_lib

_ALGORITHM = {
  "segment_length": None,
  "update_every": 30,
  "update_epochs": 25,
  "minibatch_size": None,
  "learning_rate": 1e-4,
  "lr_schedule": "constant",
  "adam_epsilon": 1e-8,
  "max_grad_norm": None,
  "discount": 0.995,
  "gae_lambda": 1.0,
  "recompute_advantages": False,
  "normalize_advantage": True,
  "bootstrap_truncation": False,
  "clip_ratio": None,
  "kl_target": 1e-2,
  "kl_penalty": 1.0,
  "kl_penalty_factor": 1.5,
  "kl_cutoff_factor": 2.0,
  "kl_cutoff_coef": 1000.0,
  "value_coef": 0.5,
  "value_clip": None,
  "entropy_coef": 0.0,
  "normalize_observ": True,
  "observ_clip": 5.0,
  "reward_scale": "reward",
  "reward_clip": 10.0,
}

_NETWORK = {
  "policy_layers": [200, 100],
  "value_layers": [200, 100],
  "activation": "relu",
  "mean_activation": "tanh",
  "initializer": "glorot",
  "init_output_factor": 0.1,
  "init_std": 0.35,
}

# Settings of single tasks, by environment id without version.
_TASKS: dict[str, dict[str, Any]] = {
  "HalfCheetah": {"discount": 0.99},
  "Pendulum": {"minibatch_size": 1000},  # 20 of the 50-step chunks of 2017.
  "Reacher": {"discount": 0.985, "update_every": 60},
  "Hopper": {"update_every": 60},
  "Humanoid": {"update_every": 60},
}


def apply(config: config_lib.Config) -> config_lib.Config:
  """Returns a config with the algorithm and networks of 2017.

  Args:
    config: Config that provides the task and the budget.
  """
  task = _TASKS.get(config.env.id.rpartition("-v")[0], {})
  return config.override({"num_envs": 30, "algorithm": _ALGORITHM | task, "network": _NETWORK})
