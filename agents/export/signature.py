"""Signature of an exported policy: names and types of inputs and outputs."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces as gym

from agents import spaces


class SignatureField(NamedTuple):
  """An input or output of an exported policy; an entry of signature.json."""

  role: str  # "observation", "state", "noise" or "action".
  dtype: str  # Name of a NumPy type.
  shape: tuple[int, ...]  # Without the batch dimension, which comes first.
  about: str  # Description in the README.
  # Keys and indices that lead to this part of a Dict or Tuple; () for a simple
  # space.
  path: tuple[str, ...] = ()
  # Lower bound: one number for all values, or nested lists of numbers. None
  # means unbounded, also within the lists.
  low: Any = None
  high: Any = None  # Upper bound, in the same format as `low`.
  # Distributions and sizes of the consecutive parts of the noise, see
  # `ActionDistribution.noise_kinds`. Empty for other roles.
  drawn: tuple[tuple[str, int], ...] = ()


def as_dicts(fields: dict[str, SignatureField]) -> dict[str, dict[str, Any]]:
  """Returns fields as JSON data.

  Args:
    fields: Inputs or outputs by name.
  """
  return {name: field._asdict() for name, field in fields.items()}


def noise_field(distributions: Sequence[tuple[str, int]]) -> SignatureField:
  """Describes the noise of a sampled policy.

  Args:
    distributions: Names and sizes of the consecutive parts of the noise, see
      `ActionDistribution.noise_kinds`.

  Returns:
    Field with the role "noise".
  """
  about = ", then ".join(
    f"{size} values of the {name} distribution" for name, size in distributions
  )
  return SignatureField(
    "noise",
    "float32",
    (sum(size for _, size in distributions),),
    f"{about}; new for each step",
    drawn=tuple(distributions),
  )


def space_fields(role: str, leaves: Sequence[spaces.Leaf]) -> dict[str, SignatureField]:
  """Describes observations or actions.

  Args:
    role: Role of all fields, "observation" or "action".
    leaves: Simple spaces of the observations or actions.

  Returns:
    Field of each simple space, by name. Names are valid identifiers.
  """
  fields: dict[str, SignatureField] = {}
  for leaf in leaves:
    stem = re.sub(r"[^a-zA-Z0-9]", "_", "_".join([role, *leaf.path]))
    name, suffix = stem, 1
    # TensorFlow's names are not case-sensitive.
    while name.lower() in map(str.lower, fields):
      suffix += 1
      name = f"{stem}_{suffix}"
    fields[name] = _field(role, leaf)
  return fields


def nested(space: gymnasium.Space, parts: Iterator[Any]) -> Any:
  """Arranges parts in the dicts and tuples of a space.

  Args:
    space: Space of the environment.
    parts: One part per simple space, in the order of `space_fields`.

  Returns:
    Dict or tuple of parts for a Dict or Tuple, otherwise the next part.
  """
  if isinstance(space, gym.Dict):
    return {key: nested(part, parts) for key, part in space.items()}
  if isinstance(space, gym.Tuple):
    return tuple(nested(part, parts) for part in space.spaces)
  return next(parts)


def _field(role: str, leaf: spaces.Leaf) -> SignatureField:
  """Returns the field of a simple space."""
  space, low, high = leaf.space, None, None
  about = f"a value of {space}"
  if isinstance(space, gym.Discrete):
    low, high = int(space.start), int(space.start) + int(space.n) - 1
    about = f"a choice, from {low} to {high}"
  elif isinstance(space, gym.Box):
    low, high = _bounds(space.low), _bounds(space.high)
    about = (
      f"in the environment's own units and order, from {space.low.min():g} to {space.high.max():g}"
    )
  return SignatureField(role, leaf.dtype.name, leaf.shape, about, leaf.path, low, high)


def _bounds(bounds: np.ndarray) -> Any:
  """Returns bounds as JSON data; None replaces infinite bounds.

  The result is one number if all bounds are equal, otherwise nested lists.
  """
  values = [float(x) if np.isfinite(x) else None for x in bounds.flat]
  if len(set(values)) == 1:
    return values[0]
  return np.reshape(np.array(values, object), bounds.shape).tolist()
