"""Keyword arguments that differ between the environments of a batch."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_KINDS = "each", "choice", "uniform"


def varies(value: Any) -> bool:
  """Returns whether an argument differs between environments.

  Args:
    value: Value of the argument in `env.kwargs`.
  """
  return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _KINDS


def resolve(kwargs: Mapping[str, Any], seed: int, index: int) -> dict[str, Any]:
  """Returns the arguments of one environment.

  Args:
    kwargs: Arguments in `env.kwargs`. `{each: [...]}` gives the environments
      the values in turn, `{choice: [...]}` a random value, and `{uniform: [low,
      high]}` a random number between the bounds.
    seed: Seed of the run.
    index: Index of the environment within its batch.

  Raises:
    ValueError: If there are no values, or the range is invalid.
  """
  resolved = dict(kwargs)
  for position, (name, value) in enumerate(kwargs.items()):
    if varies(value):
      ((kind, options),) = value.items()
      _check(name, kind, options)
      rng = np.random.default_rng([seed, index, position])
      if kind == "each":
        resolved[name] = options[index % len(options)]
      elif kind == "choice":
        resolved[name] = options[rng.integers(len(options))]
      else:
        resolved[name] = float(rng.uniform(*options))
  return resolved


def _check(name: str, kind: str, options: Any) -> None:
  if not (isinstance(options, (list, tuple)) and options):
    raise ValueError(f"{name}: `{kind}` needs a list of values. Received: {options!r}.")
  if kind == "uniform" and not (
    len(options) == 2
    and all(isinstance(bound, (int, float)) and math.isfinite(bound) for bound in options)
    and options[0] <= options[1]
  ):
    raise ValueError(
      f"{name}: `uniform` needs [low, high] with low <= high. Received: {options!r}."
    )
