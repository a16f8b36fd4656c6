"""Environments that fail, misbehave or return facts about their process."""

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
from agents.environments.workers import protocol, worker_main
from tests import toy

gymnasium.register("Odd-v0", "tests.toy:Counter", max_episode_steps=2)


def make_cheetah() -> gymnasium.Env:
  """Returns HalfCheetah; MuJoCo is imported by this call, not before."""
  return gymnasium.make("HalfCheetah-v5")


def make_cheetah_if_possible() -> gymnasium.Env:
  """Searches for MuJoCo without importing it, then returns HalfCheetah."""
  if importlib.util.find_spec("mujoco"):
    return make_cheetah()
  raise ImportError("MuJoCo is not installed.")


def make_nothing() -> gymnasium.Env:
  """Returns None instead of an environment."""


class Doubled(gymnasium.RewardWrapper):
  """Multiplies rewards by a factor, 2 by default."""

  def __init__(self, env: gymnasium.Env, factor: float = 2.0):
    super().__init__(env)
    self._factor = factor

  def reward(self, reward):
    return self._factor * reward


class ProcessInfo(toy.Counter):
  """Returns facts about the process in which the environment runs."""

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
  """Calls `make_error` in its second step and raises the returned error."""

  def __init__(self, make_error):
    super().__init__()
    self._make_error = make_error

  def step(self, action):
    if self._step == 1:
      raise self._make_error()
    return super().step(action)


class FailsToPickleError(Exception):
  """An error with an attribute that can't be pickled."""

  def __init__(self):
    super().__init__("unpicklable")
    self.lock = threading.Lock()


class FailsToUnpickleError(Exception):
  """An error that can be pickled but not unpickled.

  Unpickling passes only the message to the constructor, which needs two
  arguments.
  """

  def __init__(self, first, second):
    super().__init__(f"{first} {second}")


class FalsyError(Exception):
  """An error with length 0, so that its truth value is false."""

  def __len__(self):
    return 0


class WrongShapeOrType(toy.Counter):
  """Returns observations of a wrong shape, or rewards of a wrong type.

  Args:
    wrong_part: "reset" for the observation of each reset; "observ" or "reward"
      for the observation or reward of each step.
  """

  def __init__(self, wrong_part: str):
    super().__init__()
    self._wrong_part = wrong_part

  def reset(self, *, seed=None, options=None):
    observ, info = super().reset(seed=seed)
    return np.zeros(3) if self._wrong_part == "reset" else observ, info

  def step(self, action):
    observ, reward, *rest = super().step(action)
    if self._wrong_part == "observ":
      observ = np.zeros(3)
    if self._wrong_part == "reward":
      reward = "text"
    return observ, reward, *rest


class ChecksActions(toy.Counter):
  """Raises ValueError for actions outside of the action space.

  The attribute `received` is the latest action.
  """

  def __init__(self, action_space: gymnasium.Space):
    super().__init__(length=1)
    self.action_space = action_space

  def step(self, action):
    if not self.action_space.contains(action):
      raise ValueError(f"{action!r} is not in {self.action_space}.")
    self.received = action
    return super().step(action)


class Reusing(toy.Counter):
  """Returns every observation in the same array and overwrites its values."""

  def __init__(self):
    super().__init__()
    self._array = np.zeros(2, np.float32)

  def _observ(self):
    self._array[:] = super()._observ()
    return self._array


class Rewards(toy.Counter):
  """Returns the given rewards one by one; the last one ends the episode."""

  def __init__(self, rewards: tuple[float, ...]):
    super().__init__(len(rewards))
    self._rewards = rewards

  def step(self, action):
    observ, _, *rest = super().step(action)
    return observ, self._rewards[self._step - 1], *rest


class IgnoresSeed(toy.Counter):
  """Returns random observations that do not depend on the seed."""

  def _observ(self):
    return np.frombuffer(os.urandom(2), np.uint8).astype(np.float32)


class DiffersLater(toy.Counter):
  """Changes its results by one bit, or fails, once a file exists.

  Args:
    path: Path of the file.
    part: "observation", "reward" or "error".
    length: Number of steps of an episode.
  """

  def __init__(self, path: str, part: str, length: int = 50):
    super().__init__(length)
    self._path, self._part = pathlib.Path(path), part

  def step(self, action):
    observ, reward, *rest = super().step(action)
    if self._path.exists():
      if self._part == "error" and self._step == 2:
        raise ValueError("fails since today")
      if self._part == "observation":
        observ = np.nextafter(observ, np.float32(np.inf))
      if self._part == "reward":
        reward = float(np.nextafter(np.float32(reward), np.float32(np.inf)))
    return observ, reward, *rest


class Prints(toy.Counter):
  """Prints more than the buffer of stdout holds in each reset."""

  def reset(self, *, seed=None, options=None):
    print(10_000 * ".")
    return super().reset(seed=seed)


class ChangesFolder(toy.Counter):
  """Changes the current folder of its process.

  Args:
    path: Path of the new folder.
  """

  def __init__(self, path: str):
    super().__init__()
    os.chdir(path)


class Ends(toy.Counter):
  """Ends its process in the second step.

  Args:
    signum: Signal that the process sends to itself; 0 for none.
    code: Exit code of the process if `signum` is 0.
  """

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
    fault: "kill" kills the process after the sleep.
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


class DiesAfterStep(toy.Counter):
  """Returns from its second step and kills its process 0.2 seconds later."""

  child = 0  # Lets `batch.get("child")` work in batches that contain `Forking`.

  def step(self, action):
    if self._step == 1:
      threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return super().step(action)


class Stuck(toy.Counter):
  """Hangs in its second step and does not react to SIGTERM.

  Args:
    failure: "native" hangs in native code that keeps Python's global lock;
      "sigterm" hangs in Python code and ignores SIGTERM.
  """

  def __init__(self, failure: str):
    super().__init__()
    self._failure = failure

  def step(self, action):
    if self._step == 1:
      if self._failure == "native":
        ctypes.PyDLL(None).sleep(1000)
      signal.signal(signal.SIGTERM, signal.SIG_IGN)
      time.sleep(1000)
    return super().step(action)


class FailsInWorkers(toy.Counter):
  """Can be built in one process only.

  Args:
    pid: Id of this process.
  """

  def __init__(self, pid: int):
    super().__init__()
    if os.getpid() != pid:
      raise ValueError("faulty constructor")


class LogsLifetime(toy.Counter):
  """Appends a line to a file when it is built and when it is closed.

  Args:
    path: The file.
    name: Word after "built" or "closed" in the line.
    fault: "constructor" makes the constructor raise. "close", "exit" and "hang"
      make `close` raise ValueError, raise SystemExit or hang.
    seconds: Duration of a sleep at the start of `close`.
  """

  def __init__(self, path: pathlib.Path, name: str = "", fault: str = "", seconds: float = 0.0):
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
  """Returns an observation or a reward that is not finite.

  Args:
    wrong_part: "observ" or "reward".
    value: The value to return: NaN or infinity.
  """

  def __init__(self, wrong_part: str, value: float):
    super().__init__()
    self._wrong_part, self._value = wrong_part, value

  def step(self, action):
    observ, reward, *rest = super().step(action)
    if self._wrong_part == "observ":
      observ[1] = self._value
    else:
      reward = self._value
    return observ, reward, *rest


class Forking(toy.Faulty):
  """Forks in each reset; kills its process, but not the fork, in step 2.

  Args:
    seconds: Duration of a sleep in the second step, before the kill.
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


class FailsOnce(toy.Counter):
  """Fails in its second step, but only once.

  Args:
    path: File that the failure creates; steps do not fail while it exists.
    fault: "hang", "stop" (by SIGSTOP) or "crash" (in native code).
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
  """Kills its process in step 40, and stops the next process in step 6.

  The stop happens while the next process replays the first 39 steps.

  Args:
    path: Prefix of two files, which record the kill and the stop.
  """

  def __init__(self, path: str):
    super().__init__(length=50)
    self._killed, self._stopped = (pathlib.Path(path + end) for end in ("-killed", "-stopped"))

  def step(self, action):
    if self._step == 39 and not self._killed.exists():
      self._killed.touch()
      os.kill(os.getpid(), signal.SIGKILL)
    if self._step == 5 and self._killed.exists() and not self._stopped.exists():
      self._stopped.touch()
      os.kill(os.getpid(), signal.SIGSTOP)
    return super().step(action)


class HangsWithChild(toy.Counter):
  """Starts a child process, then hangs in a step, but only once.

  Args:
    path: File that receives the id of the child process; an environment built
      while the file exists does not hang.
    hangs_at: Number of steps before it hangs.
  """

  def __init__(self, path: str, hangs_at: int = 0):
    super().__init__()
    self._path, self._first = pathlib.Path(path), not os.path.exists(path)
    self._hangs_at = hangs_at

  def reset(self, *, seed=None, options=None):
    if self._first:
      self._child = subprocess.Popen(["sleep", "1000"])
      self._path.write_text(str(self._child.pid))
    return super().reset(seed=seed)

  def step(self, action):
    if self._first and self._step == self._hangs_at:
      time.sleep(10_000)
    return super().step(action)


class TerminatesChildren(toy.Counter):
  """Starts and terminates child processes on request."""

  def terminate_children(self) -> list[int]:
    """Terminates a new program and a new fork; returns their exit codes."""
    program = subprocess.Popen(["sleep", "1000"])
    fork = os.fork()
    if not fork:
      time.sleep(1000)
      os._exit(0)
    program.terminate()
    os.kill(fork, signal.SIGTERM)
    return [program.wait(), os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])]


class StopsWhileSending(toy.Counter):
  """Stops its process, but only once, in the middle of a message.

  The worker has then sent the first bytes of an episode's report.

  Args:
    path: File that the stop creates; the process does not stop while it exists.
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
    return kind + bytes(3)  # The length field needs 8 bytes; 5 are missing.


class Breaks(toy.Uneven):
  """Fails in the steps of some episodes and can't be used after a failure.

  Args:
    failure: "raise" raises ValueError; "observ" or "reward" returns an
      observation or reward that is not finite.
    max_length: Maximum length of an episode.
  """

  def __init__(self, failure: str = "raise", max_length: int = 7):
    super().__init__(max_length)
    self._failure = failure
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
      if self._failure == "raise":
        raise ValueError("broken")
      if self._failure == "observ":
        observ[0] = np.nan
      else:
        reward = np.inf
    return observ, reward, *rest

  @staticmethod
  def breaks_at(seed: int) -> int:
    """Returns the step that fails in the episode with this seed, or 0."""
    return seed // 7 % 3


class FailsInReset(Breaks):
  """Fails in the resets of some episodes and can't be used after a failure.

  Args:
    failure: "raise" raises ValueError; "observ" returns an observation that is
      not finite.
    max_length: Maximum length of an episode.
  """

  def reset(self, *, seed=None, options=None):
    observ, info = super().reset(seed=seed)
    if self.reset_fails(seed):
      self._broken = True
      if self._failure == "raise":
        raise ValueError("broken reset")
      observ = np.full_like(observ, np.nan)
    return observ, info

  @staticmethod
  def breaks_at(seed: int) -> int:
    return 0

  @staticmethod
  def reset_fails(seed: int) -> bool:
    """Returns whether the reset with this seed fails."""
    return seed // 7 % 3 == 1


class NeverResets(toy.Counter):
  """Raises in every reset except the first one of environment 1.

  The seed of the run must be 0.
  """

  def reset(self, *, seed=None, options=None):
    if seed != episode_data.episode_seed(0, 1, 0):
      raise ValueError("broken forever")
    return super().reset(seed=seed)


class SlowSteps(toy.Counter):
  """Sleeps for 0.1 seconds in each step."""

  def __init__(self):
    super().__init__(length=50)

  def step(self, action):
    time.sleep(0.1)
    return super().step(action)


class SameInfo(toy.Counter):
  """Returns the same info dict every time; one of its keys is an integer."""

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
    length: Number of steps of an episode.
  """

  def __init__(self, seconds: float, length: int = 3):
    super().__init__(length)
    self._seconds = seconds

  def reset(self, *, seed=None, options=None):
    time.sleep(self._seconds)
    return super().reset(seed=seed)


class FewSignsOfLife(toy.Counter):
  """Resets in every step; its worker sends one sign of life per second."""

  def __init__(self):
    super().__init__(length=1)
    worker_main._SECONDS_BETWEEN_HEARTBEATS = 1.0


class WaitsForReset(toy.Counter):
  """Sends a sign of life after each reset; some resets wait for another one.

  In a worker, signs of life are otherwise sent at most every 0.1 seconds.

  Args:
    path: File that the environment creates, or waits for, in its reset.
    waits: Whether the environment waits, at most ten seconds.
  """

  def __init__(self, path: str | None, waits: bool):
    super().__init__()
    worker_main._SECONDS_BETWEEN_HEARTBEATS = 0.0
    self._path = pathlib.Path(path) if path else None
    self._waits = waits

  def reset(self, *, seed=None, options=None):
    if self._path and not self._waits:
      self._path.touch()
    deadline = time.monotonic() + 10
    while self._waits and not self._path.exists():
      if time.monotonic() > deadline:
        raise TimeoutError("The resets of the other worker did not end.")
      time.sleep(0.01)
    return super().reset(seed=seed)
