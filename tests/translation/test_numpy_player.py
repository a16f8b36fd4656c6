"""The exported player needs only NumPy."""

import json
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from agents.export import evaluate, formats
from agents.translation import numpy_player
from tests.export import untrained_runs

_SCRIPT = """
import json, sys
class BlockImports:
  def find_spec(self, name, path=None, target=None):
    if name.split(".")[0] in ("tensorflow", "keras", "agents", "gymnasium"):
      raise ImportError(name)
sys.meta_path.insert(0, BlockImports())
import numpy as np, player
policy = player.Policy("policy.npz")
state, actions = policy.begin(), []
for observation in json.loads(sys.stdin.read()):
  action, state = policy(observation, state)
  actions.append(np.asarray(action).tolist())
print(json.dumps(actions))
"""


def test_player_has_fewer_than_100_lines():
  with open(numpy_player.__file__) as file:
    assert len(file.readlines()) < 100


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("kind", ["gru", "box"])
def test_player_equals_training_without_other_packages(kind, tmp_path, monkeypatch):
  policy = untrained_runs.load(tmp_path, kind)
  formats.load("npz").write(policy, tmp_path / "policy.npz")
  calls: list = []
  monkeypatch.setattr(evaluate, "NUM_EPISODES", 1)
  evaluate.evaluate(policy, evaluate.training_function(policy), calls.append)
  observations = [call["observation"][0].tolist() for call in calls]
  done = subprocess.run(
    [sys.executable, "-c", _SCRIPT],
    cwd=tmp_path,
    input=json.dumps(observations),
    capture_output=True,
    text=True,
    timeout=100,
  )
  assert done.returncode == 0, done.stderr
  expected = [call["action"][0] for call in calls]
  np.testing.assert_allclose(json.loads(done.stdout), expected, atol=1e-5)


def test_nested_action_has_the_format_of_the_space(tmp_path):
  policy = untrained_runs.load(tmp_path, "nested")
  formats.load("npz").write(policy, tmp_path / "policy.npz")
  player = numpy_player.Policy(tmp_path / "policy.npz")
  action, state = player(policy.observation_space.sample(), player.begin())
  assert policy.action_space.contains(action) and state == {}


def test_samples_depend_on_the_seed_and_have_the_policys_std(tmp_path):
  policy = untrained_runs.load(tmp_path, "box", sampled=True)
  formats.load("npz").write(policy, tmp_path / "policy.npz")
  observation, _ = gymnasium.make("Pendulum-v1").reset(seed=0)

  def actions(seed):
    player = numpy_player.Policy(tmp_path / "policy.npz", seed)
    return [player(observation, {})[0].item() for _ in range(200)]

  assert actions(1) == actions(1) != actions(2)
  std = policy.config.network.init_std * 2  # Torques lie in [-2, 2].
  assert abs(np.std(actions(1)) - std) < 0.5 * std
  assert np.std(actions(1)) > 0.1


def test_file_that_inflates_is_rejected_before_it_is_read(tmp_path):
  np.savez_compressed(tmp_path / "policy.npz", about="{}", weights=np.zeros(2**22))
  with pytest.raises(ValueError, match="is compressed, and could fill the memory"):
    numpy_player.Policy(tmp_path / "policy.npz")
