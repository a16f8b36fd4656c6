"""Writes Python code that calls an exported policy without a batch."""

import json
from collections.abc import Sequence
from typing import Any

import gymnasium

from agents.export import policy as policy_lib
from agents.export import signature


def write(policy: policy_lib.ExportablePolicy) -> str:
  """Writes a function of observation and state, and the first state.

  Args:
    policy: Exported policy.

  Returns:
    Code that defines `policy` and `state`, and needs a function `run` from
    inputs [N, ...] to outputs [N, ...] by name.
  """
  arguments = [
    f'{name}=np.array([{_access(policy.observation_space, leaf.path)}], "{leaf.dtype}")'
    for name, leaf in zip(policy.names("observation"), policy.observation_leaves, strict=True)
  ]
  for name in policy.names("noise"):
    draws = ", ".join(f"rng.{kind}(size=[1, {size}])" for kind, size in policy.inputs[name].drawn)
    arguments.append(f'{name}=np.hstack([{draws}]).astype("float32")')
  action = _nested(signature.nested(policy.action_space, iter(policy.names("action"))))
  states = [
    f'    "{name}": np.zeros({[1, *field.shape]}, "{field.dtype}"),'
    for name, field in policy.inputs.items()
    if field.role == "state"
  ]
  generator = ["rng = np.random.default_rng()", ""]
  return "\n".join(
    [
      *(generator if policy.names("noise") else []),
      "def policy(observation, state):",
      "  outputs = run(",
      *(f"      {argument}," for argument in arguments),
      "      **state)",
      '  state = {name: outputs[f"next_{name}"] for name in state}',
      f"  return {action}, state",
      "",
      *(["state = {", *states, "}"] if states else ["state = {}"]),
    ]
  )


def _access(space: Any, path: Sequence[str]) -> str:
  """Returns code of the part of `observation` at a path, see `spaces.Leaf`."""
  code = "observation"
  for key in path:
    if isinstance(space, gymnasium.spaces.Dict):
      code, space = f"{code}[{json.dumps(key)}]", space[key]
    else:
      code, space = f"{code}[{key}]", space[int(key)]
  return code


def _nested(structure: Any) -> str:
  """Returns code of an action, from the names in its dicts and tuples."""
  if isinstance(structure, dict):
    items = ", ".join(f"{json.dumps(key)}: {_nested(part)}" for key, part in structure.items())
    return f"{{{items}}}"
  if isinstance(structure, tuple):
    return f"({', '.join(map(_nested, structure))},)"
  return f'outputs["{structure}"][0]'
