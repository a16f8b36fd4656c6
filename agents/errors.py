"""Errors with complete messages, which need no traceback of this package."""


class RunError(RuntimeError):
  """A run failed for a reason outside of this package."""

  exit_code = 1  # Exit code of a command that ends with this error.


class EnvironmentsError(RunError):
  """Environments failed, and the state of the trainer did not change."""


class MachineLost(EnvironmentsError):
  """The connection to another machine of the cluster was lost."""


class MachinesDiffer(RunError):
  """The machines of a cluster computed different results."""


class TrainingDiverged(RunError):
  """An update produced a metric that is not finite."""

  exit_code = 3
