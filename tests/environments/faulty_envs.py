"""Environments with faults that a batch of environments must handle."""

import ctypes
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import gymnasium
import numpy as np

from agents.environments.data import episode_data
from agents.environments.workers import protocol
from tests import toy

gymnasium.register("Odd-v0", "tests.toy:Counter", max_episode_steps=2)


def make_cheetah() -> gymnasium.Env:
  """Returns an environment that imports its simulator only when built."""
  return gymnasium.make("HalfCheetah-v5")


def make_cheetah_if_possible() -> gymnasium.Env:
  """Returns the same, after looking for its simulator without an import."""
  if importlib.util.find_spec("mujoco"):
    return make_cheetah()
  raise ImportError("MuJoCo is not installed.")


def make_nothing() -> gymnasium.Env:
  """Returns None instead of an environment."""


class Doubled(gymnasium.RewardWrapper):
  """Multiplies rewards."""

  def __init__(self, env: gymnasium.Env, by: float = 2.0):
    super().__init__(env)
    self._by = by

  def reward(self, reward):
    return self._by * reward


class Inside(toy.Counter):
  """Reports properties of the process of the environment."""

  def __init__(self):
    super().__init__()
    self.lock = threading.Lock()  # Can't be pickled.

  def pid(self) -> int:
    return os.getpid()

  def imported(self, module: str) -> bool:
    return module in sys.modules

  def variable(self, name: str) -> str | None:
    return os.environ.get(name)


class Raises(toy.Counter):
  """Raises the error that `error` returns, in its second step."""

  def __init__(self, error):
    super().__init__()
    self._error = error

  def step(self, action):
    if self._step == 1:
      raise self._error()
    return super().step(action)


class Unpicklable(Exception):
  """An error with an attribute that can't be pickled."""

  def __init__(self):
    super().__init__("unpicklable")
    self.lock = threading.Lock()


class Unbuildable(Exception):
  """An error that can be pickled but not unpickled."""

  def __init__(self, first, second):
    super().__init__(f"{first} {second}")


class Empty(Exception):
  """An error that is false, like containers without items."""

  def __len__(self):
    return 0


class Misfit(toy.Counter):
  """Returns a value that does not fit its spaces.

  Args:
    what: The wrong value: "reset", "observ" or "reward".
  """

  def __init__(self, what: str):
    super().__init__()
    self._what = what

  def reset(self, *, seed=None, options=None):
    observ, info = super().reset(seed=seed)
    return np.zeros(3) if self._what == "reset" else observ, info

  def step(self, action):
    observ, reward, *rest = super().step(action)
    if self._what == "observ":
      observ = np.zeros(3)
    if self._what == "reward":
      reward = "much"
    return observ, reward, *rest


class Strict(toy.Counter):
  """Raises ValueError for actions outside its space; keeps the last one."""

  def __init__(self, action_space: gymnasium.Space):
    super().__init__(length=1)
    self.action_space = action_space

  def step(self, action):
    if not self.action_space.contains(action):
      raise ValueError(f"{action!r} is not in {self.action_space}.")
    self.received = action
    return super().step(action)


class Reusing(toy.Counter):
  """Returns the same array every time, with changed values."""

  def __init__(self):
    super().__init__()
    self._array = np.zeros(2, np.float32)

  def _observ(self):
    self._array[:] = super()._observ()
    return self._array


class Rewards(toy.Counter):
  """Returns the given rewards, one in each step of an episode."""

  def __init__(self, rewards: tuple[float, ...]):
    super().__init__(len(rewards))
    self._rewards = rewards

  def step(self, action):
    observ, _, *rest = super().step(action)
    return observ, self._rewards[self._step - 1], *rest


class Forgetful(toy.Counter):
  """Observes random numbers that do not depend on the seed."""

  def _observ(self):
    return np.frombuffer(os.urandom(2), np.uint8).astype(np.float32)


class Ends(toy.Counter):
  """Ends its process in the second step, by a signal or an exit code."""

  def __init__(self, signum: int = 0, code: int = 0):
    super().__init__()
    self._signum, self._code = signum, code

  def step(self, action):
    if self._step == 1:
      if self._signum:
        os.kill(os.getpid(), self._signum)
      os._exit(self._code)
    return super().step(action)


class Slow(toy.Counter):
  """Sleeps in its second step.

  Args:
    seconds: Duration of the sleep.
    fault: "kill" to kill the process afterwards.
  """

  def __init__(self, seconds: float = 0.5, fault: str = ""):
    super().__init__()
    self._seconds, self._fault = seconds, fault

  def step(self, action):
    if self._step == 1:
      time.sleep(self._seconds)
      if self._fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return super().step(action)


class DiesBehind(toy.Counter):
  """Kills its process shortly after the result of its second step."""

  child = 0  # Attribute of `Forking`, for batches that contain both.

  def step(self, action):
    if self._step == 1:
      threading.Timer(
          0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return super().step(action)


class Stuck(toy.Counter):
  """Hangs in its second step and does not react to SIGTERM.

  Args:
    how: "native" holds the interpreter's lock, as native code may;
      "sigterm" ignores SIGTERM.
  """

  def __init__(self, how: str):
    super().__init__()
    self._how = how

  def step(self, action):
    if self._step == 1:
      if self._how == "native":
        ctypes.PyDLL(None).sleep(1000)
      signal.signal(signal.SIGTERM, signal.SIG_IGN)
      time.sleep(1000)
    return super().step(action)


class Diary(toy.Counter):
  """Writes a line into a file when it is built and when it is closed.

  Args:
    path: The file.
    name: The line.
    fault: "constructor" raises when built; "close" raises, "exit" exits and
      "hang" hangs when closed.
    seconds: Duration of closing.
  """

  def __init__(self, path: pathlib.Path, name: str = "", fault: str = "",
               seconds: float = 0.0):
    super().__init__()
    self._path, self._name, self._fault = path, name, fault
    self._seconds = seconds
    if fault == "constructor":
      raise ValueError("faulty constructor")
    self._write("built")

  def close(self):
    time.sleep(self._seconds)
    self._write("closed")
    if self._fault == "close":
      raise ValueError("faulty close")
    if self._fault == "exit":
      raise SystemExit(3)
    if self._fault == "hang":
      time.sleep(1000)

  def _write(self, event: str):
    with open(self._path, "a") as file:
      file.write(f"{event} {self._name}\n")


class Infinite(toy.Counter):
  """Returns an observation or reward that is not finite."""

  def __init__(self, what: str, value: float):
    super().__init__()
    self._what, self._value = what, value

  def step(self, action):
    observ, reward, *rest = super().step(action)
    if self._what == "observ":
      observ[1] = self._value
    else:
      reward = self._value
    return observ, reward, *rest


class Forking(toy.Faulty):
  """Kills its process in its second step, while a child process continues.

  Args:
    seconds: Duration of the second step until then.
  """

  def __init__(self, seconds: float = 0.0):
    super().__init__("kill")
    self.child = 0
    self._seconds = seconds

  def step(self, action):
    if self._step == 1:
      time.sleep(self._seconds)
    return super().step(action)

  def reset(self, *, seed=None, options=None):
    self.child = os.fork()
    if not self.child:
      time.sleep(60)
      os._exit(0)
    return super().reset(seed=seed)


class Once(toy.Counter):
  """Fails in its second step, but only once.

  Args:
    path: File that records that it has failed.
    fault: "hang", "stop" for SIGSTOP, or "crash" in native code.
  """

  def __init__(self, path: str, fault: str):
    super().__init__()
    self._path, self._fault = pathlib.Path(path), fault

  def step(self, action):
    if self._step == 1 and not self._path.exists():
      self._path.touch()
      if self._fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
      if self._fault == "crash":
        ctypes.string_at(0)
      time.sleep(10_000)
    return super().step(action)


class StopsReplay(toy.Counter):
  """Kills its process in step 40, and stops the next one in the replay.

  Args:
    path: Prefix of the files that record both events.
  """

  def __init__(self, path: str):
    super().__init__(length=50)
    self._killed, self._stopped = (
        pathlib.Path(path + end) for end in ("-killed", "-stopped"))

  def step(self, action):
    if self._step == 39 and not self._killed.exists():
      self._killed.touch()
      os.kill(os.getpid(), signal.SIGKILL)
    if self._step == 5 and self._killed.exists() and not self._stopped.exists():
      self._stopped.touch()
      os.kill(os.getpid(), signal.SIGSTOP)
    return super().step(action)


class HangsWithServer(toy.Counter):
  """Starts a child process and hangs, but only once.

  Args:
    path: File to which the id of the child process is written.
  """

  def __init__(self, path: str):
    super().__init__()
    self._path, self._first = pathlib.Path(path), not os.path.exists(path)

  def reset(self, *, seed=None, options=None):
    if self._first:
      self._server = subprocess.Popen(["sleep", "1000"])
      self._path.write_text(str(self._server.pid))
    return super().reset(seed=seed)

  def step(self, action):
    if self._first and self._step == 0:
      time.sleep(10_000)
    return super().step(action)


class Terminates(toy.Counter):
  """Terminates a child process and a fork of its process."""

  def codes(self) -> list[int]:
    """Returns the exit codes of both."""
    server = subprocess.Popen(["sleep", "1000"])
    fork = os.fork()
    if not fork:
      time.sleep(1000)
      os._exit(0)
    server.terminate()
    os.kill(fork, signal.SIGTERM)
    return [server.wait(), os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])]


class StopsWithinAnswer(toy.Counter):
  """Stops its process while it sends the report of an episode, but only once.

  Args:
    path: File that records that it has stopped.
  """

  def __init__(self, path: str):
    super().__init__(length=2)
    self._path = pathlib.Path(path)

  def step(self, action):
    if not self._path.exists():
      protocol.encode = self._encode_half
    return super().step(action)

  def _encode_half(self, kind, message):
    self._path.touch()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGSTOP)).start()
    return kind + bytes(3)  # The length that follows has eight bytes.


class Breaks(toy.Uneven):
  """Fails in some of its episodes and can't be used afterwards.

  Args:
    how: "raise", or the value that is not finite: "observ" or "reward".
    most: Steps of the longest episode.
  """

  def __init__(self, how: str = "raise", most: int = 7):
    super().__init__(most)
    self._how = how
    self._broken = False

  def reset(self, *, seed=None, options=None):
    assert not self._broken
    self._breaks_at = self.breaks_at(seed)
    return super().reset(seed=seed)

  def step(self, action):
    assert not self._broken
    observ, reward, *rest = super().step(action)
    if self._step == self._breaks_at:
      self._broken = True
      if self._how == "raise":
        raise ValueError("broken")
      if self._how == "observ":
        observ[0] = np.nan
      else:
        reward = np.inf
    return observ, reward, *rest

  @staticmethod
  def breaks_at(seed: int) -> int:
    """Returns the step that fails in the episode with this seed; 0: none."""
    return seed // 7 % 3


class Refuses(Breaks):
  """Fails in the reset of some episodes and can't be used afterwards.

  Args:
    how: "raise", or "observ" for an observation that is not finite.
    most: Steps of the longest episode.
  """

  def reset(self, *, seed=None, options=None):
    observ, info = super().reset(seed=seed)
    if self.refuses(seed):
      self._broken = True
      if self._how == "raise":
        raise ValueError("broken reset")
      observ = np.full_like(observ, np.nan)
    return observ, info

  @staticmethod
  def breaks_at(seed: int) -> int:
    return 0

  @staticmethod
  def refuses(seed: int) -> bool:
    """Whether the reset with this seed fails."""
    return seed // 7 % 3 == 1


class Never(toy.Counter):
  """Fails in every reset but that of the first episode of environment 1."""

  def reset(self, *, seed=None, options=None):
    if seed != episode_data.episode_seed(0, 1, 0):
      raise ValueError("broken forever")
    return super().reset(seed=seed)


class Tired(toy.Counter):
  """Sleeps for a tenth of a second in each step."""

  def __init__(self):
    super().__init__(length=50)

  def step(self, action):
    time.sleep(0.1)
    return super().step(action)


class SameInfo(toy.Counter):
  """Returns the same info dict every time, with a key that is a number."""

  def __init__(self, length: int = 3):
    super().__init__(length)
    self._info = {}

  def reset(self, *, seed=None, options=None):
    observ, _ = super().reset(seed=seed)
    self._info.clear()
    return observ, self._update_info()

  def step(self, action):
    *rest, _ = super().step(action)
    return *rest, self._update_info()

  def _update_info(self):
    self._info.update({"step": self._step, 7: 1.0})
    return self._info


class SlowReset(toy.Counter):
  """Sleeps in each reset.

  Args:
    seconds: Duration of the sleep.
    length: Steps of an episode.
  """

  def __init__(self, seconds: float, length: int = 3):
    super().__init__(length)
    self._seconds = seconds

  def reset(self, *, seed=None, options=None):
    time.sleep(self._seconds)
    return super().reset(seed=seed)
