"""A batch environment that workers build while the trainer continues."""

from agents.environments import batch_env


class BackgroundBatchEnv(batch_env.BatchEnv):
  """Does not wait until the workers have built the environments.

  The first use waits. Without workers, the constructor builds all environments.

  Args:
    args: See `BatchEnv`.
    kwargs: See `BatchEnv`.
  """

  def _open(self) -> None:
    self._begin_open()
    self._is_built = False

  def wait_until_built(self) -> None:
    """Waits for the workers.

    Raises:
      Exception: Error of an environment; its cause names the environment. The
        batch is closed then.
    """
    if not self._is_built:
      self._is_built = True
      try:
        self._finish_open()
      except Exception:
        self.is_closed = True  # The workers have closed the environments.
        raise

  def _check_open(self) -> None:
    super()._check_open()
    self.wait_until_built()
