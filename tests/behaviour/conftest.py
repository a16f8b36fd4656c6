"""Provides an uninterrupted run, with which tests compare resumed runs."""

import pytest

from tests.support import command

RUN = (
  *command.SMALL,
  "--steps",
  "6000",
  "--set",
  "checkpoint_every=1000",
  "--set",
  "eval_every=3000",
)


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
  """Returns the folder of an uninterrupted run with the arguments RUN."""
  logdir = tmp_path_factory.mktemp("logdir")
  done = command.run("train.py", *RUN, "--logdir", logdir, cwd=logdir)
  assert done.returncode == 0, done.stdout
  return command.run_folder(logdir)
