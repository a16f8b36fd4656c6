"""What a run is made of: frozen dataclasses, plain data in and out.

`config.yaml` in a run folder is this data, complete and without tags, and
`load` rejects whatever it does not know instead of guessing.
"""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from typing import Any

import yaml

from agents import config_parsing

ConfigError = config_parsing.ConfigError


@dataclasses.dataclass(frozen=True)
class Env:
  """One environment, complete enough to rebuild it anywhere."""

  id: str = ""  # Gymnasium id, `module:Id-v0`, `module:Class` or function.
  kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  max_length: int | None = None  # Agent steps to truncation; None: the task's.
  action_repeat: int = 1  # Simulator steps for one action; rewards are summed.
  random_start: int = 0  # Up to so many random actions before the first one.
  frame_delta: bool = False  # Observe the change since the last observation.
  # Gymnasium's or `module:Class`, the innermost first: {NAME: {ARGUMENT: ...}}.
  wrappers: tuple[dict[str, dict[str, Any]], ...] = ()
  # What steps training's: "envpool" in C++, or `module:Class` of your own.
  backend: str = "gymnasium"

  def __post_init__(self):
    _require(self, "max_length", "be at least 1", _optional_at_least(1))
    _require(self, "action_repeat", "be at least 1", _at_least(1))
    _require(self, "random_start", "be at least 0", _at_least(0))
    _require(self, "wrappers", "hold a name with its arguments each, such as "
             "[{GrayscaleObservation: {keep_dim: true}}]",
             lambda wrappers: all(len(each) == 1 for each in wrappers))
    _require_named(self, "env.backend", "gymnasium", "envpool")

  @property
  def deterministic(self) -> bool:
    """Whether seed and actions are enough to play an episode of training again.
    """
    return self.backend == "gymnasium"


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """Proximal policy optimization (Schulman et al., 2017).

  Sources and reasons are in docs/algorithm.md. Other algorithms read of these
  what they need.
  """

  type: str = "ppo"  # Or `module:Class` of your own, see docs/extending.md.
  # Arguments of that class; none of "ppo".
  kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # What one update learns from: either of the two.
  segment_length: int | None = 32  # Steps of each environment, or None.
  update_every: int | None = None  # Whole episodes of all environments.
  update_epochs: int = 10  # Passes over them in one update.
  minibatch_size: int | None = 64  # Steps of a gradient step; None: all.
  learning_rate: float = 3e-4  # Adam step size, at the start.
  lr_schedule: str = "linear"  # "constant", "linear" (to 0) or "kl_adaptive".
  adam_epsilon: float = 1e-5  # Adam divides by at least this.
  max_grad_norm: float | None = 0.5  # Of all gradients together.

  discount: float = 0.99  # Per environment step.
  gae_lambda: float = 0.95  # 0: one-step TD errors, 1: Monte Carlo returns.
  recompute_advantages: bool = True  # Anew at every epoch, or once per update.
  normalize_advantage: bool = True  # To mean 0 and std 1 in each minibatch.
  bootstrap_truncation: bool = True  # False: time limits end all reward.

  clip_ratio: float | None = 0.2  # Ratios leave [1 - c, 1 + c] unrewarded.
  kl_target: float = 0.01  # KL divergence of one update.
  kl_penalty: float = 0.0  # Initial weight of the KL penalty; 0: none.
  kl_penalty_factor: float = 1.5  # Its change beyond 0.7 to 1.3 of the target.
  kl_cutoff_factor: float = 2.0  # Times the target, which a sequence has free.
  kl_cutoff_coef: float = 0.0  # Weight of its squared excess; 0: no cutoff.
  value_coef: float = 0.5  # Weight of the squared value error.
  value_clip: float | None = None  # Values gain nothing by moving further.
  entropy_coef: float = 0.0  # Weight of the entropy bonus.

  normalize_observ: bool = True  # By running mean and std.
  observ_clip: float = 10.0  # Normalized observations stay within +- this.
  reward_scale: str = "return"  # Running std of: "return", "reward" or "none".
  reward_clip: float | None = None  # Scaled rewards stay within +- this.

  def __post_init__(self):
    _require_named(self, "algorithm.type", "ppo")
    _require_no_kwargs(self, "algorithm.kwargs", self.type == "ppo")
    for name in ("segment_length", "update_every", "minibatch_size"):
      _require(self, name, "be at least 1", _optional_at_least(1))
    if (self.segment_length is None) == (self.update_every is None):
      raise ConfigError(
          "Exactly one of `segment_length` and `update_every` must be null, as "
          "an update learns from segments or from whole episodes. "
          f"Received: {self.segment_length} and {self.update_every}.")
    _require(self, "update_epochs", "be at least 1", _at_least(1))
    for name in ("learning_rate", "adam_epsilon", "kl_target",
                 "kl_cutoff_factor", "observ_clip"):
      _require(self, name, "be positive", lambda x: 0 < x < math.inf)
    for name in ("max_grad_norm", "clip_ratio", "value_clip", "reward_clip"):
      _require(self, name, "be positive or null",
               lambda x: x is None or 0 < x < math.inf)
    for name in ("value_coef", "entropy_coef", "kl_penalty", "kl_cutoff_coef"):
      _require(self, name, "be at least 0", lambda x: 0 <= x < math.inf)
    _require(self, "kl_penalty_factor", "be at least 1",
             lambda x: 1 <= x < math.inf)
    _require(self, "discount", "lie in (0, 1]", lambda x: 0 < x <= 1)
    _require(self, "gae_lambda", "lie in [0, 1]", lambda x: 0 <= x <= 1)
    _require_one_of(self, "lr_schedule", "constant", "linear", "kl_adaptive")
    _require_one_of(self, "reward_scale", "return", "reward", "none")


@dataclasses.dataclass(frozen=True)
class Network:
  """Networks for policy and value, and the policy's distribution."""

  # "dense", which the next three are for, or `module:Class` of your own.
  hidden: str = "dense"
  # Arguments of that class; none of "dense".
  hidden_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  policy_layers: tuple[int, ...] = (64, 64)  # Units of the hidden layers.
  value_layers: tuple[int, ...] = (64, 64)
  activation: str = "tanh"  # Of the hidden layers: "tanh", "relu" or "elu".
  conv: str = "nature"  # Layers in front for images: "nature" or "impala".
  # Of actions that are numbers: "gaussian", whose samples the environment
  # clips, or within bounds "squashed_gaussian" (by tanh) or "beta".
  action_distribution: str = "gaussian"
  mean_activation: str = "linear"  # Of "gaussian": "linear" or "tanh".
  state_dependent_std: bool = False  # Of both Gaussians; that of "beta" does.
  initializer: str = "orthogonal"  # Or "glorot".
  init_output_factor: float = 0.01  # Last policy layer; glorot: its variance.
  # Of a new policy over numbers, where actions span [-1, 1]: before squashing
  # with "squashed_gaussian", and at most 0.48 with "beta".
  init_std: float = 0.6
  frame_stack: int = 1  # Observations that are seen at a time, the last ones.
  recurrent: str | None = None  # Cell that remembers: "gru", "lstm" or null.
  recurrent_units: int = 64  # Of that cell, which comes before the layers.
  share_core: bool = True  # Policy and value share convolutions and cell.

  def __post_init__(self):
    _require_named(self, "network.hidden", "dense")
    _require_no_kwargs(self, "network.hidden_kwargs", self.hidden == "dense")
    for name in ("policy_layers", "value_layers"):
      _require(self, name, "hold positive unit counts",
               lambda layers: all(units > 0 for units in layers))
    for name in ("init_output_factor", "init_std"):
      _require(self, name, "be positive", lambda x: 0 < x < math.inf)
    _require_one_of(self, "activation", "tanh", "relu", "elu")
    _require_one_of(self, "conv", "nature", "impala")
    _require_one_of(self, "action_distribution", "gaussian",
                    "squashed_gaussian", "beta")
    _require_one_of(self, "mean_activation", "linear", "tanh")
    _require_one_of(self, "initializer", "orthogonal", "glorot")
    if self.recurrent is not None:
      _require_one_of(self, "recurrent", "gru", "lstm")
    _require(self, "frame_stack", "be at least 1", _at_least(1))
    _require(self, "recurrent_units", "be at least 1", _at_least(1))


@dataclasses.dataclass(frozen=True)
class Config:
  """One experiment. Every `steps` counts all environments together."""

  env: Env = dataclasses.field(default_factory=Env)
  algorithm: Algorithm = dataclasses.field(default_factory=Algorithm)
  network: Network = dataclasses.field(default_factory=Network)
  steps: int = 1_000_000  # Budget; learning-rate schedules follow it.
  extended_from: tuple[int, ...] = ()  # Budgets before; see --resume.
  seed: int = 0  # Everything random in the run follows from it.
  num_envs: int = 64  # Environments stepped together as one batch.
  stagger: bool = True  # Truncate first episodes, so that not all end together.
  num_workers: int | None = None  # Processes stepping them; None: one a core.
  double_buffering: bool = False  # Half step while the others act, see build.
  on_env_error: str = "restart"  # What fails, workers as well; or "raise".
  env_timeout: float = 300.0  # Seconds for a batched step or a reset; 0: any.
  max_env_restarts: int = 10  # In ten minutes; one more ends the run.
  env_processes: bool = True  # False steps them in this process, for debugging.
  data_parallel: bool = False  # Machines share the work of gradient steps.
  device: str = "auto"  # That learns: "cpu", "gpu", or where it seems faster.
  eager: bool = False  # Run operation by operation, for debugging.
  report_every: int | None = None  # Steps; None: a hundredth of the budget.
  eval_every: int | None = None  # Steps; None: a twentieth of the budget.
  eval_episodes: int = 10  # Episodes of each evaluation, with the mean action.
  histograms: bool = True  # Write some at each evaluation, for TensorBoard.
  checkpoint_every: int | None = None  # Steps; None: a twentieth of the budget.
  video_every: int | None = None  # Steps between films of training; None: none.

  def __post_init__(self):
    _require_one_of(self, "device", "auto", "cpu", "gpu")
    _require_one_of(self, "on_env_error", "restart", "raise")
    _require(self, "env_timeout", "be at least 0", lambda x: 0 <= x < math.inf)
    _require(self, "max_env_restarts", "be at least 0", _at_least(0))
    if self.data_parallel and self.algorithm.type != "ppo":
      raise ConfigError(
          "`data_parallel` needs algorithm.type=ppo; others learn all on every "
          f"machine. Received: {self.algorithm.type}.")
    _require(self, "steps", "be at least 1", _at_least(1))
    _require(self, "seed", "be at least 0", _at_least(0))
    _require(self, "num_envs", "be at least 1", _at_least(1))
    _require(self, "eval_episodes", "be at least 1", _at_least(1))
    for name in ("num_workers", "report_every", "eval_every",
                 "checkpoint_every", "video_every"):
      _require(self, name, "be at least 1", _optional_at_least(1))
    update_every, length, minibatch_size = (
        self.algorithm.update_every, self.algorithm.segment_length,
        self.algorithm.minibatch_size)
    if update_every and update_every < self.num_envs:
      raise ConfigError(
          f"`algorithm.update_every` must be at least num_envs = "
          f"{self.num_envs}, an episode of each; or lower num_envs. Received: "
          f"{update_every}.")
    for name, used in (("recurrent", self.network.recurrent is not None),
                       ("frame_stack", self.network.frame_stack > 1)):
      if used and not length:
        raise ConfigError(
            f"With `network.{name}`, updates learn from segments: set "
            "algorithm.segment_length, and algorithm.update_every to null.")
    if (self.network.recurrent and length and minibatch_size
        and minibatch_size % length):
      raise ConfigError(
          f"With `network.recurrent`, minibatches are of whole segments, so "
          f"`algorithm.minibatch_size` must be a multiple of segment_length = "
          f"{length}. Received: {minibatch_size}.")
    if length and minibatch_size and self.num_envs * length % minibatch_size:
      raise ConfigError(
          f"`algorithm.minibatch_size` must divide num_envs * segment_length = "
          f"{self.num_envs} * {length} = {self.num_envs * length}. Received: "
          f"{minibatch_size}.")

  def every(self, name: str) -> int:
    """Steps between two reports, evaluations or checkpoints."""
    parts = {"report_every": 100, "eval_every": 20, "checkpoint_every": 20}
    return getattr(self, name) or max(1, self.steps // parts[name])

  @property
  def most_incidents(self) -> int:
    """Failures of environments and workers that the run survives."""
    return self.max_env_restarts if self.on_env_error == "restart" else 0

  @property
  def has_custom_classes(self) -> bool:
    """Whether the run is made of classes of the user's own, too."""
    return ":" in (self.env.backend + self.algorithm.type + self.network.hidden)

  def workers(self, cores: int) -> int:
    """Processes that step environments, on a machine with so many cores."""
    return min(self.num_workers or cores, self.num_envs)

  def override(self, changes: dict[str, Any]) -> Config:
    """Return a copy with dotted keys such as "env.id" set to new values."""
    data = config_parsing.to_data(self)
    for key, value in changes.items():
      *parents, leaf = key.split(".")
      place: Any = data
      kind: Any = Config
      for part in parents:
        if dataclasses.is_dataclass(kind):
          config_parsing.check_known(kind, part, key)
          kind = typing.get_type_hints(kind)[part]
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
          raise ConfigError(f"{key}: '{part}' has no fields of its own.")
      if dataclasses.is_dataclass(kind):
        config_parsing.check_known(kind, leaf, key)
      place[leaf] = value
    return from_data(data)


def flat(config: Config) -> dict[str, bool | int | float | str]:
  """Return all values by their dotted keys, as text what is no scalar."""
  values = {}
  def add(data, prefix):
    for key, value in data.items():
      if isinstance(value, dict) and value:
        add(value, f"{prefix}{key}.")
      else:
        scalar = isinstance(value, (bool, int, float, str))
        values[f"{prefix}{key}"] = value if scalar else json.dumps(value)
  add(config_parsing.to_data(config), "")
  return values


def from_data(data: Any) -> Config:
  """Build a config from plain data, checking every name, type and value."""
  return config_parsing.convert(Config, data, "")


def dump(config: Config) -> str:
  """Return the YAML text that `load` reads back."""
  return yaml.safe_dump(config_parsing.to_data(config), sort_keys=False)


def load(text: str, source: str) -> Config:
  """Parse the text of a `config.yaml`; `source` names it in errors."""
  try:
    config = from_data(config_parsing.parse(text))
    config_parsing.to_data(config)
    return config
  except ConfigError as error:
    raise ConfigError(f"{source}: {error}") from None


def parse_setting(text: str) -> tuple[str, Any]:
  """Split `key=value` from the command line; the value is read as YAML."""
  key, equals, value = text.partition("=")
  if not equals or not key:
    raise ConfigError(
        f"--set {text}: expected key=value, such as num_envs=32.")
  try:
    return key, config_parsing.parse(value)
  except ConfigError as error:
    raise ConfigError(f"--set {text}: the value can't be read: {error}"
                      ) from None


def setting(key: str, value: Any) -> str:
  """Return the `key=value` that `parse_setting` splits into these again."""
  # As YAML has it: of JSON, 1e-05 would be a text.
  text = yaml.safe_dump(value, default_flow_style=True, width=1e9)
  return f"{key}={text.partition(chr(10))[0]}"


def _require(config: Any, name: str, rule: str, holds: typing.Callable):
  value = getattr(config, name)
  if not holds(value):
    raise ConfigError(f"`{name}` must {rule}. Received: {value!r}.")


def _require_one_of(config: Any, name: str, *choices: str):
  _require(config, name, f"be one of {', '.join(choices)}",
           lambda x: x in choices)


def _require_named(config: Any, setting: str, *choices: str):
  """Raise a ConfigError unless it is one of ours, or the name of a class."""
  value = getattr(config, setting.rpartition(".")[2])
  if value not in choices and not all(value.partition(":")):
    raise ConfigError(
        f"`{setting}` must be one of {', '.join(choices)}, or name a class of "
        f"your own as `module:Class`. Received: {value!r}."
        f"{config_parsing.did_you_mean(value, choices)}")


def _require_no_kwargs(config: Any, setting: str, builtin: bool):
  kwargs = getattr(config, setting.rpartition(".")[2])
  if builtin and kwargs:
    raise ConfigError(
        f"`{setting}` are for a class of your own. Received: {kwargs!r}.")


def _at_least(low: int):
  return lambda value: value >= low


def _optional_at_least(low: int):
  return lambda value: value is None or value >= low
