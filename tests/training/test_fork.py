"""A new run starts with the variables of another run."""

import numpy as np
import pytest

from agents import config as config_lib
from agents import configs, training_run
from agents.training import fork
from agents.training.run_folder import checkpoint, run_folder

pytestmark = [pytest.mark.usefixtures("eagerly"), pytest.mark.slow]

_CONFIG = configs.load("pendulum")[1].override(
  {
    "num_envs": 4,
    "env.max_length": 20,
    "eval_episodes": 1,
    "eager": True,
    "stagger": False,
    "steps": 160,
    "algorithm.segment_length": 20,
    "algorithm.minibatch_size": 40,
    "algorithm.update_epochs": 1,
    "algorithm.lr_schedule": "kl_adaptive",
  }
)


def _train(tmp_path, config=_CONFIG, **kwargs):
  """Trains a run, and returns its folder."""
  options = training_run.Options(config, "small", str(tmp_path), env_processes=False, **kwargs)
  return run_folder.RunFolder(training_run.train(options).path)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
  return _train(tmp_path_factory.mktemp("source"))


def _variables(folder, step):
  path = checkpoint.find(folder.checkpoints, str(step))
  arrays, _ = checkpoint.load(path)
  return {name: array for name, array in arrays.items() if name.startswith("variable/")}


def test_fork_starts_with_weights_moments_and_normalization(source, tmp_path, capsys):
  origin = fork.find(f"{source.path}@80")
  assert origin.name == f"{source.path.parent.name}/{source.path.name}@80"
  # Another task with equal spaces.
  config = _CONFIG.override({"env.kwargs.g": 5.0, "forked_from": origin.lineage, "steps": 80})
  forked = _train(tmp_path, config, origin=origin)
  before, after = _variables(source, 80), _variables(forked, 0)
  assert before.keys() == after.keys()
  differing = {name for name in before if not np.array_equal(before[name], after[name])}
  assert differing == {"variable/step_size/rate:0"}
  assert after["variable/step_size/rate:0"] == np.float32(_CONFIG.algorithm.learning_rate)
  assert after["variable/adam/iteration"] > 0 and after["variable/observ/count:0"] > 0
  assert run_folder.RunFolder(forked.path).config == config
  printed = " ".join(capsys.readouterr().err.split())
  assert (
    f"Starts from {origin.name} with its Adam's moments, observation moments, policy, scale of "
    "returns, value. These start from the new settings: KL penalty, adaptive learning rate."
  ) in printed


def test_fork_does_not_need_its_origin_after_the_first_checkpoint(source, tmp_path):
  origin = fork.find(str(source.path))
  first, second = (_train(tmp_path / name, origin=origin) for name in "ab")
  for path in checkpoint.paths(second.checkpoints)[1:]:
    path.unlink()
  options = training_run.Options(second.config, folder=second, env_processes=False)
  training_run.train(options)
  assert _variables(first, 160).keys() == _variables(second, 160).keys()
  for name, array in _variables(first, 160).items():
    np.testing.assert_array_equal(array, _variables(second, 160)[name], name)


@pytest.mark.parametrize(
  "changes, variable",
  [
    ({"network.policy_layers": [32, 64]}, "policy/hidden_0/kernel"),
    ({"env.id": "MountainCarContinuous-v0"}, "policy/hidden_0/kernel"),
    ({"network.state_dependent_std": True}, "policy/output/kernel"),
  ],
)
def test_other_networks_are_an_error_that_leaves_no_run(changes, variable, source, tmp_path):
  with pytest.raises(config_lib.ConfigError, match=f"{variable} has the shape.*equal observation"):
    _train(tmp_path, _CONFIG.override(changes), origin=fork.find(str(source.path)))
  assert not list(tmp_path.iterdir())


def test_missing_optimizer_moments_start_anew(source, tmp_path, capsys):
  arrays, metadata = checkpoint.load(checkpoint.newest(source.checkpoints))
  pruned = run_folder.create(str(tmp_path), "pruned", _CONFIG)
  kept = {name: array for name, array in arrays.items() if not name.startswith("variable/adam")}
  checkpoint.save(pruned.checkpoints, 160, kept, metadata)
  forked = _train(tmp_path / "forked", origin=fork.find(str(pruned.path)))
  assert _variables(forked, 0)["variable/adam/iteration"] == 0
  assert "start from the new settings: Adam's moments" in " ".join(capsys.readouterr().err.split())


def test_unknown_steps_are_an_error_with_the_known_ones(source):
  with pytest.raises(config_lib.ConfigError, match="160"):
    fork.find(f"{source.path}@161")


def test_normalization_is_reused_completely_or_not_at_all(source, tmp_path, capsys):
  arrays, metadata = checkpoint.load(checkpoint.newest(source.checkpoints))
  changed = run_folder.create(str(tmp_path), "changed", _CONFIG)
  arrays["variable/observ/mean:0"] = np.zeros(9)
  arrays["variable/surplus"] = np.zeros(1)
  checkpoint.save(changed.checkpoints, 160, arrays, metadata)
  forked = _train(tmp_path / "forked", origin=fork.find(str(changed.path)))
  assert _variables(forked, 0)["variable/observ/count:0"] == 0
  printed = " ".join(capsys.readouterr().err.split())
  assert "settings: observation moments, KL penalty, adaptive learning rate." in printed
  assert "The new run does not use: surplus." in printed
