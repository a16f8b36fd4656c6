"""Compares an exported policy with the policy in training."""

import itertools
import statistics
import timeit
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.export import evaluate
from agents.export import policy as policy_lib

# Largest difference between outputs. The unit is half the range of the output
# or the absolute value of the output, whichever is larger, but at least 1.
TOLERANCE = 1e-5
_MAX_CALLS = 4000  # With this many calls, the recorder drops every second one.
_BATCH = 32  # Number of calls that are compared in one batch.
# Fraction of steps with different discrete actions. Rounding decides between
# choices of nearly equal probability.
_MAX_OTHER_CHOICES = 1e-3
_NUM_TIMED_CALLS = 200


class CallRecorder:
  """Records fewer than `_MAX_CALLS` evenly spaced calls of a policy.

  Attributes:
    calls: The recorded calls, in order.
  """

  def __init__(self) -> None:
    self.calls: list[policy_lib.Arrays] = []
    self._interval = 1
    self._count = 0

  def add(self, call: policy_lib.Arrays) -> None:
    """Records a call, or skips it to keep equal distances.

    Args:
      call: Inputs and outputs of the policy by name, of shape [1, ...].
    """
    if self._count % self._interval == 0:
      self.calls.append(call)
      if len(self.calls) == _MAX_CALLS:
        self.calls = self.calls[::2]
        self._interval *= 2
    self._count += 1


class Comparison(NamedTuple):
  """Differences between an exported policy and the policy in training."""

  difference: float  # Largest difference between outputs, see `TOLERANCE`.
  other_choices: float  # Fraction of steps with different discrete actions.
  returns: list[float]  # Returns of the exported policy.
  milliseconds: float  # Median time of one action.

  def passed(self, returns: Sequence[float]) -> bool:
    """Returns whether the exported policy agrees with the policy in training.

    Args:
      returns: Returns of the policy in training, one per episode.
    """
    return (
      self.difference <= TOLERANCE
      and self.other_choices <= _MAX_OTHER_CHOICES
      and same_returns(self.returns, returns)
    )


def compare(
  policy: policy_lib.ExportablePolicy,
  function: policy_lib.PolicyFunction,
  calls: Sequence[policy_lib.Arrays],
) -> Comparison:
  """Compares an exported policy with the policy in training; measures its time.

  Args:
    policy: Policy that was exported.
    function: Function that runs the exported policy.
    calls: Recorded calls of the policy in training.

  Returns:
    Differences, and the time of one action.

  Raises:
    EnvironmentsError: If the environment fails.
  """
  difference, num_other_choices = 0.0, 0
  for first in range(0, len(calls), _BATCH):
    rows = calls[first : first + _BATCH]
    batch = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    outputs = function({name: batch[name] for name in policy.inputs})
    other_choice = np.zeros(len(rows), bool)
    for name, field in policy.outputs.items():
      expected = batch[name]
      if expected.dtype.kind != "f":
        other_choice |= (outputs[name] != expected).reshape(len(rows), -1).any(-1)
      elif expected.size:
        # NaN for unbounded outputs; `fmax` then returns 1.
        half_range = np.array(field.high, float) / 2 - np.array(field.low, float) / 2
        units = np.maximum(np.fmax(1, half_range), np.abs(expected))
        difference = max(difference, float((np.abs(outputs[name] - expected) / units).max()))
    num_other_choices += int(other_choice.sum())
  inputs = itertools.cycle([{name: call[name] for name in policy.inputs} for call in calls])
  seconds = timeit.repeat(lambda: function(next(inputs)), number=1, repeat=_NUM_TIMED_CALLS)
  return Comparison(
    difference,
    num_other_choices / len(calls),
    evaluate.evaluate(policy, function),
    1000 * statistics.median(seconds),
  )


def same_returns(returns: Sequence[float], others: Sequence[float]) -> bool:
  """Returns whether two policies have the same returns.

  Either all returns are nearly equal, or the means differ by at most three
  standard errors, because rounding changes episodes of chaotic simulators.

  Args:
    returns: Returns of one policy, one per episode.
    others: Returns of the other policy in episodes with the same seeds.
  """
  standard_error = np.hypot(*(np.std(x, ddof=1) / len(x) ** 0.5 for x in (returns, others)))
  return bool(
    np.allclose(returns, others, rtol=1e-3)
    or abs(np.mean(returns) - np.mean(others)) <= 3 * standard_error
  )
