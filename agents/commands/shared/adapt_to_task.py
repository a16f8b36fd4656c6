"""Settings for a task that no config names: rules about task and budget."""

import math
from collections.abc import Mapping
from typing import Any

from agents import config as config_lib
from agents.environments.making import task_probe

_DEFAULTS = config_lib.Algorithm()

# Budget, in steps, for which the defaults were tuned.
_TUNED_BUDGET = 1_000_000
_MAX_LEARNING_RATE = 1e-3
_SHORT_BUDGET = 500_000
# Number of full-length episodes that each environment plays at least, if the
# budget allows.
_EPISODES = 12
_MIN_ENVS, _MAX_ENVS = 4, 64
_MAX_ENVS_OF_LONG_SEGMENTS = 16
# Time limit, in steps, of tasks that register none, and the limit above which
# episodes rarely reach it.
_UNKNOWN_LENGTH, _MAX_LENGTH = 1000, 2000
# Convolutions take most of the time, so updates make few passes over images.
_IMAGES: dict[str, Any] = {
  "algorithm.minibatch_size": 256,
  "algorithm.update_epochs": 4,
  "algorithm.recompute_advantages": False,
  "algorithm.learning_rate": _DEFAULTS.learning_rate,
}
# Settings of the command line to which the other sizes of a batch adapt.
SIZES = {"num_envs", "algorithm.minibatch_size"}
_NO_HIDDEN_LAYERS: dict[str, Any] = {"network.policy_layers": (), "network.value_layers": ()}


def adapt(config: config_lib.Config, changes: Mapping[str, Any]) -> dict[str, Any]:
  """Returns settings for the task and the budget of a run, by dotted key.

  docs/algorithm.md gives the reasons.

  Args:
    config: Settings of the run without this adaptation, and without SIZES of
      the command line.
    changes: Settings of the command line, by dotted key.

  Raises:
    ConfigError: If the environment cannot be built.
  """
  algorithm = config.algorithm
  task = task_probe.probe(config.env)
  adapted: dict[str, Any] = {"algorithm.learning_rate": learning_rate(config.steps)}
  if task.is_discrete:
    adapted["algorithm.entropy_coef"] = 0.01
  # Minibatches of recurrent policies consist of whole segments.
  if algorithm.update_every or config.network.recurrent or "algorithm.segment_length" in changes:
    return adapted
  if task.has_images:
    adapted |= _IMAGES
    if not task.has_vectors and config.network.hidden == "dense":
      adapted |= _NO_HIDDEN_LAYERS
  length = min(task.max_length or _UNKNOWN_LENGTH, _MAX_LENGTH)
  num_envs = number_of_envs(config.steps, length)
  batch_size = 1024 if config.steps < _SHORT_BUDGET else 2048
  # Beta distributions do not sample by normal numbers.
  if (
    task.has_constant_rewards
    and config.network.action_distribution != "beta"
    and changes.get("algorithm.action_noise", "pink") == "pink"
  ):
    # Segments as long as an episode, because otherwise the policy stops
    # exploring before an episode reaches a reward.
    adapted["algorithm.action_noise"] = "pink"
    num_envs = min(num_envs, _MAX_ENVS_OF_LONG_SEGMENTS)
    batch_size = max(batch_size, num_envs * min(length, _UNKNOWN_LENGTH))
  adapted.setdefault("algorithm.minibatch_size", algorithm.minibatch_size)
  adapted |= {"num_envs": num_envs, **{key: changes[key] for key in SIZES & changes.keys()}}
  sizes = adapted["num_envs"], adapted["algorithm.minibatch_size"] or 1
  if all(isinstance(size, int) and size > 0 for size in sizes):  # Configs check other sizes.
    adapted["algorithm.segment_length"] = segment_length(batch_size, *sizes)
  return adapted


def learning_rate(steps: int) -> float:
  """Returns the learning rate for a budget in steps, rounded to one digit.

  The rate falls with the square root of the budget.
  """
  rate = _DEFAULTS.learning_rate * math.sqrt(_TUNED_BUDGET / steps)
  return float(f"{min(max(rate, _DEFAULTS.learning_rate), _MAX_LEARNING_RATE):.1g}")


def number_of_envs(steps: int, length: int) -> int:
  """Returns the number of environments, a power of two.

  Args:
    steps: Budget of all environments.
    length: Time limit of an episode in steps.
  """
  wanted = max(_MIN_ENVS, steps / (_EPISODES * length))
  return min(2 ** int(math.log2(wanted)), _MAX_ENVS)


def segment_length(batch_size: int, num_envs: int, minibatch_size: int) -> int:
  """Returns the length of segments that minibatches can divide evenly.

  Args:
    batch_size: Minimum number of steps in one update.
    num_envs: Number of environments.
    minibatch_size: Number of steps in a minibatch.
  """
  unit = minibatch_size // math.gcd(num_envs, minibatch_size)
  return unit * math.ceil(batch_size / (num_envs * unit))
