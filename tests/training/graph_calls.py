"""Records the graphs that Python calls."""

import pytest
import tensorflow as tf


def record(monkeypatch: pytest.MonkeyPatch) -> list[str]:
  """Returns a list; every later call of a `tf.function` appends its name.

  Calls during the tracing of a graph are not recorded.
  """
  function_type = type(tf.function(lambda: None))
  call = function_type.__call__
  names: list[str] = []

  def record_call(function, *args, **kwargs):
    if tf.executing_eagerly():
      names.append(function.python_function.__name__)
    return call(function, *args, **kwargs)

  monkeypatch.setattr(function_type, "__call__", record_call)
  return names
