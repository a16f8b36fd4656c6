"""Loggers for tests, which record their calls or fail."""

from agents.loggers import base


class Recorder(base.Logger):
  """Appends each call to `calls`."""

  calls = []

  def __init__(self, folder, config, resumed_step):
    super().__init__(folder, config, resumed_step)
    self._record("start", resumed_step)

  def write(self, row, scalars):
    self._record("write", row, scalars)
    row.clear()  # The program must not use this object.

  def film(self, path, step):
    self._record("film", path, step)

  def close(self):
    self._record("close")

  def _record(self, name, *args):
    args = [dict(arg) if isinstance(arg, dict) else arg for arg in args]
    self.calls.append((self.folder, name, *args))


class Failing(base.Logger):
  """Fails in each report."""

  def write(self, row, scalars):
    raise ValueError(f"lost connection at step {row['step']}")


class NeverStarts(base.Logger):
  """Fails in the constructor."""

  def __init__(self, *args):
    raise ValueError("no account")


def calls(folder, name):
  """Returns the arguments of all calls of a method of `Recorder` for a run."""
  return [args for path, called, *args in Recorder.calls if (path, called) == (folder, name)]
