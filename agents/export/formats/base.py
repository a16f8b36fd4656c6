"""Base class of the file formats of exported policies."""

import importlib.util
import pathlib

from agents import config as config_lib
from agents.export import policy as policy_lib


class ExportFormat:
  """A file format; subclasses implement `write` and `load`.

  Args:
    name: Name of the format, and of the extra that installs its modules.
  """

  file: str  # Name of the main file or folder within the exported folder.
  modules: tuple[str, ...] = ()  # Required modules besides TensorFlow.

  def __init__(self, name: str) -> None:
    self.name = name

  def check(self, policy: policy_lib.ExportablePolicy) -> None:
    """Checks that a policy can be exported in this format.

    Args:
      policy: Policy to export.

    Raises:
      ConfigError: If a package is missing, or the format does not support the
        spaces of the environment.
    """
    for module in self.modules:
      if not importlib.util.find_spec(module):
        raise config_lib.ConfigError(
          f"--format {self.name} needs {module}: pip install 'batched-ppo[{self.name}]'."
        )

  def write(self, policy: policy_lib.ExportablePolicy, path: pathlib.Path) -> None:
    """Writes a policy.

    Args:
      policy: Policy to export.
      path: Path of the main file or folder. Other files are written next to it.
    """
    raise NotImplementedError

  def load(self, path: pathlib.Path) -> policy_lib.PolicyFunction:
    """Loads a policy that `write` has written.

    Args:
      path: Path of the main file or folder.

    Returns:
      Function that maps inputs [N, ...] by name to outputs [N, ...] by name.
    """
    raise NotImplementedError
