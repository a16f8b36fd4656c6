"""Configuration of a run: frozen dataclasses that are built from plain data.

`config.yaml` in a run folder contains this data completely and without YAML
tags. `load` rejects unknown settings instead of guessing.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import sys
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import yaml

from agents import config_parsing

ConfigError = config_parsing.ConfigError

# Types with a rule: a text for error messages, and a function that checks a
# value.
_T = TypeVar("_T")
_AtLeast0 = Annotated[_T, "be at least 0", lambda x: 0 <= x < math.inf]
_AtLeast1 = Annotated[_T, "be at least 1", lambda x: x is None or 1 <= x < math.inf]
_Positive = Annotated[float, "be positive", lambda x: 0 < x < math.inf]
_PositiveOrNull = Annotated[
  float | None, "be positive or null", lambda x: x is None or 0 < x < math.inf
]
_Layers = Annotated[
  tuple[int, ...], "contain positive unit counts", lambda layers: all(units > 0 for units in layers)
]
_PartsOrNull = Annotated[
  tuple[str, ...] | None, "name at least one part", lambda names: names is None or len(names) > 0
]
_Origins = Annotated[
  tuple[str, ...],
  "each be of the form RUN@STEP",
  lambda origins: all(re.fullmatch(r".+@\d+", origin) for origin in origins),
]
_Wrappers = Annotated[
  tuple[dict[str, dict[str, Any]], ...],
  "each consist of one name and its arguments, such as [{GrayscaleObservation: {keep_dim: true}}]",
  lambda wrappers: all(len(each) == 1 for each in wrappers),
]


@dataclasses.dataclass(frozen=True)
class Env:
  """Settings from which any process can build the same environment."""

  # Gymnasium id, `module:Id-v0`, `module:Class` or `module:function`.
  id: str = ""
  # Keyword arguments of the environment's constructor. An argument can differ
  # between environments: {each: [...]}, {choice: [...]} or {uniform: [a, b]}.
  kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Agent steps until truncation; null keeps the environment's time limit.
  max_length: _AtLeast1[int | None] = None
  # Simulator steps per agent step. The rewards of these steps are summed.
  action_repeat: _AtLeast1[int] = 1
  # Maximum number of random actions between a reset and the agent's first
  # action.
  random_start: _AtLeast0[int] = 0
  # Replaces each observation by its difference from the previous observation.
  frame_delta: bool = False
  # Gymnasium's wrappers or `module:Class`, as {NAME: {ARGUMENT: ...}}. The
  # first wrapper is the innermost.
  wrappers: _Wrappers = ()
  # Library that steps the training environments: "gymnasium", "vector" (a
  # `gymnasium.vector.VectorEnv`), "envpool" (C++ threads) or a custom
  # `module:Class`.
  backend: str = "gymnasium"

  def __post_init__(self) -> None:
    _check_values(self)
    _check_class("env.backend", self.backend, ("gymnasium", "vector", "envpool"))

  @property
  def renders(self) -> bool:
    """Whether observations are rendered by the wrapper `Pixels`."""
    names = {"Pixels", "agents.environments.making.pixels:Pixels"}
    return any(names & wrapper.keys() for wrapper in self.wrappers)

  @property
  def deterministic(self) -> bool:
    """Whether seed and actions reproduce a training episode exactly."""
    return self.backend == "gymnasium"


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """Proximal policy optimization (Schulman et al., 2017).

  docs/algorithm.md gives the source and the reason of each default. A custom
  algorithm reads only the settings that it needs.
  """

  # "ppo", or a custom `module:Class`; see docs/extending.md.
  type: str = "ppo"
  # Keyword arguments of the custom class; empty with "ppo".
  kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)

  # Exactly one of `segment_length` and `update_every` is null.
  # Steps per environment in one update, for updates from fixed-length segments.
  segment_length: _AtLeast1[int | None] = 32
  # Episodes in one update, for updates from whole episodes.
  update_every: _AtLeast1[int | None] = None
  # Passes over the batch in one update.
  update_epochs: _AtLeast1[int] = 10
  # Environment steps per gradient step; null uses the whole batch.
  minibatch_size: _AtLeast1[int | None] = 64
  # Step size of Adam at the start of the run.
  learning_rate: _Positive = 3e-4
  # "constant", "linear" (decays to 0 over the budget), "kl_adaptive" (keeps the
  # KL divergence of an update near `kl_target`), or "kl_adaptive_linear" (the
  # same with a target that decays to 0 over the budget).
  lr_schedule: Literal["constant", "linear", "kl_adaptive", "kl_adaptive_linear"] = "linear"
  # Added to the denominator of Adam's update.
  adam_epsilon: _Positive = 1e-5
  # Limit of the global gradient norm; null disables gradient clipping.
  max_grad_norm: _PositiveOrNull = 0.5

  # Discount factor of rewards per agent step, in (0, 1].
  discount: Annotated[float, "lie in (0, 1]", lambda x: 0 < x <= 1] = 0.99
  # Lambda of generalized advantage estimation, in [0, 1]. 0 gives one-step TD
  # errors, 1 gives Monte Carlo returns.
  gae_lambda: Annotated[float, "lie in [0, 1]", lambda x: 0 <= x <= 1] = 0.95
  # Recomputes values and advantages before each epoch of an update.
  recompute_advantages: bool = True
  # Normalizes advantages to mean 0 and standard deviation 1 per minibatch.
  normalize_advantage: bool = True
  # Bootstraps from the value at time limits. False treats a time limit as a
  # termination, after which no reward exists.
  bootstrap_truncation: bool = True

  # PPO clip range epsilon (Schulman et al. 2017, equation 7); null disables
  # clipping.
  clip_ratio: _PositiveOrNull = 0.2
  # Target KL divergence of one update, in nats, for both "kl_adaptive"
  # schedules, the KL penalty and the KL cutoff.
  kl_target: _Positive = 0.01
  # Initial coefficient of the KL penalty; 0 disables the penalty.
  kl_penalty: _AtLeast0[float] = 0.0
  # Factor by which the KL penalty's coefficient changes after an update with a
  # KL divergence outside 0.7 to 1.3 times the target.
  kl_penalty_factor: _AtLeast1[float] = 1.5
  # The KL cutoff applies to sequences with a mean KL divergence above this
  # multiple of the target.
  kl_cutoff_factor: _Positive = 2.0
  # Coefficient of the squared excess over this limit; 0 disables the cutoff.
  kl_cutoff_coef: _AtLeast0[float] = 0.0
  # Coefficient of the squared value error in the loss.
  value_coef: _AtLeast0[float] = 0.5
  # Clip range of value changes in one update, in units of scaled rewards; null
  # disables clipping.
  value_clip: _PositiveOrNull = None
  # Coefficient of the entropy bonus.
  entropy_coef: _AtLeast0[float] = 0.0

  # Noise of sampled actions over time: "white" (independent at each step) or
  # "pink" (persists over up to 128 steps, to explore sparse rewards). "pink"
  # applies to Gaussian actions.
  action_noise: Literal["white", "pink"] = "white"

  # Learns from mirror images of all steps in every second pass, for robots with
  # a left and a right side; see docs/robots.md.
  symmetry: bool = False

  # Normalizes observations by their running mean and standard deviation.
  normalize_observ: bool = True
  # Changes these moments: with {horizon: N}, the weight of an observation falls
  # to 1/e after N further steps; with {freeze: N}, they stay constant after N
  # steps; {mean: ..., std: ...} are constants, each a number or a list.
  observ_moments: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Normalized observations are clipped to [-observ_clip, observ_clip].
  observ_clip: _Positive = 10.0
  # Rewards are divided by the running standard deviation of the discounted
  # "return" or of the "reward"; "none" keeps them unchanged.
  reward_scale: Literal["return", "reward", "none"] = "return"
  # Scaled rewards are clipped to [-reward_clip, reward_clip]; null disables
  # clipping.
  reward_clip: _PositiveOrNull = None

  def __post_init__(self) -> None:
    _check_values(self)
    _check_class("algorithm.type", self.type, ("ppo",))
    _require(
      self.type != "ppo" or not self.kwargs,
      "`algorithm.kwargs` needs "
      "a class of your own in `algorithm.type`. Received: "
      f"{self.kwargs!r}.",
    )
    _require(
      self.normalize_observ or not self.observ_moments,
      "`algorithm.observ_moments` needs algorithm.normalize_observ=true. "
      f"Received: {self.observ_moments!r}.",
    )
    _require(
      (self.segment_length is None) != (self.update_every is None),
      "Exactly one of `segment_length` and `update_every` must be null, "
      "as an update learns from segments or from whole episodes. "
      f"Received: {self.segment_length} and {self.update_every}.",
    )


@dataclasses.dataclass(frozen=True)
class Network:
  """Networks of policy and value, and the distribution over actions."""

  # Hidden layers: "dense", or a custom `module:Class`; see docs/extending.md.
  hidden: str = "dense"
  # Keyword arguments of the custom class; empty with "dense".
  hidden_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Units of each dense hidden layer.
  policy_layers: _Layers = (64, 64)
  value_layers: _Layers = (64, 64)
  # Activation of the dense hidden layers: "tanh", "relu" or "elu".
  activation: Literal["tanh", "relu", "elu"] = "tanh"
  # Convolutions that encode images: "nature" or "impala".
  conv: Literal["nature", "impala"] = "nature"
  # Distribution over continuous actions: "gaussian" (the environment receives
  # clipped samples), "squashed_gaussian" (tanh) or "beta". The last two need
  # bounded actions.
  action_distribution: Literal["gaussian", "squashed_gaussian", "beta"] = "gaussian"
  # Activation of the mean of "gaussian": "linear" or "tanh".
  mean_activation: Literal["linear", "tanh"] = "linear"
  # Makes the standard deviation of both Gaussian distributions a network
  # output. A "beta" distribution always depends on the state.
  state_dependent_std: bool = False
  # Initializer of the weights: "orthogonal" or "glorot".
  initializer: Literal["orthogonal", "glorot"] = "orthogonal"
  # Gain of the last policy layer's weights. With "glorot", the value scales the
  # variance of these weights.
  init_output_factor: _Positive = 0.01
  # Initial standard deviation of continuous actions in units of half their
  # range. "squashed_gaussian" applies this value before tanh. "beta" limits the
  # value to 0.48.
  init_std: _Positive = 0.6
  # Parts of Dict observations that the policy and the value network receive,
  # such as [state] or [robot/joints]; null means all parts.
  policy_observ: _PartsOrNull = None
  value_observ: _PartsOrNull = None
  # Part of Dict observations with a mask of allowed actions, such as
  # "action_mask": one 0 or 1 per option of Discrete or MultiDiscrete actions.
  action_mask: str | None = None
  # Number of recent observations that the networks receive at each step.
  frame_stack: _AtLeast1[int] = 1
  # Recurrent cell in front of the hidden layers: "gru", "lstm" or null.
  recurrent: Literal["gru", "lstm", None] = None
  # Units of the recurrent cell.
  recurrent_units: _AtLeast1[int] = 64
  # Lets policy and value share convolutions and recurrent cell, if they receive
  # the same parts of the observations.
  share_core: bool = True

  def __post_init__(self) -> None:
    _check_values(self)
    _check_class("network.hidden", self.hidden, ("dense",))
    _require(
      self.hidden != "dense" or not self.hidden_kwargs,
      "`network.hidden_kwargs` needs a class of your own in "
      f"`network.hidden`. Received: {self.hidden_kwargs!r}.",
    )


@dataclasses.dataclass(frozen=True)
class Config:
  """One experiment.

  Budgets and intervals count agent steps of all environments together.
  """

  env: Env = dataclasses.field(default_factory=Env)
  algorithm: Algorithm = dataclasses.field(default_factory=Algorithm)
  network: Network = dataclasses.field(default_factory=Network)
  # Budget in steps. Learning rate schedules end when the budget is used up.
  steps: _AtLeast1[int] = 1_000_000
  # Earlier budgets, in steps, of a run that was extended.
  extended_from: tuple[int, ...] = ()
  # Earlier runs of a fork, oldest first, each as RUN@STEP with the step of the
  # checkpoint with which the next run started. The option --from sets it.
  forked_from: _Origins = ()
  # Seed of all random numbers in the run.
  seed: _AtLeast0[int] = 0
  # Number of environments that step together as one batch.
  num_envs: _AtLeast1[int] = 64
  # With segments, truncates the first episodes at different lengths, so that
  # the episodes of different environments do not end at the same step.
  stagger: bool = True
  # Number of processes that step environments; null starts one per CPU core.
  num_workers: _AtLeast1[int | None] = None
  # Reaction to a failed environment or worker process: "restart" replaces the
  # environment or process, "raise" ends the run.
  on_env_error: Literal["restart", "raise"] = "restart"
  # Seconds until a reset or a batched step counts as failed; 0 disables the
  # limit.
  env_timeout: _AtLeast0[float] = 300.0
  # Replacements within ten minutes after which a further failure ends the run.
  max_env_restarts: _AtLeast0[int] = 10
  # False steps the environments in the training process, for debugging.
  env_processes: bool = True
  # Splits each gradient step of PPO among the machines of a cluster. With
  # False, every machine computes all gradient steps completely.
  data_parallel: bool = False
  # Device of the updates: "cpu", "gpu" or "auto". "auto" selects the CPU,
  # because no task was measured on a GPU.
  device: Literal["auto", "cpu", "gpu"] = "auto"
  # Executes TensorFlow operations one by one, for debugging.
  eager: bool = False
  # Steps between reports; null divides the budget into 100 intervals.
  report_every: _AtLeast1[int | None] = None
  # Steps between evaluations; null divides the budget into 20 intervals.
  eval_every: _AtLeast1[int | None] = None
  # Episodes per evaluation. The policy takes the mean action, or the most
  # probable one of discrete actions.
  eval_episodes: _AtLeast1[int] = 10
  # Writes TensorBoard histograms with each evaluation.
  histograms: bool = True
  # Steps between checkpoints; null divides the budget into 20 intervals.
  checkpoint_every: _AtLeast1[int | None] = None
  # Steps between videos of training episodes; null records no videos.
  video_every: _AtLeast1[int | None] = None
  # Writes the graph of one epoch to TensorBoard.
  trace_graph: bool = False
  # Class `module:Class` that receives all metrics and films, such as
  # "agents.loggers.wandb:WandbLogger"; see docs/extending.md.
  logger: str | None = None

  def __post_init__(self) -> None:
    _check_values(self)
    _require(
      self.logger is None or all(self.logger.partition(":")),
      "`logger` must be null, or name a class as `module:Class`, such as "
      f"agents.loggers.wandb:WandbLogger. Received: {self.logger!r}.",
    )
    _require(
      not self.data_parallel or self.algorithm.type == "ppo",
      "`data_parallel` needs algorithm.type=ppo; all machines compute "
      "the complete updates of other algorithms. Received: "
      f"{self.algorithm.type}.",
    )
    _require(
      not self.algorithm.symmetry
      or (
        self.algorithm.type == "ppo"
        and not (self.data_parallel or self.network.recurrent or self.network.action_mask)
        and self.network.frame_stack == 1
        and self.network.action_distribution == "gaussian"
      ),
      "`algorithm.symmetry` needs algorithm.type=ppo with Gaussian actions, and no data_parallel, "
      "recurrent cell, action mask or frame stack. Otherwise, set algorithm.symmetry=false.",
    )
    self._check_batch()

  def _check_batch(self) -> None:
    """Raises ConfigError if settings of the update contradict each other."""
    algorithm, network, size = self.algorithm, self.network, self.num_envs
    length, minibatch_size = algorithm.segment_length, algorithm.minibatch_size
    _require(
      not algorithm.update_every or algorithm.update_every >= size,
      f"`algorithm.update_every` must be at least num_envs = {size}, "
      "one episode per environment. Raise `algorithm.update_every` or "
      f"lower `num_envs`. Received: {algorithm.update_every}.",
    )
    _require(
      length or network.frame_stack == 1,
      "With `network.frame_stack`, updates learn from segments: set "
      "algorithm.segment_length to a number of steps, and "
      "algorithm.update_every to null.",
    )
    _require(
      length or not (network.recurrent and minibatch_size),
      "With `network.recurrent`, updates from whole episodes take gradient "
      "steps on all of them: set algorithm.minibatch_size to null. Received: "
      f"{minibatch_size}.",
    )
    if length and minibatch_size:
      _require(
        not network.recurrent or minibatch_size % length == 0,
        "With `network.recurrent`, minibatches consist of whole "
        "segments, so `algorithm.minibatch_size` must be a multiple of "
        f"segment_length = {length}. Received: {minibatch_size}.",
      )
      _require(
        size * length % minibatch_size == 0,
        "`algorithm.minibatch_size` must divide num_envs * "
        f"segment_length = {size} * {length} = {size * length}. "
        f"Received: {minibatch_size}.",
      )

  def every(self, name: str) -> int:
    """Returns the steps between two reports, evaluations or checkpoints.

    Args:
      name: Setting "report_every", "eval_every" or "checkpoint_every".

    Returns:
      Value of the setting, or a default fraction of the budget, in steps.
    """
    intervals = {"report_every": 100, "eval_every": 20, "checkpoint_every": 20}
    return getattr(self, name) or max(1, self.steps // intervals[name])

  @property
  def max_failures(self) -> int:
    """Failures of environments and workers that a run tolerates."""
    return self.max_env_restarts if self.on_env_error == "restart" else 0

  @property
  def has_custom_classes(self) -> bool:
    """Whether algorithm or hidden layers are custom classes."""
    return ":" in self.algorithm.type + self.network.hidden

  def workers(self, cores: int) -> int:
    """Returns the number of processes that step environments.

    Args:
      cores: Number of CPU cores of the machine.
    """
    return min(self.num_workers or cores, self.num_envs)

  def override(self, changes: Mapping[str, Any]) -> Config:
    """Returns a copy with some settings changed.

    Args:
      changes: New values by dotted keys, such as "env.id".

    Raises:
      ConfigError: If a key is unknown or the new values are invalid.
    """
    data = config_parsing.to_data(self)
    for key, value in changes.items():
      *parents, leaf = key.split(".")
      section = data
      for name in parents:
        section = section.setdefault(name, {})
        _require(isinstance(section, dict), f"{key}: the setting '{name}' has no fields.")
      section[leaf] = value
    return from_data(data)


def without_removed(settings: Mapping[str, Any]) -> dict[str, Any]:
  """Returns settings without `double_buffering`, which no longer exists.

  Prints a note if `double_buffering` was enabled.

  Args:
    settings: Values by dotted keys, possibly from an earlier version.
  """
  if settings.get("double_buffering", False) is not False:
    _print_note(
      "double_buffering was removed. All environments now step "
      "together, which does not change results."
    )
  return {key: value for key, value in settings.items() if key != "double_buffering"}


# A command may load the same config several times; the cache prevents repeated
# notes.
@functools.cache
def _print_note(text: str) -> None:
  print(f"Note: {text}", file=sys.stderr)


def flat(config: Config) -> dict[str, bool | int | float | str]:
  """Returns all settings of a config by dotted key.

  Args:
    config: Config.

  Returns:
    Scalars. Lists, empty dicts and None are JSON texts.
  """
  values = {}

  def add(data: dict[str, Any], prefix: str) -> None:
    for key, value in data.items():
      if isinstance(value, dict) and value:
        add(value, f"{prefix}{key}.")
      else:
        scalar = isinstance(value, (bool, int, float, str))
        values[f"{prefix}{key}"] = value if scalar else json.dumps(value)

  add(config_parsing.to_data(config), "")
  return values


def from_data(data: Any) -> Config:
  """Builds a config from plain data.

  Args:
    data: Nested dicts of settings. Missing settings get their default values.

  Raises:
    ConfigError: If a name, a type or a value is wrong.
  """
  if isinstance(data, dict):
    data = without_removed(data)
  try:
    return config_parsing.convert(Config, data, "")
  except config_parsing.UnknownField as error:
    raise ConfigError(error.text(Config)) from None


def dump(config: Config) -> str:
  """Returns the YAML text of a config, which `load` can read.

  Args:
    config: Config.

  Raises:
    ConfigError: If the config contains anything but plain data.
  """
  return yaml.safe_dump(config_parsing.to_data(config), sort_keys=False)


def load(text: str, source: str) -> Config:
  """Builds a config from the text of a `config.yaml`.

  Args:
    text: YAML.
    source: Name of the file, for error messages.

  Raises:
    ConfigError: If the text is not a valid config.
  """
  try:
    return from_data(config_parsing.parse(text))
  except ConfigError as error:
    raise ConfigError(f"{source}: {error}") from None


def parse_setting(text: str) -> tuple[str, Any]:
  """Splits `key=value` from the command line.

  Args:
    text: Dotted key, equals sign, and a value in YAML.

  Returns:
    Key and value.

  Raises:
    ConfigError: If the text is not of this form.
  """
  key, equals, value = text.partition("=")
  _require(key and equals, f"--set {text}: expected key=value, such as num_envs=32.")
  try:
    return key, config_parsing.parse(value)
  except ConfigError as error:
    raise ConfigError(f"--set {text}: the value can't be read: {error}") from None


def setting(key: str, value: Any) -> str:
  """Returns a setting as `key=value`, the format of `parse_setting`.

  Args:
    key: Dotted key.
    value: Plain data.
  """
  # Writes YAML instead of JSON: PyYAML would read the number 1e-05, as JSON
  # writes it, as a text.
  text = yaml.safe_dump(value, default_flow_style=True, width=1e9)
  return f"{key}={text.partition(chr(10))[0]}"


@functools.cache
def _rules(section: type) -> list[tuple[str, str, Any]]:
  """Returns field name, error text and check function of each rule."""
  rules = []
  for name, hint in typing.get_type_hints(section, include_extras=True).items():
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
      rules.append((name, *args[1:]))
    elif origin is Literal:
      choices = ", ".join(filter(None, args))
      rules.append((name, f"be one of {choices}", args.__contains__))
  return rules


def _check_values(section: Any) -> None:
  """Raises ConfigError if a value violates the rule of its type."""
  prefix = "" if isinstance(section, Config) else (f"{type(section).__name__.lower()}.")
  for name, text, is_valid in _rules(section.__class__):
    value = getattr(section, name)
    _require(is_valid(value), f"`{prefix}{name}` must {text}. Received: {value!r}.")


def _check_class(setting: str, value: str, choices: tuple[str, ...]) -> None:
  """Raises ConfigError if a value is neither a choice nor `module:Class`."""
  _require(
    value in choices or all(value.partition(":")),
    f"`{setting}` must be one of {', '.join(choices)}, or name a class of "
    f"your own as `module:Class`. Received: {value!r}."
    f"{config_parsing.did_you_mean(value, choices)}",
  )


def _require(condition: Any, text: str) -> None:
  """Raises ConfigError with the given text if the condition is false."""
  if not condition:
    raise ConfigError(text)
