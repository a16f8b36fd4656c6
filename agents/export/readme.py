"""What stands beside an exported policy."""

from __future__ import annotations

from agents.export import formats
from agents.export import policy as policy_lib
from agents.training import provenance


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
  wrapped = "" if not config.env.wrappers else (
      "\nObservations are those of the environment within the wrappers of "
      f"`env.wrappers`: {config.env.wrappers}.\n")
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


def _rows(fields: dict[str, policy_lib.Field]) -> str:
  return "\n".join(
      f"| `{name}` | {field.dtype} | [{_shape('N', field)}] | {field.about} |"
      for name, field in fields.items())


def _shape(batch: int | str, field: policy_lib.Field) -> str:
  return ", ".join(map(str, (batch, *field.shape)))
