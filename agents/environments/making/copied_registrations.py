"""Copies custom Gymnasium registrations to the workers."""

import contextlib
import pickle

import cloudpickle
import gymnasium


def packed() -> dict[str, bytes]:
  """Returns the pickled custom registrations of this process, by id.

  Registrations that can't be pickled are left out. In a worker, Gymnasium then
  raises its own error if an environment with a missing id is built.
  """
  specs = {}
  for env_id, spec in gymnasium.registry.items():
    if not str(spec.entry_point).startswith("gymnasium."):
      with contextlib.suppress(Exception):
        specs[env_id] = cloudpickle.dumps(spec)
  return specs


def add(specs: dict[str, bytes]) -> None:
  """Adds registrations whose ids are missing in this process.

  Registrations that can't be unpickled are left out.

  Args:
    specs: Pickled registrations by id, from `packed`.
  """
  for env_id in specs.keys() - gymnasium.registry.keys():
    with contextlib.suppress(Exception):
      gymnasium.registry[env_id] = pickle.loads(specs[env_id])
