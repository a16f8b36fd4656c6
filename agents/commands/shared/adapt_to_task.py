"""Settings for a task that no config names: rules about task and budget."""

import math
from collections.abc import Mapping
from typing import Any

from agents import config as config_lib
from agents.environments.making import task_probe

_DEFAULTS = config_lib.Algorithm()

# Budget, in steps, for which the defaults were tuned.
_STEPS = 1_000_000
_SHORT_BUDGET = 500_000
_MAX_LEARNING_RATE = 1e-3
# Number of episodes that each environment plays at least, if its budget allows.
_EPISODES = 12
_MIN_ENVS = 4
_MAX_ENVS = 64
_MAX_ENVS_OF_SHORT_BUDGET = 16
_LENGTH = 1000  # Assumed time limit, in steps, of tasks that register none.


def adapt(config: config_lib.Config, changes: Mapping[str, Any]) -> dict[str, Any]:
  """Returns settings for the task and the budget of a run, by dotted key.

  docs/algorithm.md gives the reasons.

  Args:
    config: Settings of the run without this adaptation.
    changes: Settings of the command line, by dotted key.

  Raises:
    ConfigError: If the environment cannot be built.
  """
  task = task_probe.probe(config.env)
  adapted: dict[str, Any] = {"algorithm.learning_rate": learning_rate(config.steps)}
  if task.is_discrete:
    adapted["algorithm.entropy_coef"] = 0.01
  # Minibatches of recurrent policies consist of whole segments.
  if config.network.recurrent or "algorithm.segment_length" in changes:
    return adapted
  length = task.max_length or _LENGTH
  num_envs = config.num_envs
  if "num_envs" not in changes:
    num_envs = adapted["num_envs"] = number_of_envs(config.steps, length)
  batch_size = 1024 if config.steps < _SHORT_BUDGET else 2048
  # Beta distributions do not sample by normal numbers.
  if task.has_constant_rewards and config.network.action_distribution != "beta":
    # Updates that contain whole episodes, because otherwise the policy stops to
    # explore before an episode reaches a reward.
    adapted["algorithm.action_noise"] = "pink"
    batch_size = num_envs * min(length, _LENGTH)
  adapted["algorithm.segment_length"] = segment_length(
    batch_size, num_envs, config.algorithm.minibatch_size or 1
  )
  return adapted


def learning_rate(steps: int) -> float:
  """Returns the learning rate for a budget in steps.

  The rate falls with the square root of the budget.
  """
  rate = _DEFAULTS.learning_rate * math.sqrt(_STEPS / steps)
  return float(f"{min(max(rate, _DEFAULTS.learning_rate), _MAX_LEARNING_RATE):.1g}")


def number_of_envs(steps: int, length: int) -> int:
  """Returns the number of environments, a power of two.

  Args:
    steps: Budget of all environments.
    length: Time limit of an episode in steps.
  """
  wanted = max(_MIN_ENVS, steps / (_EPISODES * length))
  maximum = _MAX_ENVS_OF_SHORT_BUDGET if steps < _SHORT_BUDGET else _MAX_ENVS
  return min(2 ** int(math.log2(wanted)), maximum)


def segment_length(batch_size: int, num_envs: int, minibatch_size: int) -> int:
  """Returns the length of segments that minibatches can divide evenly.

  Args:
    batch_size: Approximate number of steps in one update.
    num_envs: Number of environments.
    minibatch_size: Number of steps in a minibatch.
  """
  unit = minibatch_size // math.gcd(num_envs, minibatch_size)
  return unit * max(1, round(batch_size / (num_envs * unit)))
