"""Only large updates are faster on a GPU."""

import gymnasium
import pytest

from agents import configs
from agents.training import cost_model

_VECTOR = gymnasium.spaces.Box(-1, 1, (17,))
_IMAGE = gymnasium.spaces.Box(0, 255, (84, 84, 1), "uint8")


@pytest.mark.parametrize(
  "space, minibatch_size, is_faster",
  [(_VECTOR, 64, False), (_VECTOR, 2048, False), (_IMAGE, 1, False), (_IMAGE, 256, True)],
)
def test_gpu_is_faster_for_images_in_large_minibatches(space, minibatch_size, is_faster):
  config = configs.load("cheetah")[1].override({"algorithm.minibatch_size": minibatch_size})
  assert cost_model.is_gpu_faster(config, space, 2048) == is_faster
