"""Calls a function in a new process that can render.

OpenGL and TensorFlow can crash in one process, so rendering needs another one.
"""

import json
import os
import subprocess
from typing import Any

from agents.environments.workers import process
from agents.videos import render_pool


def call(module: str, function: str, *arguments: Any) -> Any:
  """Returns what a function of another process prints last, as JSON.

  Args:
    module: Module that does not import TensorFlow.
    function: Function of the module, which prints its result as JSON.
    arguments: Arguments whose `repr` is an expression.

  Raises:
    RenderingFailed: If the function fails with every library for OpenGL.
  """

  def run(variables: dict[str, str]) -> Any:
    done = subprocess.run(
      process.python(f"import {module}; {module}.{function}(*{arguments!r})"),
      env={**os.environ, **variables},
      stdin=subprocess.DEVNULL,
      capture_output=True,
      text=True,
    )
    if done.returncode:
      raise render_pool.RenderingFailed(done.stderr.strip())
    return json.loads(done.stdout.splitlines()[-1])

  return render_pool.with_gl_backend(run)
