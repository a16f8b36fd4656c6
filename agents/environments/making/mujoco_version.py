"""Warns of a version of MuJoCo that computes wrong accelerations."""

import sys

import gymnasium

_WRONG_VERSION = "4.0.0"


def notes(env: gymnasium.Env) -> list[str]:
  """Returns a note if the model of an environment is affected.

  MuJoCo 4.0.0 computes wrong accelerations with sparse Jacobians, which MuJoCo
  uses by default for models with at least 60 degrees of freedom. The changelog
  of MuJoCo 4.0.1 describes the error.

  Args:
    env: Environment, which may have been closed.
  """
  mujoco, model = sys.modules.get("mujoco"), getattr(env.unwrapped, "model", None)
  if not mujoco or mujoco.__version__ != _WRONG_VERSION:
    return []
  if not (isinstance(model, mujoco.MjModel) and mujoco.mj_isSparse(model)):
    return []
  return [
    f"MuJoCo {_WRONG_VERSION} computes wrong accelerations for this model with {model.nv} degrees "
    "of freedom, because its Jacobians are sparse. Install another version, such as "
    "`pip install 'mujoco<4'`, or set <option jacobian=\"dense\"/> in the model."
  ]
