"""Movement of the legs that a policy corrects (Iscen et al. 2018).

A robot with random actions rarely lifts a foot. Therefore, the targets of the
actuators follow a simple gait, and actions add to them. Each foot lifts in half
of its cycle. In the other half, it pushes the robot with the commanded
velocity.
"""

from typing import Any

import numpy as np

from agents import config
from agents.robots import mirror as mirror_lib
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
    num_feet = len(robot.feet)
    # Changes of the joints: to lift each foot, to move it forward and left (in
    # rad/m), and to carry also the weight that a lifted foot does not carry.
    self._lift = np.zeros((num_feet, model.nu))
    self._move = np.zeros((num_feet, 2, model.nu))
    self._press = np.zeros((num_feet, model.nu))
    self._feet = np.zeros((num_feet, 2))  # Positions relative to the root in m.
    joints = model.actuator_trnid[:, 0]
    angles, dofs = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
    standing = data.qpos.copy()
    weight = model.body_subtreemass[1] * np.linalg.norm(model.opt.gravity)
    sites = [model.site(name).id for name in robot.feet]
    moved = np.array([_jacobian(model, data, site)[:, dofs].any(0) for site in sites])
    for foot, site in enumerate(sites):
      # Without joints such as the waist, which would move other feet, too.
      own = moved[foot] & (moved.sum(0) == 1)
      self._feet[foot] = data.site_xpos[site, :2] - standing[:2]
      jacobian = _jacobian(model, data, site)[:, dofs] * own
      self._move[foot] = _inverse(jacobian)[:, :2].T
      self._press[foot] = -weight / num_feet * jacobian[2] / model.actuator_gainprm[:, 0]
      goal = data.site_xpos[site] + (0, 0, self._height)
      for _ in range(_ITERATIONS):
        inverse = _inverse(_jacobian(model, data, site)[:, dofs] * own)
        change = inverse @ (goal - data.site_xpos[site])
        data.qpos[angles] += change * min(1, _MAX_CHANGE / max(np.abs(change).max(), 1e-9))
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
      self._lift[foot] = data.qpos[angles] - standing[angles]
      data.qpos[:] = standing
      mujoco.mj_forward(model, data)

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

  def mirror(self) -> mirror_lib.Mirror:
    """Returns the mirror of the feet.

    Raises:
      ConfigError: If feet that are mirror images step at the same time.
    """
    images = [int(np.linalg.norm(self._feet - (x, -y), axis=1).argmin()) for x, y in self._feet]
    if any((foot - image) % 2 == 0 for foot, image in enumerate(images)):
      raise config.ConfigError(
        "symmetry: left and right feet must alternate in the list of feet, because every second "
        "foot steps at the same time."
      )
    return mirror_lib.Mirror(np.array(images), np.ones(len(images)))

  def _phases(self, phase: np.ndarray) -> np.ndarray:
    """Returns the phase of each foot, [N, F]; even and odd feet alternate."""
    return phase[:, None] + np.pi * np.arange(len(self._feet))


def _jacobian(model: Any, data: Any, site: int) -> np.ndarray:
  """Returns the derivative of a site's position, [3, nv] in m/rad."""
  import mujoco

  jacobian = np.zeros((3, model.nv))
  mujoco.mj_jacSite(model, data, jacobian, None, site)
  return jacobian


def _inverse(jacobian: np.ndarray) -> np.ndarray:
  """Returns the damped pseudo-inverse, [A, 3], of a Jacobian, [3, A]."""
  return jacobian.T @ np.linalg.inv(jacobian @ jacobian.T + _DAMPING * np.eye(3))
