"""A batch environment that builds its environments when they are needed."""

from agents.environments import batch_env


class LazyBatchEnv(batch_env.BatchEnv):
  """Builds one environment for the spaces, and the batch before its first use.

  Args:
    args: See `BatchEnv`.
    kwargs: See `BatchEnv`.
  """

  def _open(self):
    """Does nothing, because the constructor calls it too early."""

  def _check_open(self):
    super()._check_open()
    if self._block is None:
      super()._open()
