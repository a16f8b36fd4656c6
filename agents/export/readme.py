"""README of an exported policy."""

import pathlib
import string
from typing import Any

from agents import config as config_lib
from agents.export import policy as policy_lib
from agents.export import signature
from agents.training.run_folder import provenance

_TEMPLATES = pathlib.Path(__file__).with_name("templates")


def text(policy: policy_lib.ExportablePolicy, names: list[str]) -> str:
  """Return the README of an exported folder.

  Args:
    policy: Exported policy.
    names: Names of the formats in the folder.
  Returns:
    Text in Markdown format.
  """
  env = policy.config.env
  versions = provenance.versions(env.id)
  states = ", ".join(policy.names("state"))
  settings = ", ".join(f"`env.{name}={value}`" for name, value in (
      environment_settings(env).items()))
  template = string.Template((_TEMPLATES / "README.md").read_text())
  return template.substitute(
      environment=env.id, step=f"{policy.step:,}",
      actions="sampled with noise" if "noise" in policy.inputs
      else "the mean action",
      inputs=_rows(policy.inputs), outputs=_rows(policy.outputs),
      state=f"\nThe policy has a state: {states} are zeros at the start of an "
      "episode. In later steps, they are the outputs of the last step with "
      "`next_` in front of the name.\n" if states else "",
      settings="\n**The environment has settings** that are not part of the "
      "exported policy. Apply them to observations and actions: "
      f"{settings}.\n" if settings else "",
      zeros=", ".join(
          f'"{name}": np.zeros([{_shape(1, field)}], "{field.dtype}")'
          for name, field in policy.inputs.items()),
      examples="\n".join(
          (_TEMPLATES / f"{name}.md").read_text() for name in names),
      versions=", ".join(f"{name} {versions[name]}" for name in (
          "tensorflow", "keras", "numpy") if name in versions))


def environment_settings(env: config_lib.Env) -> dict[str, Any]:
  """Return settings of an environment that change observations or actions.

  Args:
    env: Configuration of the environment.
  Returns:
    Value for each name of a setting that is not the default.
  """
  names = "wrappers", "action_repeat", "frame_delta", "kwargs"
  default = config_lib.Env()
  return {name: getattr(env, name) for name in names
          if getattr(env, name) != getattr(default, name)}


def _rows(fields: dict[str, signature.SignatureField]) -> str:
  return "\n".join(
      f"| `{name}` | {field.dtype} | [{_shape('N', field)}] | {field.about} |"
      for name, field in fields.items())


def _shape(batch: int | str, field: signature.SignatureField) -> str:
  return ", ".join(map(str, (batch, *field.shape)))
