"""What stands beside an exported policy."""

from __future__ import annotations

from typing import Any

from agents import config as config_lib
from agents.export import formats
from agents.export import policy as policy_lib
from agents.training.run_folder import provenance


def text(policy: policy_lib.Policy, names: list[str]) -> str:
  """Return the README of a folder with a policy in these formats."""
  config = policy.config
  versions = provenance.versions(config.env.id)
  examples = "\n\n".join(
      f"`{formats.FORMATS[name].file}`:\n\n```python\n"
      f"{formats.FORMATS[name].example}\n```" for name in names)
  inputs = ", ".join(
      f'"{name}": np.zeros([{_shape(1, field)}], "{field.dtype}")'
      for name, field in policy.inputs.items())
  state = "" if not policy.states else (
      f"\nThe policy remembers: {', '.join(policy.states)} are zeros where an "
      "episode begins, and then what came out of the step before, with `next_` "
      "in front of the name.\n")
  settings = around(config.env)
  wrapped = "" if not settings else (
      "\n**The environment is not as it comes.** Observations and actions are "
      "those with these settings around it, which are not inside: "
      + ", ".join(f"`env.{name}={value}`" for name, value in settings.items())
      + ".\n")
  return f"""# A policy for {config.env.id}

After {policy.step:,} steps of training. From an observation as the environment
gives it to an action as it takes it, {
    "sampled by noise" if policy.sampled else "the mean action"}. Inside are
normalization, squashing, clipping and rescaling. All inputs and outputs have a
batch dimension in front, of any size.

| input | type | shape | |
|---|---|---|---|
{_rows(policy.inputs)}

| output | type | shape | |
|---|---|---|---|
{_rows(policy.outputs)}
{state}{wrapped}
One step, with zeros for an example:

```python
import numpy as np
inputs = {{{inputs}}}
```

{examples}

`signature.json` says the same for programs. Made with {", ".join(
    f"{name} {versions[name]}" for name in ("tensorflow", "keras", "numpy")
    if name in versions)}.
"""


def around(env: config_lib.Env) -> dict[str, Any]:
  """Return what is put around an environment, that acting must heed."""
  names = "wrappers", "action_repeat", "frame_delta", "kwargs"
  default = config_lib.Env()
  return {name: getattr(env, name) for name in names
          if getattr(env, name) != getattr(default, name)}


def _rows(fields: dict[str, policy_lib.Field]) -> str:
  return "\n".join(
      f"| `{name}` | {field.dtype} | [{_shape('N', field)}] | {field.about} |"
      for name, field in fields.items())


def _shape(batch: int | str, field: policy_lib.Field) -> str:
  return ", ".join(map(str, (batch, *field.shape)))
