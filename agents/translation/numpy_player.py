"""Runs an exported policy.npz; requires only NumPy.

    policy = Policy("policy.npz")
    state = policy.begin()                       # At the start of an episode.
    action, state = policy(observation, state)   # One step, without a batch.

The file contains NumPy calls and constants. `Policy.run` takes batches.
"""

import json
import os
from typing import Any

import numpy as np

_NAMES = """all arange argmax broadcast_to expand_dims full max mean min ones_like
  prod reshape squeeze sum take tile transpose where zeros_like""".split()
CALLS = {
  **{name: f for name, f in vars(np).items() if name in _NAMES or isinstance(f, np.ufunc)},
  "astype": lambda x, dtype: np.asarray(x).astype(dtype),
  "concatenate": lambda *xs: np.concatenate(xs[:-1], int(xs[-1])),
  "getitem": lambda x, *at: x[tuple(slice(*i) if isinstance(i, (list, tuple)) else i for i in at)],
  "matmul": lambda x, y, a, b: np.matmul(
    x.swapaxes(-1, -2) if a else x, y.swapaxes(-1, -2) if b else y
  ),
  "pad": lambda x, w, value=0: np.pad(x, w, constant_values=value),
  "shape": lambda x, dtype: np.array(x.shape, dtype),
  "stack": lambda *xs: np.stack(xs[:-1], xs[-1]),
  "view": lambda x, dtype: np.ascontiguousarray(x).view(dtype),
}


def draw_noise(rng: np.random.Generator, distributions: Any, batch: int) -> np.ndarray:
  """Returns noise [batch, ...] for pairs of a distribution's name and size."""
  return np.concatenate([getattr(rng, name)(size=(batch, n)) for name, n in distributions], -1)


def compute(program: dict, values: dict) -> dict[str, np.ndarray]:
  """Returns outputs by name; adds the results of all calls to `values`."""

  def literal(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else ... if x == "..." else x

  for result, name, arguments in program["calls"]:
    values[result] = CALLS[name](
      *[values[x["value"]] if isinstance(x, dict) else literal(x) for x in arguments]
    )
  return {name: values[value] for name, value in program["outputs"].items()}


def nest(tree: Any, values: dict) -> Any:
  """Replaces names by values in nested dicts and lists, which become tuples."""
  if isinstance(tree, dict):
    return {key: nest(part, values) for key, part in tree.items()}
  return values[tree] if isinstance(tree, str) else tuple(nest(part, values) for part in tree)


class Policy:
  """Maps observations to actions, both in the environment's own format.

  Args:
    path: Path of policy.npz.
    seed: Seed of the noise with which a sampled policy selects actions.
  """

  def __init__(self, path: Any, seed: Any = None) -> None:
    with np.load(path, allow_pickle=False) as file:
      if sum(member.file_size for member in file.zip.infolist()) > os.path.getsize(path):
        raise ValueError(f"{path} is compressed, and could fill the memory. Export it again.")
      self._constants = dict(file)
    self.about = json.loads(str(self._constants.pop("about")))
    self._rng = np.random.default_rng(seed)

  def begin(self, batch: int = 1) -> dict[str, np.ndarray]:
    """Returns the state at the start of `batch` episodes."""
    states = {name: x for name, x in self.about["inputs"].items() if x["role"] == "state"}
    return {name: np.zeros([batch, *x["shape"]], x["dtype"]) for name, x in states.items()}

  def __call__(self, observation: Any, state: dict) -> tuple[Any, dict]:
    """Returns an action for `env.step`, and the state for the next step."""
    inputs = dict(state)
    for name, x in self.about["inputs"].items():
      if x["role"] == "observation":
        part = observation
        for key in x["path"]:
          part = part[key if isinstance(part, dict) else int(key)]
        inputs[name] = np.asarray(part)[None]
    outputs = self.run(inputs)
    action = nest(self.about["action"], {name: value[0] for name, value in outputs.items()})
    return action, {name: outputs[f"next_{name}"] for name in state}

  def run(self, inputs: dict) -> dict[str, np.ndarray]:
    """Returns outputs [N, ...] by name for inputs [N, ...] by name."""
    batch, values = len(next(iter(inputs.values()))), dict(self._constants)
    for name, x in self.about["inputs"].items():
      is_drawn = x["role"] == "noise" and name not in inputs
      value = draw_noise(self._rng, x["drawn"], batch) if is_drawn else inputs[name]
      values[name] = np.asarray(value, x["dtype"])
    return compute(self.about, values)
