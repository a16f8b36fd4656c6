"""A batch environment that builds its environments before their first use."""

from agents.environments import batch_env


class LazyBatchEnv(batch_env.BatchEnv):
  """Builds all environments before the first use of the batch.

  The constructor builds and closes only one environment, to read its spaces.

  Args:
    args: See `BatchEnv`.
    kwargs: See `BatchEnv`.
  """

  def _open(self) -> None:
    """Does nothing, because the constructor calls this method too early."""

  def _check_open(self) -> None:
    super()._check_open()
    if self._block is None:
      super()._open()
