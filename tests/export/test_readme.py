"""The README of an exported policy contains code that plays an episode."""

import pytest

from agents import trained_policy
from agents.export import formats, readme
from tests.export import readme_code, test_formats, untrained_runs


def _play(policy, name, folder, monkeypatch) -> float:
  """Exports a policy; returns the episode return of the code in the README."""
  file_format = formats.load(name)
  file_format.write(policy, folder / file_format.file)
  path = folder / "README.md"
  path.write_text(readme.text(policy, [name]))
  (episode_return,) = readme_code.play(path, folder, monkeypatch)
  return episode_return


def _return_in_training(policy) -> float:
  """Returns the return of the same episode with the code of training."""
  trained = trained_policy.TrainedPolicy(policy)
  env = trained.make_env()
  observation, _ = env.reset(seed=0)
  state, total, ended = trained.begin(), 0.0, False
  while not ended:
    action, state = trained(observation, state)
    observation, reward, terminated, truncated, _ = env.step(action)
    total, ended = total + float(reward), terminated or truncated
  env.close()
  return total


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize("kind", ["gru", "box", "nested", "lstm", "pictures"])
@pytest.mark.parametrize("name", test_formats.FORMATS)
def test_code_plays_the_same_episode_as_the_policy_in_training(name, kind, tmp_path, monkeypatch):
  if (name, kind) == ("onnx", "nested"):
    pytest.skip("ONNX does not support nested spaces.")
  policy = untrained_runs.load(tmp_path, kind)
  assert _play(policy, name, tmp_path, monkeypatch) == pytest.approx(
    _return_in_training(policy), 1e-3
  )


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("name", test_formats.FORMATS)
def test_code_of_a_sampled_policy_draws_noise(name, tmp_path, monkeypatch):
  policy = untrained_runs.load(tmp_path, "choice", sampled=True)
  file_format = formats.load(name)
  file_format.write(policy, tmp_path / file_format.file)
  path = tmp_path / "README.md"
  path.write_text(readme.text(policy, [name]))
  lengths = {readme_code.play(path, tmp_path, monkeypatch)[0] for _ in range(8)}
  assert len(lengths) > 1 and min(lengths) > 5 and max(lengths) <= 500


def test_table_describes_the_states_before_and_after_a_step(tmp_path):
  text = readme.text(untrained_runs.load(tmp_path, "lstm"), ["npz"])
  rows = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
  assert list(rows) == [
    "observation",
    "frames",
    "frames_begun",
    "memory",
    "action",
    "next_frames",
    "next_frames_begun",
    "next_memory",
  ]
  assert rows["memory"].endswith(
    "| memory of the recurrent network before this step: zeros at the start "
    "of an episode, then `next_memory` of the previous step |"
  )
  assert rows["next_memory"].endswith(
    "| memory of the recurrent network after this step: pass it as `memory` at the next step |"
  )


def test_readme_names_settings_that_are_not_part_of_the_policy(tmp_path):
  text = readme.text(untrained_runs.load(tmp_path, "nested"), ["npz"])
  assert "settings of the run: `env.kwargs={'space': 'nested'}`." in text
  text = readme.text(untrained_runs.load(tmp_path, "box"), ["npz"])
  assert "settings of the run" not in text and "has a state" not in text
