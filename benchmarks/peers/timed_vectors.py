"""Vector environments that measure their steps, for `benchmarks.overhead`."""

import time
from typing import Any

import gymnasium


class Timed(gymnasium.vector.VectorWrapper):
  """Adds up the duration of all steps in `seconds`."""

  seconds = 0.0

  def step(self, actions: Any) -> Any:
    """Steps the environments."""
    start = time.perf_counter()
    result = self.env.step(actions)
    Timed.seconds += time.perf_counter() - start
    return result


def cartpoles(num_envs: int) -> gymnasium.vector.VectorEnv:
  """Returns a vector whose steps take about 0.1 ms."""
  return Timed(gymnasium.make_vec("CartPole-v1", num_envs))


def cheetahs(num_envs: int) -> gymnasium.vector.VectorEnv:
  """Returns a vector whose steps take milliseconds."""
  return Timed(gymnasium.make_vec("HalfCheetah-v5", num_envs, vectorization_mode="sync"))
