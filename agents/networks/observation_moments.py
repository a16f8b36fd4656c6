"""Moments by which observations are normalized."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents.networks import normalization


class LimitedMoments(normalization.RunningMoments):
  """Moments that forget earlier samples, or stay constant after some samples.

  Adding n samples multiplies the weight of all earlier samples by
  exp(-n / horizon).

  Args:
    shape: Shape of one sample.
    name: Prefix of the variables' names.
    horizon: See above; infinity weights all samples equally.
    freeze: Number of samples after which the moments stay constant. All samples
      of the update that reaches this number are added.
  """

  def __init__(self, shape: tuple[int, ...], name: str, horizon: float, freeze: float) -> None:
    super().__init__(shape, name)
    self._horizon, self._freeze = horizon, freeze
    self._seen = tf.Variable(tf.zeros((), tf.float64), False, name=f"{name}/seen")
    self.variables.append(self._seen)

  def update(self, samples: tf.Tensor, valid: tf.Tensor) -> None:
    """See `RunningMoments.update`."""
    valid &= self._seen < self._freeze
    added = tf.reduce_sum(tf.cast(valid, tf.float64))
    weight = tf.exp(-added / self._horizon)
    self.count.assign(self.count * weight)
    self.squares.assign(self.squares * weight)
    self._seen.assign_add(added)
    super().update(samples, valid)


class ConstantMoments(normalization.RunningMoments):
  """Mean and standard deviation that never change.

  Args:
    mean: Mean, of the shape of one sample.
    std: Standard deviation, of the same shape.
  """

  def __init__(self, mean: np.ndarray, std: np.ndarray) -> None:
    self.variables = []
    self.mean, self._std = tf.constant(mean, tf.float64), tf.constant(std, tf.float64)

  @property
  def std(self) -> tf.Tensor:
    """Standard deviation, float64."""
    return self._std

  def update(self, samples: tf.Tensor, valid: tf.Tensor) -> None:
    """Does nothing."""


# Returns the moments of vectors of a given length.
MakeMoments = Callable[[int], normalization.RunningMoments]


def make_running(size: int) -> normalization.RunningMoments:
  """Returns running moments of observations as vectors of length `size`."""
  return normalization.RunningMoments((size,), "observ")


def make(config: config_lib.Algorithm) -> MakeMoments | None:
  """Returns the function that makes the moments of observations.

  Args:
    config: Section `algorithm` of the configuration.

  Returns:
    The function, or None if observations are not normalized.

  Raises:
    ConfigError: If the settings are invalid; so does the function.
  """
  if not config.normalize_observ:
    return None
  settings = config.observ_moments
  if not settings:
    return make_running
  if settings.keys() <= {"horizon", "freeze"} and all(map(_is_positive, settings.values())):
    limits = settings.get("horizon", math.inf), settings.get("freeze", math.inf)
    return lambda size: LimitedMoments((size,), "observ", *limits)
  if settings.keys() == {"mean", "std"}:
    return functools.partial(_make_constant, settings)
  raise config_lib.ConfigError(
    "`algorithm.observ_moments` must contain `horizon`, `freeze` or both, each a positive number, "
    f"or `mean` and `std`. Received: {settings}."
  )


def _make_constant(settings: dict[str, Any], size: int) -> ConstantMoments:
  """Returns constant moments of observations as vectors of length `size`."""
  try:
    mean, std = (
      np.broadcast_to(np.array(settings[name], np.float64), size) for name in ("mean", "std")
    )
  except (TypeError, ValueError):
    mean = std = np.array(np.nan)
  if not (np.isfinite(mean).all() and (std > 0).all() and (std < np.inf).all()):
    raise config_lib.ConfigError(
      "`mean` and `std` in `algorithm.observ_moments` must each be a number or a list of "
      f"{size} numbers, one per observed number, and those of `std` must be positive. "
      f"Received: {settings}."
    )
  return ConstantMoments(mean, std)


def _is_positive(value: Any) -> bool:
  return isinstance(value, (int, float)) and value > 0
