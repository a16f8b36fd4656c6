"""The root of errors whose message says it all, without our traceback."""


class RunError(RuntimeError):
  """Something outside this code went wrong: message says what and where."""

  exit_code = 1  # Of a program that this error ends.


class EnvironmentsError(RunError):
  """Environments failed while the trainer itself is as it was."""


class MachineLost(EnvironmentsError):
  """Another machine does not take part any more."""


class MachinesDiffer(RunError):
  """Machines that should do the same don't."""


class TrainingDiverged(RunError):
  """An update led to what is not a finite number."""

  exit_code = 3
