"""Robots that are stepped at once make the bits that each makes alone."""

import numpy as np
import pytest

from tests.environments import mujoco_pairs

_OTHER_SETTINGS = {
    "HalfCheetah": {"ctrl_cost_weight": 0.3, "frame_skip": 2,
                    "exclude_current_positions_from_observation": False},
    "Walker2d": {"healthy_reward": 2, "forward_reward_weight": 0.5,
                 "healthy_angle_range": [-0.2, 0.3]},
    "Hopper": {"healthy_state_range": [-3.0, 3.0], "ctrl_cost_weight": 1,
               "terminate_when_unhealthy": False},
    "Ant": {"include_cfrc_ext_in_observation": False, "main_body": "aux_1",
            "contact_force_range": [-0.5, 2.0]},
    "Humanoid": {"include_cinert_in_observation": False,
                 "include_cvel_in_observation": False,
                 "include_qfrc_actuator_in_observation": False,
                 "include_cfrc_ext_in_observation": False,
                 "healthy_z_range": [1.2, 1.45]}}


@pytest.mark.parametrize("kwargs", [{}, _OTHER_SETTINGS], ids=["", "others"])
@pytest.mark.parametrize("kind", mujoco_pairs.KINDS)
def test_same_bits_as_each_alone(kind, kwargs, monkeypatch):
  policy_and_value = mujoco_pairs.policy_and_value(kind, monkeypatch, kwargs=kwargs.get(kind, {}))
  ends = set()
  for step, action in enumerate(mujoco_pairs.actions(policy_and_value[0][1], 150)):
    # One of them waits, and now and then all do.
    active = (np.arange(mujoco_pairs.SIZE) != step // 50) & (step % 40 != 0)
    for _, arrays in policy_and_value:
      arrays["active"][:] = active
    together, alone = (mujoco_pairs.step(*pair, action) for pair in policy_and_value)
    assert together == alone
    for report in together[0].values():
      ends.add(tuple(sorted(report.outcome)))
      for value in report.outcome.values():
        assert isinstance(value, (bool, int, float, dict))
  assert len(ends) == 2  # One of them says that episodes were cut short.
  for made, _ in policy_and_value:
    made.close()
