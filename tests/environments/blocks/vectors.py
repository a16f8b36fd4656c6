"""Vector environments for tests."""

import gymnasium
import numpy as np
from gymnasium import vector

from tests import toy
from tests.videos import canvas

_BOX = gymnasium.spaces.Box


class Parts(toy.Counter):
  """Counts like `toy.Counter`, with Dict observations and actions.

  Args:
    length: Number of steps of an episode.
    truncates: Whether episodes end by truncation instead of termination.
  """

  def __init__(self, length: int = 3, truncates: bool = False):
    super().__init__(length, truncates)
    self.observation_space = gymnasium.spaces.Dict(
      {"count": _BOX(-np.inf, np.inf, (2,), np.float32), "even": gymnasium.spaces.Discrete(2)}
    )
    self.action_space = gymnasium.spaces.Dict({"a": _BOX(-2, 2, (1,), np.float32)})

  def _observ(self):
    return {"count": super()._observ(), "even": self._step % 2}


def counters(
  num_envs: int, mode: str = "NextStep", parts: bool = False, truncates: bool = False
) -> vector.VectorEnv:
  """Returns environments whose episodes have 2, 3, 4, ... steps."""
  kind = Parts if parts else toy.Counter
  lengths = range(2, 2 + num_envs)
  return vector.SyncVectorEnv(
    [lambda length=length: kind(length, truncates) for length in lengths],
    autoreset_mode=vector.AutoresetMode(mode),
  )


def canvases(num_envs: int, render_mode: str | None = None) -> vector.VectorEnv:
  """Returns environments that render frames."""
  return vector.SyncVectorEnv([lambda: canvas.Canvas(render_mode=render_mode)] * num_envs)


class Faulty(vector.VectorEnv):
  """Returns results with one fault.

  Args:
    num_envs: Number of environments.
    fault: Kind of fault.
  """

  metadata = {"autoreset_mode": vector.AutoresetMode.NEXT_STEP}

  def __init__(self, num_envs: int, fault: str = ""):
    self._fault, self.num_envs = fault, num_envs
    self.single_observation_space = _BOX(-1, 1, (2,), np.float32)
    self.single_action_space = gymnasium.spaces.Discrete(2)
    self._count = 0
    if fault == "mode":
      self.metadata = {}
    if fault == "size":
      self.num_envs = num_envs + 1

  def reset(self, *, seed=None, options=None):
    return self._observ(), {}

  def step(self, actions):
    self._count += 1
    if self._fault == "crash" and self._count > 3:
      raise RuntimeError("No more steps.")
    zeros = np.zeros(self.num_envs)
    reward = zeros[:, None] if self._fault == "reward" else zeros
    if self._fault == "nan" and self._count > 3:
      reward = zeros + np.nan
    ended = zeros if self._fault == "flags" else zeros.astype(bool)
    info = {"x": np.array([{}] * self.num_envs, object)} if self._fault == "infos" else {}
    if self._fault == "late infos":  # As if infos of a reset repeated rewards.
      ended, info = np.full(self.num_envs, self._count % 3 == 0), {"reward_part": zeros + 1}
    return self._observ(), reward, ended, zeros.astype(bool), info

  def _observ(self):
    observ = np.zeros((self.num_envs, 2), np.float32)
    if self._fault == "float64":
      observ = observ.astype(np.float64)
    if self._fault == "shape":
      observ = observ[:, :1]
    if self._fault == "first nan":
      observ += np.nan
    return observ


def wrapped(num_envs: int) -> vector.VectorEnv:
  """Returns environments that reset themselves in addition to the vector."""
  return vector.SyncVectorEnv([lambda: gymnasium.wrappers.Autoreset(toy.Counter())] * num_envs)


def unnamed(num_envs):
  """Lacks the return annotation."""
  return counters(num_envs)


def envpool_cartpole(num_envs: int) -> vector.VectorEnv:
  """Returns EnvPool's CartPole with its interface for Gymnasium."""
  import envpool

  return envpool.make("CartPole-v1", env_type="gymnasium", num_envs=num_envs)
