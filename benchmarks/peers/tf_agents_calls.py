"""Results of TF-Agents' environment interface, for `benchmarks.interfaces`.

This file imports nothing of the project, because TF-Agents needs an environment
of its own. It prints the results as JSON, by the text of the call.
"""

import json

import numpy as np
import tensorflow as tf
import tf_agents
from tf_agents.environments import batched_py_environment, py_environment, tf_py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step

ACTIONS = [0.5, -0.25, 0.75]


class Count(py_environment.PyEnvironment):
  """Observes length and step; the reward is the step plus the action."""

  def __init__(self, length, truncates):
    super().__init__()
    self._length, self._truncates = length, truncates

  def action_spec(self):
    """Returns one number in [-1, 1]."""
    return array_spec.BoundedArraySpec((1,), np.float32, -1, 1, "action")

  def observation_spec(self):
    """Returns two numbers."""
    return array_spec.ArraySpec((2,), np.float32, "observation")

  def _reset(self):
    self._time = 0
    return time_step.restart(self._observ())

  def _step(self, action):
    if self._current_time_step.is_last():
      return self.reset()
    self._time += 1
    reward = float(self._time + action[0])
    if self._time < self._length:
      return time_step.transition(self._observ(), reward)
    end = time_step.truncation if self._truncates else time_step.termination
    return end(self._observ(), reward)

  def _observ(self):
    return np.array([self._length, self._time], np.float32)


def make():
  """Returns two environments, of which one terminates and one truncates."""
  return batched_py_environment.BatchedPyEnvironment(
    [Count(2, False), Count(3, True)], multithreading=False
  )


def main():
  """Prints the results."""
  env = make()
  results = {
    "env.batch_size": env.batch_size,
    "env.observation_spec().shape": env.observation_spec().shape,
    "env.reset().observation": env.reset().observation,
  }
  # Stops before the environments reset themselves in another step than ours.
  steps = [env.step(np.full((2, 1), action, np.float32)) for action in ACTIONS[:2]]
  results |= {
    "env.step(action).observation": [step.observation for step in steps],
    "env.step(action).reward": [step.reward for step in steps],
    "env.step(action).discount": [step.discount for step in steps],
    "env.step(action).is_last()": [step.is_last() for step in steps],
    "env.step(action).step_type == StepType.MID": [step.step_type == 1 for step in steps],
    "env.current_time_step().observation": env.current_time_step().observation,
  }
  after = env.step(np.full((2, 1), ACTIONS[2], np.float32))
  results["env.step(action) after is_last(): observation"] = after.observation[0]
  in_graph = tf_py_environment.TFPyEnvironment(make())

  @tf.function
  def play():
    in_graph.reset()
    step = in_graph.step(tf.fill([2, 1], ACTIONS[0]))
    return step.observation, step.reward

  observation, reward = play()
  results["TFPyEnvironment(env).step(action) in a tf.function: observation"] = observation.numpy()
  results["TFPyEnvironment(env).step(action) in a tf.function: reward"] = reward.numpy()
  data = {key: np.asarray(value).tolist() for key, value in results.items()}
  print(json.dumps({"version": tf_agents.__version__, "results": data}))


if __name__ == "__main__":
  main()
