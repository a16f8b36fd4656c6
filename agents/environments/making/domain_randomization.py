"""Domain randomization of MuJoCo environments (Tobin et al. 2017)."""

import collections
import math
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

PREFIX = "randomization_"  # Of the drawn values in infos.
# Fields of `MjModel` that a factor multiplies.
_SCALED_FIELDS = {
  "friction": ("geom_friction",),
  "mass": ("body_mass", "body_inertia"),
  "motor": ("actuator_gainprm", "actuator_biasprm"),
  "damping": ("dof_damping",),
}
# Values of the arguments that leave the simulation unchanged.
NOMINAL = {
  **dict.fromkeys((*_SCALED_FIELDS, "gravity"), 1.0),
  **dict.fromkeys(("payload", "latency", "noise", "push"), 0.0),
}
_Range = tuple[float, float]


class DomainRandomization(gymnasium.Wrapper):
  """Draws properties of the simulation anew for every episode.

  Each argument is a range (low, high), from which every episode draws a value
  with a generator that its seed initializes. Infos contain the values as
  "randomization_friction" and so on.

  Args:
    env: Environment of Gymnasium's MuJoCo tasks, or one with the same
      attributes `model` and `data`.
    friction: Factor of all coefficients of friction.
    mass: Factor of all masses and inertias.
    payload: Mass that the first body carries at its center of mass, as a share
      of the mass of all bodies.
    motor: Factor of the forces of all actuators.
    damping: Factor of the damping of all joints.
    gravity: Factor of gravity.
    latency: Steps by which actions are delayed; whole numbers. Actions before
      the first one are zero.
    noise: Standard deviation of Gaussian noise that is added to observations.
    push: Speed of pushes in m/s. A push adds it to the velocity of the first
      joint: in a random horizontal direction if the joint is free, otherwise
      forward or backward.
    push_every: Steps between pushes.
    observe: Whether observations are a Dict with the parts "observation" and
      "randomization", the drawn values in the order of these arguments.

  Raises:
    TypeError: If the environment does not simulate a MuJoCo model, or the noise
      does not fit its observations.
    ValueError: If a range is invalid, or leads to an invalid model.
  """

  def __init__(
    self,
    env: gymnasium.Env,
    friction: _Range | None = None,
    mass: _Range | None = None,
    payload: _Range | None = None,
    motor: _Range | None = None,
    damping: _Range | None = None,
    gravity: _Range | None = None,
    latency: _Range | None = None,
    noise: _Range | None = None,
    push: _Range | None = None,
    push_every: int = 50,
    observe: bool = False,
  ) -> None:
    super().__init__(env)
    arguments = {
      **{"friction": friction, "mass": mass, "payload": payload, "motor": motor},
      **{"damping": damping, "gravity": gravity},
      **{"latency": latency, "noise": noise, "push": push},
    }
    self._ranges = {name: bounds for name, bounds in arguments.items() if bounds is not None}
    self._push_every, self._observe = push_every, observe
    robot: Any = env.unwrapped
    if not (hasattr(robot, "model") and hasattr(robot, "data")):
      raise TypeError(
        f"DomainRandomization needs a MuJoCo environment, not {type(robot).__name__}."
      )
    self._model, self._data = robot.model, robot.data
    _check(self._ranges, push_every, env.observation_space)
    fields = [field for fields in _SCALED_FIELDS.values() for field in fields]
    self._original = {name: getattr(self._model, name).copy() for name in fields}
    self._original["gravity"] = self._model.opt.gravity.copy()
    self._values: dict[str, float] = {}
    self._rng = np.random.default_rng()
    self._check_models()
    if observe:
      box = gymnasium.spaces.Box(-np.inf, np.inf, (len(self._ranges),), np.float32)
      self.observation_space = gymnasium.spaces.Dict(
        {"observation": env.observation_space, "randomization": box}
      )

  @property
  def changes_only_model(self) -> bool:
    """Whether steps and observations are those of the changed simulation."""
    return not (self._observe or self._ranges.keys() & {"latency", "noise", "push"})

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Draws new values and begins an episode."""
    # With `seed` alone, this generator would draw the same numbers as the
    # environment's own generator.
    self._rng = np.random.default_rng(None if seed is None else [seed, 2])
    self._values = {
      name: float(self._rng.integers(int(low), int(high) + 1))
      if name == "latency"
      else float(self._rng.uniform(low, high))
      for name, (low, high) in self._ranges.items()
    }
    self._change_model(self._values)
    observ, info = self.env.reset(seed=seed, options=options)
    self._num_steps = 0
    action = np.zeros(self.action_space.shape or (), self.action_space.dtype)
    latency = int(self._values.get("latency", 0))
    self._delayed = collections.deque([action] * latency)
    return self._observed(observ), {**info, **self._info()}

  def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
    """Steps the environment with the delayed action."""
    self._delayed.append(np.array(action))
    self._num_steps += 1
    if "push" in self._values and self._num_steps % self._push_every == 0:
      self._push()
    observ, reward, terminated, truncated, info = self.env.step(self._delayed.popleft())
    return self._observed(observ), reward, terminated, truncated, {**info, **self._info()}

  def _change_model(self, values: dict[str, float]) -> None:
    """Multiplies fields of the model by factors."""
    import mujoco

    for name, fields in _SCALED_FIELDS.items():
      if name in self._ranges:
        for field in fields:
          getattr(self._model, field)[:] = self._original[field] * values[name]
    if "gravity" in self._ranges:
      self._model.opt.gravity[:] = self._original["gravity"] * values["gravity"]
    if "payload" in self._ranges:
      mass = self._original["body_mass"]
      self._model.body_mass[1] = values.get("mass", 1.0) * mass[1] + values["payload"] * mass.sum()
    # Other constants of the model depend on masses.
    if self._ranges.keys() & {"mass", "payload"}:
      mujoco.mj_setConst(self._model, self._data)

  def _check_models(self) -> None:
    """Raises ValueError if the bounds of the ranges lead to invalid models."""
    import mujoco

    for index in (0, 1):
      values = {name: bounds[index] for name, bounds in self._ranges.items()}
      self._change_model(values)
      mujoco.mj_resetData(self._model, self._data)
      mujoco.mj_step(self._model, self._data)
      is_valid = np.isfinite(self._data.qacc).all() and not self._data.warning.number.any()
      if not is_valid:
        raise ValueError(
          f"DomainRandomization: the simulation becomes unstable with {values}. Choose ranges "
          "closer to 1."
        )
    self._change_model(NOMINAL)
    mujoco.mj_resetData(self._model, self._data)

  def _push(self) -> None:
    """Changes the velocity of the first joint."""
    import mujoco

    speed, velocity = self._values["push"], self._data.qvel
    if self._model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
      angle = self._rng.uniform(0, 2 * math.pi)
      velocity[:2] += speed * np.array([math.cos(angle), math.sin(angle)])
    else:
      velocity[0] += self._rng.choice([-speed, speed])

  def _observed(self, observ: Any) -> Any:
    """Returns an observation with noise and drawn values."""
    if noise := self._values.get("noise"):
      observ = self._noisy(observ, noise)
    if not self._observe:
      return observ
    values = np.array(list(self._values.values()), np.float32)
    return {"observation": observ, "randomization": values}

  def _noisy(self, observ: Any, std: float) -> Any:
    """Adds noise to an array, or to all arrays of a Dict."""
    if isinstance(observ, dict):
      return {name: self._noisy(part, std) for name, part in observ.items()}
    return observ + std * self._rng.normal(size=observ.shape).astype(observ.dtype)

  def _info(self) -> dict[str, float]:
    return {f"{PREFIX}{name}": value for name, value in self._values.items()}


def _check(ranges: dict[str, Any], push_every: int, observation: gymnasium.Space) -> None:
  """Raises an error if a range is invalid."""
  if not ranges:
    raise ValueError("DomainRandomization needs a range, such as {friction: [0.5, 1.5]}.")
  for name, bounds in ranges.items():
    smallest = math.ulp(0.0) if name == "mass" else 0.0
    is_range = isinstance(bounds, (tuple, list)) and len(bounds) == 2
    if not (
      is_range
      and all(isinstance(bound, (int, float)) and math.isfinite(bound) for bound in bounds)
      and (smallest if name != "gravity" else -math.inf) <= bounds[0] <= bounds[1]
      and (name != "latency" or all(bound == int(bound) for bound in bounds))
    ):
      kind = "whole numbers" if name == "latency" else "numbers"
      least = {"mass": ", greater than 0", "gravity": ""}.get(name, ", at least 0")
      raise ValueError(
        f"DomainRandomization: `{name}` must be [low, high] with low <= high: {kind}{least}. "
        f"Received: {bounds!r}."
      )
  if push_every < 1:
    raise ValueError(f"DomainRandomization: push_every must be at least 1. Received: {push_every}.")
  if "noise" in ranges and not _is_float(observation):
    raise TypeError(
      f"DomainRandomization: noise needs a Box of floats, or a Dict of these, not {observation}."
    )


def _is_float(space: gymnasium.Space) -> bool:
  """Returns whether a space is a Box of floats, or a Dict of these."""
  if isinstance(space, gymnasium.spaces.Dict):
    return all(map(_is_float, space.values()))
  return isinstance(space, gymnasium.spaces.Box) and space.dtype.kind == "f"
