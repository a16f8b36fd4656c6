"""The root of errors whose message says it all, without our traceback."""


class RunError(RuntimeError):
  """Something outside this code went wrong: message says what and where."""


class EnvironmentsError(RunError):
  """Environments failed while the trainer itself is as it was."""
