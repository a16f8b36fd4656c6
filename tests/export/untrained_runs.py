"""Creates run folders with untrained policies."""

import numpy as np

from agents import build
from agents import config as config_lib
from agents.environments.making import make
from agents.export import policy as policy_lib
from agents.training.run_folder import checkpoint, run_folder

CHANGES = {  # Changed settings, by name of the policy.
  "box": {"env.id": "Pendulum-v1"},
  "cheetah": {"env.id": "HalfCheetah-v5"},
  "choice": {"env.id": "CartPole-v1"},
  "beta": {"env.id": "Pendulum-v1", "network.action_distribution": "beta"},
  "squashed": {"env.id": "Pendulum-v1", "network.action_distribution": "squashed_gaussian"},
  "gru": {"env.id": "CartPole-v1", "network.recurrent": "gru"},
  "lstm": {"env.id": "Pendulum-v1", "network.recurrent": "lstm", "network.frame_stack": 2},
  "pictures": {"env.id": "tests.toy:Flash", "network.frame_stack": 3},
  "impala": {"env.id": "tests.toy:Flash", "network.conv": "impala"},
  "asymmetric": {
    "env.id": "tests.toy:Hidden",
    "network.policy_observ": ["seen"],
    "network.frame_stack": 2,
  },
  "masked": {
    "env.id": "Taxi-v4",
    "env.wrappers": [{"ActionMask": {}}],
    "network.policy_observ": ["observation"],
    "network.action_mask": "action_mask",
  },
  "asymmetric gru": {
    "env.id": "tests.toy:Hidden",
    "network.policy_observ": ["seen"],
    "network.recurrent": "gru",
  },
  "nested": {"env.id": "tests.echo:Echo", "env.max_length": 20, "env.kwargs": {"space": "nested"}},
}


def make_run(logdir, name) -> run_folder.RunFolder:
  """Creates a run folder with an untrained policy.

  Large initial outputs make the actions depend on the observations.
  """
  config = config_lib.Config().override(
    {
      "algorithm.minibatch_size": 64,
      "env_processes": False,
      "network.init_output_factor": 1.0,
      "algorithm.segment_length": 32,
      **CHANGES[name],
    }
  )
  folder = run_folder.create(str(logdir), name, config)
  env = make.MakeEnv(config.env)()
  algorithm = build.algorithm(config, env.observation_space, env.action_space)
  env.close()
  rng = np.random.default_rng(0)
  state = {}
  for key, variable in algorithm.variables().items():
    array = np.array(variable)
    if key.startswith("observ/"):  # Moments of the observation normalizer.
      array = rng.uniform(1, 2, array.shape).astype(array.dtype)
    state[f"variable/{key}"] = array
  checkpoint.save(folder.checkpoints, 0, state, {})
  return folder


def load(tmp_path, name, sampled=False) -> policy_lib.ExportablePolicy:
  """Returns the policy of a new run folder."""
  folder = make_run(tmp_path, name)
  return policy_lib.load(folder, checkpoint.newest_readable(folder.checkpoints), sampled)
