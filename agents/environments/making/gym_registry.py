"""Takes ids that somebody has registered to processes where nobody has."""

from __future__ import annotations

import contextlib
import pickle

import cloudpickle
import gymnasium


def packed() -> dict[str, bytes]:
  """Return what is registered here, but for Gymnasium's own, by id.

  Without what can't be pickled: where its id is made, it will be missed.
  """
  found = {}
  for name, spec in gymnasium.registry.items():
    if str(spec.entry_point).startswith("gymnasium."):
      continue
    with contextlib.suppress(Exception):
      found[name] = cloudpickle.dumps(spec)
  return found


def add(found: dict[str, bytes]):
  """Register here what is not yet, and can be loaded here."""
  for name in found.keys() - gymnasium.registry.keys():
    with contextlib.suppress(Exception):
      gymnasium.registry[name] = pickle.loads(found[name])
