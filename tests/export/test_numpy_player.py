"""NumPy alone plays an exported policy."""

import json
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from agents.export import formats
from agents.export import numpy_player
from agents.export import verify
from tests.export import untrained_runs

_SCRIPT = """
import json, sys
class Nothing:
  def find_spec(self, name, path=None, target=None):
    if name.split(".")[0] in ("tensorflow", "keras", "agents", "gymnasium"):
      raise ImportError(name)
sys.meta_path.insert(0, Nothing())
import numpy as np, player
policy = player.Policy("policy.npz")
state, actions = policy.begin(), []
for observation in json.loads(sys.stdin.read()):
  action, state = policy(observation, state)
  actions.append(np.asarray(action).tolist())
print(json.dumps(actions))
"""


def test_it_is_short():
  with open(numpy_player.__file__) as file:
    assert len(file.readlines()) < 100


@pytest.mark.parametrize("kind", ["gru", "box"])
def test_it_needs_nothing_else(kind, tmp_path):
  policy = untrained_runs.load(tmp_path, kind)
  formats.FORMATS["npz"].write(policy, tmp_path / "policy.npz")
  steps: list = []
  verify.EPISODES, before = 1, verify.EPISODES
  try:
    verify.play(policy, verify.in_training(policy), steps.append)
  finally:
    verify.EPISODES = before
  given = [step.inputs["observation"][0].tolist() for step in steps]
  done = subprocess.run(
      [sys.executable, "-c", _SCRIPT], cwd=tmp_path, input=json.dumps(given),
      capture_output=True, text=True, timeout=100)
  assert done.returncode == 0, done.stderr
  expected = [step.outputs["action"][0] for step in steps]
  np.testing.assert_allclose(json.loads(done.stdout), expected, atol=1e-5)


def test_parts_by_name(tmp_path):
  policy = untrained_runs.load(tmp_path, "nested")
  formats.FORMATS["npz"].write(policy, tmp_path / "policy.npz")
  played = numpy_player.Policy(tmp_path / "policy.npz")
  actions, state = played(
      policy.observation_space.sample(), played.begin())
  assert list(actions) == list(policy.outputs) and state == {}


def test_samples_are_those_of_the_seed_and_vary(tmp_path):
  policy = untrained_runs.load(tmp_path, "box", sampled=True)
  formats.FORMATS["npz"].write(policy, tmp_path / "policy.npz")
  observation, _ = gymnasium.make("Pendulum-v1").reset(seed=0)
  def actions(seed):
    played = numpy_player.Policy(tmp_path / "policy.npz", seed)
    return [played(observation, {})[0].item() for _ in range(200)]
  assert actions(1) == actions(1) != actions(2)
  scale = policy.config.network.init_std * 2  # Torques reach from -2 to 2.
  assert abs(np.std(actions(1)) - scale) < 0.5 * scale
  assert np.std(actions(1)) > 0.1
