"""Plays an exported policy.npz; needs NumPy and nothing else.

    policy = Policy("policy.npz")
    state = policy.begin()                       # Where an episode begins.
    action, state = policy(observation, state)   # One step; no batch dimension.

The file holds a list of calls of NumPy's functions, in the order in which they
are made. `run` is the same with all inputs and outputs by name, and a batch.
"""

import json

import numpy as np

CALLS = {name: getattr(np, name) for name in (
    "abs add all argmax arange broadcast_to concatenate cos divide equal exp "
    "expand_dims expm1 floor floor_divide full full_like greater greater_equal "
    "less less_equal log log1p logaddexp logical_and logical_not logical_or "
    "matmul max maximum mean min minimum multiply negative not_equal ones_like "
    "power prod reshape sign sin split sqrt square stack subtract sum take "
    "tanh tile transpose where zeros_like").split()}
CALLS["astype"] = lambda x, dtype: np.asarray(x).astype(dtype)
CALLS["getitem"] = lambda x, *index: x[index]
CALLS["pad"] = lambda x, w, value=0: np.pad(x, w, constant_values=value)
CALLS["shape"] = lambda x, dtype: np.array(x.shape, dtype)
CALLS["view"] = lambda x, dtype: np.ascontiguousarray(x).view(dtype)
_DRAW: dict = {
    "normal": np.random.Generator.standard_normal,
    "uniform": np.random.Generator.random,
    "gumbel": lambda rng, size: rng.gumbel(size=size),
    "exponential": np.random.Generator.standard_exponential}


def draw(rng, kinds, batch):
  """Return noise for so many actions, of kinds with sizes: [batch, ...]."""
  return np.concatenate([
      _DRAW[kind](rng, (batch, size)) for kind, size in kinds], -1)


def compute(about, values):
  """Make all calls, and return outputs by name for inputs and constants."""
  def resolve(x):
    if isinstance(x, dict):
      return (values[x["value"]] if "value" in x else
              slice(*x["slice"]) if "slice" in x else Ellipsis)
    return tuple(map(resolve, x)) if isinstance(x, list) else x
  for name, arguments in about["calls"]:
    values.append(CALLS[name](*resolve(arguments)))
  return {name: values[i] for name, i in about["outputs"].items()}


class Policy:
  """From observations to the environment's own actions.

  Args:
    path: Of policy.npz.
    seed: Of the noise by which a sampled policy chooses.
  """

  def __init__(self, path, seed=None):
    with np.load(path, allow_pickle=False) as file:
      self.about = json.loads(str(file["about"]))
      self._constants = [
          file[f"constant_{i}"] for i in range(self.about["constants"])]
    self._rng = np.random.default_rng(seed)

  def begin(self, batch=1):
    """Return what is remembered where episodes begin."""
    return {name: np.zeros([batch, *x["shape"]], x["dtype"])
            for name, x in self.about["inputs"].items() if x["role"] == "state"}

  def __call__(self, observation, state):
    """Return an action, or its parts by output, and the next step's state.

    Args:
      observation: As the environment returns it; nested, where it has parts.
      state: From the step before, or from `begin`.
    """
    inputs = dict(state)
    for name, x in self.about["inputs"].items():
      if x["role"] == "observation":
        part = observation
        for key in x["path"]:
          part = part[key if isinstance(part, dict) else int(key)]
        inputs[name] = np.asarray(part)[None]
    outputs = self.run(inputs)
    state = {name: outputs.pop(f"next_{name}") for name in state}
    actions = {name: value[0] for name, value in outputs.items()}
    return actions.get("action", actions), state

  def run(self, inputs):
    """Return all outputs, [N, ...], for inputs, [N, ...], all by name."""
    given, values = dict(inputs), []
    batch = len(next(iter(given.values())))
    for name, x in self.about["inputs"].items():
      if x["role"] == "noise" and name not in given:
        given[name] = draw(self._rng, x["drawn"], batch)
      values.append(np.asarray(given[name], x["dtype"]))
    return compute(self.about, values + self._constants)
