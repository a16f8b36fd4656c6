"""MuJoCo alone simulates what the environments simulate."""

import mujoco
import numpy as np
import pytest

from agents import configs
from agents.environments.making import make
from benchmarks.peers import physics


@pytest.mark.parametrize(
  "name, supported", [("hopper", True), ("pendulum", False), ("cartpole", False)]
)
def test_only_tasks_of_mujoco_are_supported(name, supported):
  assert physics.is_supported(configs.load(name)[1]) == supported


def test_threads_simulate_the_steps_of_the_environment(monkeypatch):
  calls = []

  class Rollout(mujoco.rollout.Rollout):
    def rollout(self, *args):
      calls.append((args, super().rollout(*args)))

  monkeypatch.setattr(mujoco.rollout, "Rollout", Rollout)
  config = configs.load("hopper")[1]
  assert physics.prepare(config, num_threads=2, num_steps=200)() > 0
  (_, _, _, control), (states, _) = calls[0]
  env = make.MakeEnv(config.env)()
  assert control.shape[:2] == (64, 4 * env.unwrapped.frame_skip)  # 256 steps in total.
  env.reset(seed=5)
  for step in range(4):
    env.step(control[5, step * env.unwrapped.frame_skip].astype(np.float32))
  size = 1 + env.unwrapped.model.nq
  np.testing.assert_allclose(states[5, -1, 1:size], env.unwrapped.data.qpos, rtol=1e-4, atol=1e-6)
