"""Writes the README of an exported policy."""

import pathlib
import string
from typing import Any

from agents import config as config_lib
from agents.export import environment_code, formats, policy_code, signature
from agents.export import policy as policy_lib
from agents.training.run_folder import provenance


def text(policy: policy_lib.ExportablePolicy, names: list[str]) -> str:
  """Returns the README for the folder of an exported policy.

  Args:
    policy: Exported policy.
    names: Names of the formats in the folder.

  Returns:
    Text in Markdown format.
  """
  env = policy.config.env
  versions = provenance.versions(env.id)
  states = ", ".join(f"`{name}`" for name in policy.names("state"))
  settings = ", ".join(
    f"`env.{name}={value}`" for name, value in (environment_settings(env).items())
  )
  code = environment_code.write(env)
  sections = [
    _fill(
      name,
      imports="\n".join(f"import {module}" for module in code.modules),
      policy=policy_code.write(policy),
      episode=_fill("episode", environment="\n".join(code.statements)),
    )
    for name in names
  ]
  if states:
    sections.append(_fill("state", names=states))
  if settings:
    sections.append(_fill("settings", settings=settings))
  return (
    _fill(
      "README",
      environment=env.id,
      step=f"{policy.step:,}",
      actions="sampled with noise" if "noise" in policy.inputs else "the mean action",
      inputs=_rows(policy.inputs),
      outputs=_rows(policy.outputs),
      sections="\n\n".join(sections),
      modules=_fill("modules", modules=", ".join(f"`{name}`" for name in code.own_modules))
      if code.own_modules
      else "",
      versions=", ".join(
        f"{name} {versions[name]}" for name in ("tensorflow", "keras", "numpy") if name in versions
      ),
    )
    + "\n"
  )


def environment_settings(env: config_lib.Env) -> dict[str, Any]:
  """Returns settings of an environment that can change spaces or dynamics.

  Args:
    env: Configuration of the environment.

  Returns:
    Values that are not the default, by name of the setting.
  """
  names = "wrappers", "action_repeat", "frame_delta", "kwargs"
  default = config_lib.Env()
  return {
    name: getattr(env, name) for name in names if getattr(env, name) != getattr(default, name)
  }


def _fill(name: str, **values: str) -> str:
  """Returns the text of a template after replacing placeholders by values."""
  folder = "formats" if name in formats.NAMES else "templates"
  path = pathlib.Path(__file__).parent / folder / f"{name}.md"
  return string.Template(path.read_text().rstrip("\n")).substitute(values)


def _rows(fields: dict[str, signature.SignatureField]) -> str:
  return "\n".join(
    f"| `{name}` | {field.dtype} | [{', '.join(['N', *map(str, field.shape)])}] | {field.about} |"
    for name, field in fields.items()
  )
