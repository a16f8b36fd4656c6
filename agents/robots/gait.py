"""Movement of the legs that a policy corrects (Iscen et al. 2018).

A robot that starts with random actions rarely lifts a foot. Therefore, targets of
the actuators follow a simple gait, and actions add to them. Each foot lifts in
half of its cycle. On the ground, it moves backward as fast as the commanded
velocity of the robot at the foot requires.
"""

from typing import Any

import numpy as np

from agents.robots import robot as robot_lib

_ITERATIONS = 50  # Of the inverse kinematics.
_DAMPING = 1e-4  # m²
_LEAD_SECONDS = 0.04  # By which targets are ahead of the feet.
_MAX_CHANGE = 0.1  # Per iteration, in rad.


class Gait:
  """Gait of one robot model with F feet and A actuators.

  Args:
    model: `mujoco.MjModel` of `robot.load_model`.
    data: `mujoco.MjData` of the standing robot; modified in place.
    robot: Description of the robot.
  """

  def __init__(self, model: Any, data: Any, robot: robot_lib.Robot) -> None:
    import mujoco

    self._frequency, self._height = robot.step_frequency, robot.step_height
    dofs = model.jnt_dofadr[model.actuator_trnid[:, 0]]
    standing = data.qpos.copy()
    addresses = model.jnt_qposadr[model.actuator_trnid[:, 0]]
    # Changes of the joints that lift each foot, [F, A], and that move it forward
    # and left, [F, 2, A] in rad/m.
    # Changes by which each foot carries the share of a lifted foot, too, [F, A].
    self._lift, self._move, self._press, self._feet = [], [], [], []
    gains = model.actuator_gainprm[:, 0]
    share = model.body_subtreemass[1] * np.linalg.norm(model.opt.gravity) / len(robot.feet)
    jacobian = np.zeros((3, model.nv))
    for name in robot.feet:
      site = model.site(name).id
      goal = data.site_xpos[site] + (0, 0, self._height)
      self._feet.append(data.site_xpos[site, :2] - standing[:2])
      for iteration in range(_ITERATIONS):
        mujoco.mj_jacSite(model, data, jacobian, None, site)
        part = jacobian[:, dofs]
        inverse = part.T @ np.linalg.inv(part @ part.T + _DAMPING * np.eye(3))
        if iteration == 0:
          self._move.append(inverse[:, :2].T)
          self._press.append(-share * part[2] / gains)
        change = inverse @ (goal - data.site_xpos[site])
        data.qpos[addresses] += change * min(1, _MAX_CHANGE / max(np.abs(change).max(), 1e-9))
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
      self._lift.append(data.qpos[addresses] - standing[addresses])
      data.qpos[:] = standing
      mujoco.mj_forward(model, data)
    self._lift, self._move, self._press, self._feet = map(np.array, (self._lift, self._move, self._press, self._feet))

  def heights(self, phase: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Returns the height of each foot in m, [N, F].

    Args:
      phase: Phase of the gait of N robots in rad, [N].
      moves: Whether each command differs from zero, [N].
    """
    return self._height * np.maximum(np.sin(self._phases(phase)), 0) * moves[:, None]

  def offsets(self, phase: np.ndarray, command: np.ndarray) -> np.ndarray:
    """Returns the changes of the standing robots' joints in rad, [N, A].

    Args:
      phase: Phase of the gait of N robots in rad, [N].
      command: Commanded velocities, [N, 3]: forward and left in m/s, turning in
        rad/s.
    """
    phases = self._phases(phase + _LEAD_SECONDS * 2 * np.pi * self._frequency)
    moves = np.abs(command).sum(1, keepdims=True) > 0
    lifted = np.maximum(np.sin(phases), 0) * moves
    pressed = (np.sin(phases) < 0) * moves
    x, y = self._feet.T
    turn = command[:, 2:]
    velocity = np.stack([command[:, :1] - turn * y, command[:, 1:2] + turn * x], -1)
    # In the middle of the stance, the foot moves with the commanded velocity.
    distance = -np.cos(phases)[..., None] * velocity / (2 * np.pi * self._frequency)
    return (
      np.einsum("nf,fa->na", lifted, self._lift)
      + np.einsum("nf,fa->na", pressed, self._press)
      + np.einsum("nfx,fxa->na", distance, self._move)
    )

  def _phases(self, phase: np.ndarray) -> np.ndarray:
    """Returns the phase of each foot, [N, F]; even and odd feet alternate."""
    return phase[:, None] + np.pi * np.arange(len(self._feet))
