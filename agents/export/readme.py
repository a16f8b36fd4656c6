"""README of an exported policy."""

from typing import Any

from agents import config as config_lib
from agents.export import formats, signature
from agents.export import policy as policy_lib
from agents.training.run_folder import provenance


def text(policy: policy_lib.ExportablePolicy, names: list[str]) -> str:
  """Return the README of an exported folder.

  Args:
    policy: Exported policy.
    names: Names of the formats in the folder.
  Returns:
    Text in Markdown format.
  """
  config = policy.config
  versions = provenance.versions(config.env.id)
  examples = "\n\n".join(
      f"`{formats.FORMATS[name].file}`:\n\n```python\n"
      f"{formats.FORMATS[name].example}\n```" for name in names)
  inputs = ", ".join(
      f'"{name}": np.zeros([{_shape(1, field)}], "{field.dtype}")'
      for name, field in policy.inputs.items())
  state = "" if not policy.states else (
      f"\nThe policy has a state: {', '.join(policy.states)} are zeros at the "
      "start of an episode. In later steps, they are the outputs of the last "
      "step with `next_` in front of the name.\n")
  settings = environment_settings(config.env)
  wrapped = "" if not settings else (
      "\n**The environment has settings** that are not part of the exported "
      "policy. Apply them to observations and actions: "
      + ", ".join(f"`env.{name}={value}`" for name, value in settings.items())
      + ".\n")
  return f"""# A policy for {config.env.id}

A policy after {policy.step:,} steps of training. It maps an observation of the
environment to an action in the environment's own format: {
    "sampled with noise" if policy.sampled else "the mean action"}. It contains
normalization, squashing, clipping and rescaling. All inputs and outputs start
with a batch dimension of any size.

| input | type | shape | |
|---|---|---|---|
{_rows(policy.inputs)}

| output | type | shape | |
|---|---|---|---|
{_rows(policy.outputs)}
{state}{wrapped}
One step, with zeros as an example:

```python
import numpy as np
inputs = {{{inputs}}}
```

{examples}

`signature.json` contains the same for programs. Exported with {", ".join(
    f"{name} {versions[name]}" for name in ("tensorflow", "keras", "numpy")
    if name in versions)}.
"""


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
