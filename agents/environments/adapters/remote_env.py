"""One environment in a worker process, as a `gymnasium.Env`."""

from agents.environments.adapters import vector_env
from agents.environments.blocks import base
from agents.environments.making import vector_envs
from agents.environments.workers import pool


class RemoteEnv(vector_envs.SingleEnv):
  """Steps and renders an environment in a process of its own.

  Programs that import TensorFlow need this for rendered observations: software
  drivers of OpenGL and TensorFlow crash in one process.

  Args:
    constructor: Function without arguments that returns the environment.
    variables: Environment variables of the process.
  """

  def __init__(self, constructor: base.Constructor, variables: dict[str, str]) -> None:
    self._pool = pool.WorkerPool(1, variables=variables)
    super().__init__(lambda num_envs: vector_env.VectorEnv([constructor] * num_envs, self._pool))

  def close(self) -> None:
    """Closes the environment and ends the process."""
    super().close()
    self._pool.close()
