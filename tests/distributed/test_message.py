"""Messages between machines contain data, and no code."""

import pickle

import numpy as np
import pytest

from agents.distributed import message, rollout_status
from agents.environments.data import episode_data, failure_budget


def test_values_and_arrays_are_restored():
  value = {
    "numbers": [1, 0.1, 1e300, -0.0, float("inf"), True, None, 2**70],
    "text": "ä\n",
    "tuple": (1, (2,)),
    "array": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "nested": [{"a": np.array([], np.int64), "b": np.array(3, np.uint8)}, np.array(["x", "yz"])],
    "scalar": np.float32(0.1),
    "empty": {},
  }
  restored = message.decode(message.encode(value))
  for key in ("numbers", "text", "empty"):
    assert restored[key] == value[key]
  assert restored["tuple"] == [1, [2]] and restored["scalar"] == np.float32(0.1)
  arrays = [restored["array"], *restored["nested"][0].values(), restored["nested"][1]]
  expected = [value["array"], *value["nested"][0].values(), value["nested"][1]]
  for array, other in zip(arrays, expected, strict=True):
    assert (array.dtype, array.shape) == (other.dtype, other.shape)
    np.testing.assert_array_equal(array, other)
    assert array.flags.writeable


def test_values_of_other_types_cannot_be_sent():
  with pytest.raises(TypeError, match="can't contain"):
    message.encode([print])


class _Raises:
  def __reduce__(self):
    return pytest.fail, ("Code of a message was executed.",)


@pytest.mark.parametrize(
  "data",
  [
    b"",
    pickle.dumps(_Raises()),
    message.encode([np.zeros(3)])[:-1],
    message.encode([np.zeros(3)]).replace(b"<f8", b"|O8"),
    message.encode([np.zeros(3)]).replace(b"[3]", b"[9]"),
    message.encode([np.zeros(3)]).replace(b"[3]", b"[x]"),
  ],
)
def test_other_bytes_are_rejected(data):
  with pytest.raises((ValueError, TypeError)):
    message.decode(data)


def test_status_is_restored():
  state = episode_data.EpisodeState(*[np.arange(2)] * 5, np.zeros((0, 0)))
  failed = failure_budget.FailedEpisode(1, 2, np.ones((3, 1)))
  status = rollout_status.RolloutStatus(
    state,
    [episode_data.Episode(7, np.ones((2, 1)), 0.5, {"x": 1, "reward_parts": {"reward_a": 2.0}}, 3)],
    [failure_budget.Failure("failed"), failure_budget.Failure("again", (failed,))],
    0.25,
  )
  restored = rollout_status.from_data(message.decode(message.encode(status.to_data())))
  np.testing.assert_array_equal(restored.episodes[:-1], state[:-1])
  assert restored.finished == status.finished
  assert restored.failures[0] == status.failures[0]
  assert restored.failures[1].episodes[0][:2] == failed[:2]
  assert restored.seconds == 0.25
