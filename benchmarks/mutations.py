"""Breaks lines that implement promises, and prints which mistakes escape.

    python -m benchmarks.mutations
    python -m benchmarks.mutations --only fsync,guard

Each mutation replaces a text in a copy of the checkout. The tests of the
promise must pass in the unchanged copy, and at least one of them must fail in
the changed copy.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

from agents.environments.workers import pool
from benchmarks.common import machine
from benchmarks.mutation_list import MUTATIONS, Mutation

_PASSED, _FAILED = 0, 1  # Exit codes of pytest.
_MAX_SECONDS = 300  # A mistake that makes tests hang is detected, too.


class Outcome(NamedTuple):
  """Result of the tests of one mutation."""

  mutation: Mutation
  detected: bool


def mutate(folder: pathlib.Path, mutation: Mutation) -> None:
  """Replaces the text of a mutation, which its file must contain once.

  Args:
    folder: Copy of the checkout.
    mutation: Mutation to apply.

  Raises:
    ValueError: If the file does not contain the text exactly once.
  """
  path = folder / mutation.file
  text = path.read_text()
  if text.count(mutation.old) != 1:
    raise ValueError(f"{mutation.file} must contain once: {mutation.old!r}")
  path.write_text(text.replace(mutation.old, mutation.new))


def run_tests(folder: pathlib.Path, tests: str) -> bool:
  """Returns whether tests pass in a copy of the checkout.

  Args:
    folder: Copy of the checkout.
    tests: Arguments of pytest.

  Raises:
    RuntimeError: If pytest cannot run the tests.
  """
  variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
  try:
    done = subprocess.run(
      [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-m", "slow or not slow", *tests.split()],
      cwd=folder,
      env=variables,
      capture_output=True,
      text=True,
      timeout=_MAX_SECONDS,
    )
  except subprocess.TimeoutExpired:
    return False
  # A negative number means that a signal of the test has ended pytest, too.
  if done.returncode > _FAILED:
    raise RuntimeError(f"pytest {tests} ended with {done.returncode}:\n{done.stdout[-2000:]}")
  return done.returncode == _PASSED


def copy_checkout(folder: pathlib.Path) -> pathlib.Path:
  """Copies this checkout without its history; returns the copy.

  Args:
    folder: Parent of the copy.
  """
  ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "site")
  return shutil.copytree(machine.REPOSITORY, folder / "checkout", ignore=ignored)


def check(tests: str) -> None:
  """Raises RuntimeError if tests fail without a mistake.

  Args:
    tests: Arguments of pytest.
  """
  with tempfile.TemporaryDirectory() as folder:
    if not run_tests(copy_checkout(pathlib.Path(folder)), tests):
      raise RuntimeError(f"These tests fail without a mistake: {tests}")


def measure(mutation: Mutation) -> Outcome:
  """Runs the tests of a mutation.

  Args:
    mutation: Mutation to apply to a copy of this checkout.
  """
  with tempfile.TemporaryDirectory() as folder:
    copy = copy_checkout(pathlib.Path(folder))
    mutate(copy, mutation)
    return Outcome(mutation, not run_tests(copy, mutation.tests))


def main() -> None:
  """Prints a line per mutation, and the number of detected ones."""
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--only", help="parts of promises or file names, separated by commas")
  words = (parser.parse_args().only or "").split(",")
  chosen = [
    mutation
    for mutation in MUTATIONS
    if any(word in f"{mutation.promise} {mutation.file}" for word in words)
  ]
  outcomes = []
  with concurrent.futures.ThreadPoolExecutor(pool.num_cores()) as executor:
    list(executor.map(check, sorted({mutation.tests for mutation in chosen})))
    for outcome in executor.map(measure, chosen):
      outcomes.append(outcome)
      result = "detected" if outcome.detected else "SURVIVED"
      print(f"{result}  {outcome.mutation.promise} ({outcome.mutation.file})", flush=True)
  print(f"{sum(outcome.detected for outcome in outcomes)} of {len(outcomes)} detected.")


if __name__ == "__main__":
  main()
