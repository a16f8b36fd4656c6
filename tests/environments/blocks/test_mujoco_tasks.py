"""Vectorized steps of MuJoCo tasks are bit-equal to Gymnasium's steps."""

import numpy as np
import pytest

from tests.environments import mujoco_pairs

_OTHER_SETTINGS = {
  "HalfCheetah": {
    "ctrl_cost_weight": 0.3,
    "frame_skip": 2,
    "exclude_current_positions_from_observation": False,
  },
  "Walker2d": {
    "healthy_reward": 2,
    "forward_reward_weight": 0.5,
    "healthy_angle_range": [-0.2, 0.3],
  },
  "Hopper": {
    "healthy_state_range": [-3.0, 3.0],
    "ctrl_cost_weight": 1,
    "terminate_when_unhealthy": False,
  },
  "Ant": {
    "include_cfrc_ext_in_observation": False,
    "main_body": "aux_1",
    "contact_force_range": [-0.5, 2.0],
  },
  "Humanoid": {
    "include_cinert_in_observation": False,
    "include_cvel_in_observation": False,
    "include_qfrc_actuator_in_observation": False,
    "include_cfrc_ext_in_observation": False,
    "healthy_z_range": [1.2, 1.45],
  },
}


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize("kwargs", [{}, _OTHER_SETTINGS], ids=["defaults", "others"])
@pytest.mark.parametrize("task", mujoco_pairs.TASKS)
def test_vectorized_steps_equal_separate_steps(task, kwargs):
  pair = mujoco_pairs.pair(task, kwargs=kwargs.get(task, {}))
  assert pair[0][0]._task is not None
  outcome_keys = set()
  for step, action in enumerate(mujoco_pairs.actions(pair[0][1], 150)):
    # One environment waits; in every 40th step all environments wait.
    active = (np.arange(mujoco_pairs.SIZE) != step // 50) & (step % 40 != 0)
    for _, arrays in pair:
      arrays["active"][:] = active
    vectorized, separate = (mujoco_pairs.step(*member, action) for member in pair)
    assert vectorized == separate
    for report in vectorized[0].values():
      outcome_keys.add(tuple(sorted(report.outcome)))
      for value in report.outcome.values():
        assert isinstance(value, (bool, int, float, dict))
  # Only outcomes of truncated first episodes contain "cut_short".
  assert len(outcome_keys) == 2
  for block, _ in pair:
    block.close()
