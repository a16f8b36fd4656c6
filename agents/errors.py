"""Errors with complete messages; commands print them without a traceback."""


class RunError(RuntimeError):
  """A run failed for a reason outside of this package."""

  exit_code = 1  # Exit code of a command that ends with this error.


class EnvironmentsError(RunError):
  """Environments failed; the trainer keeps its state from before the epoch."""


class MachineLost(EnvironmentsError):
  """The connection to another machine of the cluster was lost."""


class MachinesDiffer(RunError):
  """The machines of a cluster computed different results."""


class TrainingDiverged(RunError):
  """An update produced a metric that is not finite."""

  exit_code = 3
