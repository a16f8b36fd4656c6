"""`build` builds the components of a run from its config."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest

from agents import build, configs
from agents import config as config_lib
from agents.environments.workers import pool
from tests.support import command, config_fixtures
from tests.training import scored

# Script that prints the memory of its process in MB after each epoch.
_EPOCHS = """
from agents import configs
from agents import build
from agents import config as config_lib
from agents.environments.workers import pool
_, config = configs.load("hopper")
config = config.override({
    "num_envs": 4, "algorithm.update_epochs": 1,
    "algorithm.segment_length": 8, "algorithm.minibatch_size": 32})
build.setup(config)
with pool.WorkerPool(2) as workers:
  trainer = build.trainer(config, workers)
  trainer.start()
  for epoch in range(230):
    trainer.epoch(epoch / 1000)
    with open("/proc/self/statm") as file:
      print(int(file.read().split()[1]) * 4096 / 1e6)
"""


# `test_one_graph.py` builds the trainers of all configs.
@pytest.mark.parametrize(
  "name",
  [
    "pendulum",
    *(
      pytest.param(name, marks=pytest.mark.slow)
      for name in ("breakout", "cartpole", "pixel_cartpole", "walker")
    ),
  ],
)
def test_new_trainer_has_the_state_of_all_components(name):
  config = config_fixtures.config(name)
  size = 2 * config.algorithm.segment_length
  trainer = build.trainer(
    config.override({"num_envs": 2, "eval_episodes": 2, "algorithm.minibatch_size": size}), None
  )
  trainer.start()
  state = trainer.state()
  trainer.close()
  assert state["episodes/seed"].shape == (2,)
  assert "variable/policy/output/kernel" in state
  assert "variable/value/output/kernel" in state


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_process_memory_grows_at_most_two_percent_over_200_epochs():
  done = subprocess.run(
    [sys.executable, "-c", _EPOCHS],
    cwd=command.ROOT,
    check=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
  )
  used = [float(line) for line in done.stdout.split()]
  assert max(used[30:]) <= 1.02 * used[29]


def _pendulums(workers=None, **changes):
  """Returns a trainer with batches of 50 steps of 4 pendulums."""
  config = configs.load("pendulum")[1].override(
    {
      "num_envs": 4,
      "algorithm.segment_length": 50,
      "algorithm.minibatch_size": 200,
      "algorithm.update_epochs": 1,
      "eval_episodes": 1,
      **changes,
    }
  )
  return build.trainer(config, workers)


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
  "stagger, lengths",
  [(True, [[50], [100], [150], [200], [200]]), (False, [[], [], [], [200] * 4, []])],
)
def test_stagger_truncates_first_episodes_at_different_lengths(stagger, lengths):
  trainer = _pendulums(stagger=stagger)
  trainer.start()
  epochs = [trainer.epoch(0.0) for _ in lengths]
  assert [[episode.length for episode in epoch.episodes] for epoch in epochs] == lengths
  # Truncated first episodes are not reported as scores.
  assert {length for epoch in epochs for length in scored.lengths(epoch)} == {200}
  assert sum(len(scored.scores(epoch)) for epoch in epochs) == (2 if stagger else 4)
  assert sum(len(scored.reward_parts(epoch)) for epoch in epochs) == (2 if stagger else 4)


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_staggered_episodes_continue_from_a_checkpoint():
  uninterrupted, restored = _pendulums(), _pendulums()
  uninterrupted.start()
  for _ in range(2):
    uninterrupted.epoch(0.0)
  restored.load(uninterrupted.state())
  for _ in range(3):
    expected, resumed = uninterrupted.epoch(0.0), restored.epoch(0.0)
    assert resumed.episodes == expected.episodes
    assert resumed.metrics == expected.metrics


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_truncated_first_episodes_are_equal_with_and_without_workers():
  epochs = []
  with pool.WorkerPool(2) as workers:
    for worker_pool in (None, workers):
      trainer = _pendulums(worker_pool)
      trainer.start()
      epochs.append([trainer.epoch(0.0) for _ in range(3)])
      trainer.close()
  for expected, epoch in zip(*epochs, strict=True):
    assert epoch.episodes == expected.episodes
    assert epoch.metrics == expected.metrics


@pytest.mark.slow
@pytest.mark.parametrize(
  "changes, score",
  [
    ({"network.action_distribution": "beta"}, 0.6),
    ({"network.action_distribution": "squashed_gaussian"}, 0.7),
    (
      {"network.action_distribution": "squashed_gaussian", "network.state_dependent_std": True},
      0.7,
    ),
  ],
)
def test_bounded_distributions_learn_to_follow_a_target(changes, score):
  config = config_lib.Config().override(
    {
      "env.id": "tests.toy:Target",
      "num_envs": 16,
      "eval_episodes": 1,
      "algorithm.segment_length": 20,
      "algorithm.minibatch_size": 80,
      "algorithm.learning_rate": 3e-3,
      "network.policy_layers": [16],
      "network.value_layers": [16],
      **changes,
    }
  )
  trainer = build.trainer(config, None)
  trainer.start()
  epochs = [trainer.epoch(0.0) for _ in range(15)]
  trainer.close()
  first, last = (np.mean(scored.scores(epochs[index])) / 5 for index in (0, -1))
  assert first < 0.5 and last > score
  assert epochs[-1].metrics["action_saturation"] == 0


@contextlib.contextmanager
def _trainer(**changes):
  config = config_lib.Config().override(changes)
  trainer = build.trainer(config, None)
  try:
    trainer.start()
    yield trainer, config
  finally:
    trainer.close()


def _train(trainer, config):
  """Trains for the complete budget; returns the mean return of 20 episodes."""
  done = 0
  while done < config.steps:
    done += trainer.epoch(done / config.steps).steps
  return np.mean(trainer.evaluate(20, lambda: False).scores)


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_training_with_composite_spaces_continues_from_a_checkpoint():
  with _trainer(
    **{
      "env.id": "tests.echo:Echo",
      "env.kwargs": {"space": "nested"},
      "num_envs": 4,
      "algorithm.minibatch_size": 32,
      "algorithm.update_epochs": 1,
    }
  ) as (trainer, _):
    trainer.epoch(0.0)
    saved = trainer.state()
    trainer.epoch(0.5)
    expected = trainer.state()
    trainer.load(saved)
    trainer.epoch(0.5)
    for name, array in trainer.state().items():
      np.testing.assert_array_equal(array, expected[name], err_msg=name)


@pytest.mark.slow
def test_training_solves_a_task_with_composite_actions():
  with _trainer(
    **{
      "env.id": "tests.echo:Echo",
      "env.kwargs": {"space": "nested"},
      "num_envs": 16,
      "algorithm.segment_length": 64,
      "steps": 30_000,
      "algorithm.learning_rate": 1e-3,
    }
  ) as (trainer, config):
    # The maximum return is 20.
    assert np.mean(trainer.evaluate(20, lambda: False).scores) < 12
    assert _train(trainer, config) > 18


@pytest.mark.slow
def test_training_solves_a_task_with_parts_that_only_the_value_receives():
  with _trainer(
    **{
      "env.id": "tests.toy:Hidden",
      "network.policy_observ": ["seen"],
      "num_envs": 16,
      "algorithm.segment_length": 20,
      "steps": 10_000,
      "algorithm.learning_rate": 3e-3,
    }
  ) as (trainer, config):
    # Half of the sum is the best guess of the target, with a return of 3.3. A
    # policy that sees all parts reaches 5.
    assert np.mean(trainer.evaluate(20, lambda: False).scores) < 2.9
    assert 3 < _train(trainer, config) < 3.7


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"network.recurrent": "gru"}])
def test_training_takes_only_allowed_actions(changes):
  with _trainer(
    **{
      "env.id": "tests.toy:Masked",
      "network.action_mask": "mask",
      "on_env_error": "raise",  # The environment rejects forbidden actions.
      "num_envs": 16,
      "algorithm.segment_length": 20,
      "algorithm.minibatch_size": 80,
      "steps": 10_000,
      "algorithm.learning_rate": 3e-3,
      **changes,
    }
  ) as (trainer, config):
    assert np.mean(trainer.evaluate(20, lambda: False).scores) < 4
    assert _train(trainer, config) > 4.8


_IMAGES = {
  "env.id": "tests.toy:Flash",
  "num_envs": 8,
  "network.frame_stack": 2,
  "algorithm.segment_length": 16,
  "algorithm.minibatch_size": 64,
  "algorithm.update_epochs": 4,
  "algorithm.learning_rate": 1e-3,
}


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("share_core, stack", [(True, 1), (False, 2)])
@pytest.mark.slow
def test_an_update_changes_the_convolutions_of_policy_and_value(share_core, stack):
  with _trainer(**{**_IMAGES, "network.share_core": share_core, "network.frame_stack": stack}) as (
    trainer,
    _,
  ):
    before = trainer.state()
    trainer.epoch(0.0)
    kernels = [name for name in before if name.endswith("conv_0/kernel") and "adam" not in name]
    assert len(kernels) == (1 if share_core else 2)
    for name in kernels:
      assert (before[name] != trainer.state()[name]).any()


@pytest.mark.slow
def test_training_solves_a_task_with_image_observations():
  with _trainer(**_IMAGES, **{"steps": 8000}) as (trainer, config):
    # The maximum return is 7; random actions reach 3.5.
    assert _train(trainer, config) > 6.5
