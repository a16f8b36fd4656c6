"""Compares calls of other libraries with the calls of this project.

    python -m benchmarks.interfaces --libraries gymnasium,tf_agents,torchrl

Each library runs in a new virtual environment, because some need versions of
packages that conflict with those of this project. The command compares the
results of each pair of calls, prints a table, and writes
docs/results/interfaces.csv.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.adapters import vector_env
from agents.networks import observation_moments
from agents.simulation import in_graph_batch_env
from benchmarks.common import machine, tables

_RESULTS = machine.REPOSITORY / "docs/results/interfaces.csv"
_PACKAGES = {"tf_agents": ["tf-agents[reverb]==0.19.0"], "torchrl": ["torchrl", "gymnasium"]}
FIELDS = "library", "version", "call", "ours", "equal"
Pairs = dict[str, tuple[str, Any]]  # Our call and its result, by the other call.


class Count(gymnasium.Env):
  """Observes length and step; the reward is the step plus the action.

  Args:
    length: Number of steps of an episode.
    truncates: Whether episodes end by truncation instead of termination.
  """

  observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, length: int, truncates: bool) -> None:
    self._length, self._truncates = length, truncates

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode."""
    self._time = 0
    return self._observ(), {}

  def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Counts a step."""
    self._time += 1
    ends = self._time == self._length
    reward = float(self._time + action[0])
    return self._observ(), reward, ends and not self._truncates, ends and self._truncates, {}

  def _observ(self) -> np.ndarray:
    return np.array([self._length, self._time], np.float32)


class ResetTwice(gymnasium.Wrapper):
  """Continues the random numbers after a reset with a seed.

  TorchRL's `set_seed` resets the environment, and `reset` does it again. Here,
  every episode has its own seed.
  """

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode."""
    self.env.reset(seed=seed)
    return self.env.reset(options=options)


def tf_agents_pairs() -> Pairs:
  """Returns our calls for those in `tf_agents_calls`."""
  make = [lambda: Count(2, False), lambda: Count(3, True)]
  env = batch_env.BatchEnv(make)
  first = env.reset()
  steps = [env.step(np.full((2, 1), action)) for action in (0.5, -0.25)]
  inside = in_graph_batch_env.InGraphBatchEnv(batch_env.BatchEnv(make))

  @tf.function
  def play() -> in_graph_batch_env.StepResult:
    inside.reset()
    return inside.step(tf.fill([2, 1], 0.5))

  graph_step = play()
  ended = [step.terminated + step.truncated for step in steps]
  return {
    "env.batch_size": ("len(env)", len(env)),
    "env.observation_spec().shape": ("env.observation_space.shape", env.observation_space.shape),
    "env.reset().observation": ("env.reset()", first),
    "env.step(action).observation": (
      "env.step(action).next_observ",
      [step.next_observ for step in steps],
    ),
    "env.step(action).reward": ("env.step(action).reward", [step.reward for step in steps]),
    "env.step(action).discount": (
      "1 - env.step(action).terminated",
      [1 - step.terminated for step in steps],
    ),
    "env.step(action).is_last()": ("step.terminated + step.truncated", ended),
    "env.step(action).step_type == StepType.MID": (
      "~(step.terminated + step.truncated)",
      [~each for each in ended],
    ),
    "env.current_time_step().observation": (
      "step.next_observ of the latest step",
      steps[-1].next_observ,
    ),
    "env.step(action) after is_last(): observation": (
      "step.observ of the step that ended the episode",
      steps[-1].observ[0],
    ),
    "TFPyEnvironment(env).step(action) in a tf.function: observation": (
      "InGraphBatchEnv(env).step(action).next_observ",
      graph_step.next_observ,
    ),
    "TFPyEnvironment(env).step(action) in a tf.function: reward": (
      "InGraphBatchEnv(env).step(action).reward",
      graph_step.reward,
    ),
  }


def torchrl_pairs(seeds: list[int]) -> Pairs:
  """Returns our calls for those in `torchrl_calls`.

  Args:
    seeds: Seeds of the environments in TorchRL.
  """
  make = [lambda: ResetTwice(gymnasium.make("Pendulum-v1"))] * len(seeds)
  limited = [lambda: ResetTwice(gymnasium.make("Pendulum-v1", max_episode_steps=4))] * len(seeds)
  env = batch_env.BatchEnv(make)
  first = env.reset(seeds)
  # TorchRL's actions are torques of up to 2; ours lie in [-1, 1].
  step = env.step(np.full((2, 1), 0.5))
  rollout_env = batch_env.BatchEnv(limited)
  rollout_env.reset(seeds)
  rollout = rollout_env.rollout(lambda observ: np.full((2, 1), 0.5), 6)
  config = config_lib.Config().override({"algorithm.observ_moments": {"mean": 0.25, "std": 0.5}})
  make_moments = observation_moments.make(config.algorithm)
  assert make_moments
  return {
    "env.batch_size": ("len(env)", [len(env)]),
    "env.set_seed(3): seeds of the environments": ("env.reset(seeds)", seeds),
    "env.reset()['observation']": ("env.reset(seeds)", first),
    "env.step(data)['next', 'observation']": ("env.step(action).next_observ", step.next_observ),
    "env.step(data)['next', 'reward']": ("env.step(action).reward", step.reward),
    "env.rollout(5, policy=None): shape": (
      "env.rollout(None, 5)",
      env.rollout(None, 5).reward.T.shape,
    ),
    "env.rollout(6, policy, break_when_any_done=False)['next', 'truncated']": (
      "env.rollout(policy, 6).truncated",
      rollout.truncated,
    ),
    "env.rollout(6, policy, break_when_any_done=False)['next', 'terminated']": (
      "env.rollout(policy, 6).terminated",
      rollout.terminated,
    ),
    "TransformedEnv(env, StepCounter(4)): rewards": ("env.max_length=4", rollout.reward[:4]),
    "env.step_and_maybe_reset(data)[0]['next', 'observation']": (
      "env.step(action).next_observ",
      rollout.next_observ[3],
    ),
    "TransformedEnv(env, ObservationNorm(loc=-0.5, scale=2))": (
      "algorithm.observ_moments={mean: 0.25, std: 0.5}",
      make_moments(3).normalize(tf.constant(first), np.inf),
    ),
  }


def gymnasium_pairs() -> tuple[dict[str, Any], Pairs]:
  """Returns results of calls of Gymnasium, and our calls for them."""
  options: dict[str, Any] = {"num_envs": 3, "max_episode_steps": 4}
  theirs = gymnasium.make_vec("Pendulum-v1", vectorization_mode="sync", **options)
  ours = vector_env.make_vec("Pendulum-v1", **options)
  results, pairs = {}, {}

  def add(call: str, our_call: str, compute: Callable[[Any], Any]) -> None:
    results[call], pairs[call] = compute(theirs), (our_call, compute(ours))

  actions = np.full((3, 1), 1.5, np.float32)
  add(
    "gymnasium.make_vec(id, num_envs).observation_space.shape",
    "vector_env.make_vec(id, num_envs).observation_space.shape",
    lambda envs: envs.observation_space.shape,
  )
  add("envs.reset(seed=3)[0]", "envs.reset(seed=3)[0]", lambda envs: envs.reset(seed=3)[0])
  for index, name in enumerate(("observations", "rewards", "terminations", "truncations")):
    add(
      f"envs.step(actions)[{index}]: {name}",
      f"envs.step(actions)[{index}]",
      lambda envs, index=index: envs.step(actions)[index],
    )
  add("envs.get_attr('g')", "the same", lambda envs: envs.get_attr("g"))
  add("envs.set_attr('g', 5.0); envs.get_attr('g')", "the same", _set_gravity)
  theirs.close()
  ours.close()
  return results, pairs


def _set_gravity(envs: Any) -> Any:
  envs.set_attr("g", 5.0)
  return envs.get_attr("g")


def compare(
  library: str, version: str, results: dict[str, Any], pairs: Pairs
) -> list[dict[str, str]]:
  """Returns a row for each pair of calls.

  Args:
    library: Name of the other library.
    version: Version of the other library.
    results: Result of each call of the other library.
    pairs: Our call and its result, for the same calls.
  """
  assert results.keys() == pairs.keys()
  rows = []
  for call, (our_call, ours) in pairs.items():
    theirs, mine = np.asarray(results[call]), np.asarray(ours)
    equal = theirs.shape == mine.shape and np.allclose(theirs, mine, rtol=1e-6, atol=1e-6)
    values = library, version, call, our_call, "yes" if equal else "no"
    rows.append(dict(zip(FIELDS, values, strict=True)))
  return rows


def run(library: str, python: str | None) -> list[dict[str, str]]:
  """Compares one library.

  Args:
    library: "gymnasium", "tf_agents" or "torchrl".
    python: Python interpreter of an environment with the library; None creates
      the environment.
  """
  if library == "gymnasium":
    return compare(library, gymnasium.__version__, *gymnasium_pairs())
  script = pathlib.Path(__file__).with_name("peers") / f"{library}_calls.py"
  with tempfile.TemporaryDirectory() as folder:
    if not python:
      python = str(pathlib.Path(folder, "bin", "python"))
      subprocess.run([sys.executable, "-m", "venv", folder], check=True)
      subprocess.run([python, "-m", "pip", "install", "-q", *_PACKAGES[library]], check=True)
    output = subprocess.run(
      [python, "-W", "ignore", str(script)],
      check=True,
      stdout=subprocess.PIPE,
      text=True,
      env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
  data = json.loads(output.stdout.splitlines()[-1])
  results = data["results"]
  if library == "tf_agents":
    pairs = tf_agents_pairs()
  else:
    pairs = torchrl_pairs(results["env.set_seed(3): seeds of the environments"])
  return compare(library, data["version"], results, pairs)


def table(rows: list[dict[str, str]]) -> str:
  """Returns a table of the calls of one library."""
  lines = [[f"`{row['call']}`", f"`{row['ours']}`", row["equal"]] for row in rows]
  return tables.markdown(["call", "this project", "equal results"], lines)


def main(argv: list[str] | None = None) -> None:
  """Runs the benchmark."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--libraries", default="gymnasium,tf_agents,torchrl")
  parser.add_argument(
    "--python",
    action="append",
    default=[],
    metavar="LIBRARY=PATH",
    help="interpreter of an existing environment with a library",
  )
  args = parser.parse_args(argv)
  pythons = dict(each.split("=", 1) for each in args.python)
  rows = [
    row for library in args.libraries.split(",") for row in run(library, pythons.get(library))
  ]
  with _RESULTS.open("w", newline="") as file:
    writer = csv.DictWriter(file, FIELDS)
    writer.writeheader()
    writer.writerows(rows)
  print(table(rows))


if __name__ == "__main__":
  main()
