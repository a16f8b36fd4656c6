"""Environments that misbehave in ways a batch must cope with."""

from __future__ import annotations

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

from agents.environments.data import episodes
from agents.environments.workers import protocol
from tests import toy

gymnasium.register("Odd-v0", "tests.toy:Counter", max_episode_steps=2)


def make_cheetah() -> gymnasium.Env:
  """Return an environment whose simulator nobody has heard of before."""
  return gymnasium.make("HalfCheetah-v5")


def make_cheetah_if_possible() -> gymnasium.Env:
  """Return the same, after a look at whether its simulator is there."""
  if importlib.util.find_spec("mujoco"):
    return make_cheetah()
  raise ImportError("There is no MuJoCo.")


def make_nothing() -> gymnasium.Env:
  """Return no environment at all."""


class Doubled(gymnasium.RewardWrapper):
  """Multiplies rewards."""

  def __init__(self, env: gymnasium.Env, by: float = 2.0):
    super().__init__(env)
    self._by = by

  def reward(self, reward):
    return self._by * reward


class Inside(toy.Counter):
  """Tells what it is like in the process of the environment."""

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
  """Raises what `error` returns, in its second step."""

  def __init__(self, error):
    super().__init__()
    self._error = error

  def step(self, action):
    if self._step == 1:
      raise self._error()
    return super().step(action)


class Unpicklable(Exception):
  """Holds what can't leave the process."""

  def __init__(self):
    super().__init__("unpicklable")
    self.lock = threading.Lock()


class Unbuildable(Exception):
  """Pickles, but can't be built again from what was pickled."""

  def __init__(self, first, second):
    super().__init__(f"{first} {second}")


class Empty(Exception):
  """Counts as false, as containers without items do."""

  def __len__(self):
    return 0


class Misfit(toy.Counter):
  """Returns what does not fit its spaces.

  Args:
    what: "reset", "observ" or "reward".
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
  """Returns the same array every time, with other numbers in it."""

  def __init__(self):
    super().__init__()
    self._array = np.zeros(2, np.float32)

  def _observ(self):
    self._array[:] = super()._observ()
    return self._array


class Rewards(toy.Counter):
  """Gives these rewards, one in every step of an episode."""

  def __init__(self, rewards: tuple[float, ...]):
    super().__init__(len(rewards))
    self._rewards = rewards

  def step(self, action):
    observ, _, *rest = super().step(action)
    return observ, self._rewards[self._step - 1], *rest


class Forgetful(toy.Counter):
  """Observes something else each time it is in the same state."""

  def _observ(self):
    return np.frombuffer(os.urandom(2), np.uint8).astype(np.float32)


class Ends(toy.Counter):
  """Ends its process in the second step, by signal or exit code."""

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
  """Takes its time for its second step.

  Args:
    seconds: How long.
    fault: What follows: nothing, or "kill".
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
  """Is killed soon after its second step, which it answers."""

  child = 0  # It has none; for a batch with `Forking`.

  def step(self, action):
    if self._step == 1:
      threading.Timer(
          0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return super().step(action)


class Stuck(toy.Counter):
  """Hangs in its second step, and cannot be talked to.

  Args:
    how: "native" keeps the interpreter's lock, as native code may; "deaf"
      ignores SIGTERM.
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
    fault: What goes wrong: "constructor", "close", "exit" or "hang"; all but
      the first do so while closing.
    seconds: How long closing takes.
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
  """Observes or rewards a number that is not finite."""

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
  """Is killed in its second step, while a child of its process lives on.

  Args:
    seconds: How long it takes until then.
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
  """Fails in its second step, but only the first time that it gets there.

  Args:
    path: File that is made when it does.
    fault: "hang", "stop" the whole process, or "crash" in native code.
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
  """Is killed in step 40, and then stopped when it is replayed, each once.

  Args:
    path: Of files that are made when it is.
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
  """Starts a process, writes down its id, and hangs; but only the first time.

  Args:
    path: File for the id.
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
  """Terminates a process and a fork of its own."""

  def codes(self) -> list[int]:
    """Return with what they ended."""
    server = subprocess.Popen(["sleep", "1000"])
    fork = os.fork()
    if not fork:
      time.sleep(1000)
      os._exit(0)
    server.terminate()
    os.kill(fork, signal.SIGTERM)
    return [server.wait(), os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])]


class StopsWithinAnswer(toy.Counter):
  """Has its process stopped halfway through telling of an episode's end, once.

  Args:
    path: File that is made when it has.
  """

  def __init__(self, path: str):
    super().__init__(length=2)
    self._path = pathlib.Path(path)

  def step(self, action):
    if not self._path.exists():
      protocol.send = self._send_half
    return super().step(action)

  def _send_half(self, connection, kind, message):
    self._path.touch()
    connection.sendall(kind + bytes(3))  # The length has eight.
    os.kill(os.getpid(), signal.SIGSTOP)


class Breaks(toy.Uneven):
  """Breaks in some of its episodes, and is of no use from then on.

  Args:
    how: "raise", or what is not finite: "observ" or "reward".
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
    """Return the step that breaks the episode with this seed; 0: none."""
    return seed // 7 % 3


class Refuses(Breaks):
  """Does not begin some of its episodes, and is of no use from then on.

  Args:
    how: "raise", or "observ" for what is not finite.
    most: Steps of the longest episode.
  """

  def reset(self, *, seed=None, options=None):
    observ, info = super().reset(seed=seed)
    if self.refuses(seed):
      self._broken = True
      if self._how == "raise":
        raise ValueError("no beginning")
      observ = np.full_like(observ, np.nan)
    return observ, info

  @staticmethod
  def breaks_at(seed: int) -> int:
    return 0

  @staticmethod
  def refuses(seed: int) -> bool:
    """Whether the episode with this seed does not begin."""
    return seed // 7 % 3 == 1


class Never(toy.Counter):
  """Begins one episode, wherever it is built, but only if that is the first."""

  def reset(self, *, seed=None, options=None):
    if seed != episodes.episode_seed(0, 1, 0):
      raise ValueError("never again")
    return super().reset(seed=seed)


class Tired(toy.Counter):
  """Takes a tenth of a second for each step."""

  def __init__(self):
    super().__init__(length=50)

  def step(self, action):
    time.sleep(0.1)
    return super().step(action)


class SameInfo(toy.Counter):
  """Says its step and, as a number, 7, in the same dictionary every time."""

  def __init__(self, length: int = 3):
    super().__init__(length)
    self._info = {}

  def reset(self, *, seed=None, options=None):
    observ, _ = super().reset(seed=seed)
    self._info.clear()
    return observ, self._tell()

  def step(self, action):
    *rest, _ = super().step(action)
    return *rest, self._tell()

  def _tell(self):
    self._info.update({"step": self._step, 7: 1.0})
    return self._info


class SlowReset(toy.Counter):
  """Takes its time for each reset.

  Args:
    seconds: How long.
    length: Steps of an episode.
  """

  def __init__(self, seconds: float, length: int = 3):
    super().__init__(length)
    self._seconds = seconds

  def reset(self, *, seed=None, options=None):
    time.sleep(self._seconds)
    return super().reset(seed=seed)
