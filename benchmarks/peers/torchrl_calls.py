"""Results of TorchRL's environment interface, for `benchmarks.interfaces`.

This file imports nothing of the project, because PyTorch needs an environment
of its own. It prints the results as JSON, by the text of the call.
"""

import json

import torch
import torchrl
from tensordict import nn
from torchrl._utils import seed_generator
from torchrl.envs import GymEnv, ObservationNorm, SerialEnv, StepCounter, TransformedEnv

SEED, NUM_ENVS, LIMIT = 3, 2, 4


def make(*transforms):
  """Returns two environments with transforms."""

  def construct():
    env = GymEnv("Pendulum-v1")
    for transform in transforms:
      env = TransformedEnv(env, transform())
    return env

  env = SerialEnv(NUM_ENVS, construct)
  env.set_seed(SEED)
  return env


def main():
  """Prints the results."""
  env = make()
  seeds = [SEED]
  while len(seeds) < NUM_ENVS:
    seeds.append(seed_generator(seeds[-1]))
  data = env.reset()
  results = {
    "env.batch_size": list(env.batch_size),
    "env.set_seed(3): seeds of the environments": seeds,
    "env.reset()['observation']": data["observation"],
  }
  data["action"] = torch.full((NUM_ENVS, 1), 1.0)
  data = env.step(data)
  results["env.step(data)['next', 'observation']"] = data["next", "observation"]
  results["env.step(data)['next', 'reward']"] = data["next", "reward"][:, 0]
  rollout = env.rollout(5, policy=None)
  results["env.rollout(5, policy=None): shape"] = list(rollout.shape)
  env = make(lambda: StepCounter(LIMIT))
  policy = nn.TensorDictModule(
    lambda observation: torch.ones_like(observation[..., :1]), ["observation"], ["action"]
  )
  rollout = env.rollout(6, policy, break_when_any_done=False)
  for name in ("truncated", "terminated"):
    key = f"env.rollout(6, policy, break_when_any_done=False)['next', '{name}']"
    results[key] = rollout["next", name][..., 0].T
  results["TransformedEnv(env, StepCounter(4)): rewards"] = rollout["next", "reward"][..., 0].T[
    :LIMIT
  ]
  env = make(lambda: StepCounter(LIMIT))
  data = env.reset()
  for _ in range(LIMIT):
    data["action"] = torch.ones(NUM_ENVS, 1)
    following, data = env.step_and_maybe_reset(data)
  results["env.step_and_maybe_reset(data)[0]['next', 'observation']"] = following[
    "next", "observation"
  ]

  def norm():
    return ObservationNorm(loc=-0.5, scale=2.0, in_keys=["observation"])

  results["TransformedEnv(env, ObservationNorm(loc=-0.5, scale=2))"] = make(norm).reset()[
    "observation"
  ]
  data = {
    key: value.tolist() if isinstance(value, torch.Tensor) else value
    for key, value in results.items()
  }
  print(json.dumps({"version": torchrl.__version__, "results": data}))


if __name__ == "__main__":
  main()
