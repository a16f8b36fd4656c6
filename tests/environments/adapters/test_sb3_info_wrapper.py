"""SB3InfoWrapper keeps infos whole, without importing Stable-Baselines3."""

import gymnasium

from agents.environments.adapters import sb3_info_wrapper
from tests import toy
from tests.environments import scripts


def test_infos_stay_whole_and_wrappers_are_accessible():
  env = sb3_info_wrapper.wrap(lambda: gymnasium.wrappers.TimeLimit(toy.Counter(), 9))()
  _, info = env.reset(seed=3)
  assert info == {"info": [{}]}
  *_, info = env.step(0)
  assert info == {"info": [{"step": 1, "reward_part": 0.5}]}
  assert env._is_wrapped(gymnasium.wrappers.TimeLimit)
  assert not env._is_wrapped(gymnasium.wrappers.ClipAction)
  env.set_wrapper_attr("length", 5)
  assert env.unwrapped.length == 5


def test_module_does_not_import_stable_baselines3(tmp_path):
  stdout, _ = scripts.run(
    """
import sys
from agents.environments.adapters import sb3_info_wrapper
print(*sorted({"stable_baselines3", "torch", "tensorflow"} & set(sys.modules)))
""",
    tmp_path,
  )
  assert not stdout.strip()
  # Workers import the class from its `__module__`.
  wrapper = sb3_info_wrapper.SB3InfoWrapper
  assert wrapper.__module__ == sb3_info_wrapper.__name__
