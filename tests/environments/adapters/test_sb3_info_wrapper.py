"""What Stable-Baselines3 asks is answered in processes that never saw it."""

import gymnasium

from agents.environments.adapters import sb3_info_wrapper
from tests import toy
from tests.environments import scripts


def test_infos_are_whole_and_wrappers_are_reached():
  env = sb3_info_wrapper.asked(lambda: gymnasium.wrappers.TimeLimit(toy.Counter(), 9))()
  _, info = env.reset(seed=3)
  assert info == {"info": [{}]}
  *_, info = env.step(0)
  assert info == {"info": [{"step": 1, "reward_part": 0.5}]}
  assert env._is_wrapped(gymnasium.wrappers.TimeLimit)
  assert not env._is_wrapped(gymnasium.wrappers.ClipAction)
  env._set("length", 5)
  assert env.unwrapped.length == 5


def test_it_imports_none_of_it(tmp_path):
  """Workers find the class by its module."""
  stdout, _ = scripts.run("""
import sys
from agents.environments.adapters import sb3_info_wrapper as asked
print(*sorted({"stable_baselines3", "torch", "tensorflow"} & set(sys.modules)))
""", tmp_path)
  assert sb3_info_wrapper.SB3InfoWrapper.__module__ == sb3_info_wrapper.__name__ and not stdout.strip()
