"""A batch environment that builds its environments when they are needed."""

from agents.environments import batch_env


class LazyBatchEnv(batch_env.BatchEnv):
  """Builds one environment at once, for the spaces, and the batch later.

  Args:
    args: See `BatchEnv`.
    kwargs: See `BatchEnv`.
  """

  _opened = False

  def _open(self):
    """Does nothing, because the constructor calls it too early."""

  def _check_open(self):
    super()._check_open()
    if not self._opened:
      super()._open()
      self._opened = True

  def close(self):
    """See `BatchEnv.close`."""
    if self._opened:
      super().close()
    self.is_closed = True
