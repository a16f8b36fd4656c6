"""Small environments with predictable observations and rewards."""

import os
import signal
import time

import gymnasium
import numpy as np


class Counter(gymnasium.Env):
  """Observes [seed % 1000, step]; the reward is the index of the step, from 1.

  Args:
    length: Number of steps of an episode.
    truncates: Whether episodes end by truncation instead of termination.
  """

  def __init__(self, length: int = 3, truncates: bool = False):
    self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    self.action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)
    self.length = length
    self.truncates = truncates
    self.last_action: np.ndarray | None = None

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._seed, self._step = seed or 0, 0
    return self._observ(), {}

  def step(self, action):
    self.last_action = action
    self._step += 1
    done = self._step >= self.length
    info = {"step": self._step, "reward_part": 0.5 * self._step}
    return (
      self._observ(),
      float(self._step),
      done and not self.truncates,
      done and self.truncates,
      info,
    )

  def add(self, first, second=0):
    """Returns the sum; tests call this method through a batch."""
    return first + second

  def _observ(self):
    return np.array([self._seed % 1000, self._step], np.float32)


class Informative(Counter):
  """Returns infos that contain numbers, text and arrays."""

  def reset(self, *, seed=None, options=None):
    observ, _ = super().reset(seed=seed)
    return observ, {"reset_seed": seed, "text": "new"}

  def step(self, action):
    *rest, info = super().step(action)
    return *rest, {**info, "seed": self._seed, "array": np.full(2, self._step)}


class Target(gymnasium.Env):
  """Rewards actions near the observed number; can be learned in seconds.

  The discrete action 1 is rewarded for positive numbers, 0 for other numbers.

  Args:
    discrete: Whether actions are discrete.
    length: Number of steps of an episode.
  """

  def __init__(self, discrete: bool = False, length: int = 5):
    self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    self.action_space = (
      gymnasium.spaces.Discrete(2) if discrete else gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    )
    self._discrete = discrete
    self._length = length

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return self._draw(), {}

  def step(self, action):
    reward = self._reward(action)
    self._step += 1
    return self._draw(), reward, False, self._step >= self._length, {}

  def _reward(self, action):
    if self._discrete:
      return float((self._target > 0) == (action == 1))
    return 1 - abs(float(action[0]) - self._target)

  def _draw(self):
    self._target = float(self.np_random.uniform(-1, 1))
    return np.array([self._target], np.float32)


class Hidden(Target):
  """Splits the observation into the target plus noise, and the noise.

  Args:
    length: Number of steps of an episode.
  """

  def __init__(self, length: int = 5):
    super().__init__(length=length)
    box = gymnasium.spaces.Box(-2, 2, (1,), np.float32)
    self.observation_space = gymnasium.spaces.Dict(
      {"noise": box, "seen": gymnasium.spaces.Dict({"sum": box})}
    )

  def _draw(self):
    noise = self.np_random.uniform(-1, 1, 1).astype(np.float32)
    return {"noise": noise, "seen": {"sum": super()._draw() + noise}}


class Masked(Target):
  """Rewards the last allowed action; forbidden actions raise an error.

  Args:
    length: Number of steps of an episode.
  """

  def __init__(self, length: int = 5):
    super().__init__(length=length)
    self.observation_space = gymnasium.spaces.Dict({"mask": gymnasium.spaces.MultiBinary(4)})
    self.action_space = gymnasium.spaces.Discrete(4)

  def _reward(self, action):
    allowed = np.flatnonzero(self._mask)
    if action not in allowed:
      raise ValueError(f"Action {action} is forbidden; allowed are {allowed}.")
    return float(action == allowed[-1])

  def _draw(self):
    self._mask = np.zeros(4, np.int8)
    self._mask[self.np_random.choice(4, 2, replace=False)] = 1
    return {"mask": self._mask}


class Flash(gymnasium.Env):
  """Rewards the action that names the bright side of the previous image.

  A policy needs the latest two images, because the bright side of the current
  image is drawn independently.

  Args:
    size: Height and width of the images in pixels.
    length: Number of steps of an episode.
  """

  def __init__(self, size: int = 36, length: int = 8):
    self.observation_space = gymnasium.spaces.Box(0, 255, (size, size), np.uint8)
    self.action_space = gymnasium.spaces.Discrete(2)
    self._length = length

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._step, self._previous_side = 0, None
    return self._draw(), {}

  def step(self, action):
    reward = float(action == self._previous_side)
    self._previous_side = self._side
    self._step += 1
    return self._draw(), reward, False, self._step >= self._length, {}

  def _draw(self):
    self._side = int(self.np_random.integers(2))
    image = np.zeros(self.observation_space.shape, np.uint8)
    half = image.shape[1] // 2
    image[:, half * self._side : half * (self._side + 1)] = 255
    return image


class Inflation(Target):
  """Multiplies rewards by a factor that grows by 10 % with every step."""

  def __init__(self):
    super().__init__()
    self._reward_scale = 1.0

  def step(self, action):
    self._reward_scale *= 1.1
    observ, reward, *rest = super().step(action)
    return observ, self._reward_scale * reward, *rest


class Uneven(Target):
  """Plays episodes of 1 to `max_length` steps, depending on the seed.

  Episodes of odd length end by termination, episodes of even length by
  truncation.

  Args:
    max_length: Maximum length of an episode.
    discrete: Whether actions are discrete.
  """

  def __init__(self, max_length: int = 4, discrete: bool = False):
    super().__init__(discrete)
    self.taken = 0  # Number of steps in all episodes so far.
    self._max_length = max_length

  def reset(self, *, seed=None, options=None):
    self._length = self.episode_length(seed or 0, self._max_length)
    return super().reset(seed=seed)

  def step(self, action):
    self.taken += 1
    observ, reward, _, ended, info = super().step(action)
    is_odd = self._length % 2 == 1
    info = {**info, "reward_near": reward}
    return observ, reward, ended and is_odd, ended and not is_odd, info

  @staticmethod
  def episode_length(seed: int, max_length: int = 4) -> int:
    """Returns the length of the episode with this seed."""
    return 1 + seed % max_length


class Faulty(Counter):
  """Fails in its second step, in its constructor or in its reset.

  Args:
    fault: "constructor" or "reset" raises an error in this method. "raise",
      "exit", "kill", "hang" or "spin" is the kind of failure in the second
      step.
    length: Number of steps of an episode.
  """

  def __init__(self, fault: str, length: int = 3):
    super().__init__(length)
    self._fault = fault
    if fault == "constructor":
      raise ValueError("faulty constructor")

  def reset(self, *, seed=None, options=None):
    if self._fault == "reset":
      raise ValueError("faulty reset")
    return super().reset(seed=seed)

  def step(self, action):
    if self._step == 1:
      if self._fault == "raise":
        raise ValueError("faulty step")
      if self._fault == "exit":
        raise SystemExit(3)
      if self._fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
      if self._fault == "hang":
        time.sleep(10_000)
      if self._fault == "spin":
        while True:
          pass
    return super().step(action)
