"""One update in NumPy float64, with hand-written gradients and optimizer.

The reference is transcribed from the papers (Schulman 2015, Schulman 2017,
Heess 2017, Kingma 2015), for comparison with TensorFlow and Keras. The
reference uses lists of steps, without padding and chunks.
"""

from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents import types


class Gaussian:
  """Parameters are means and log standard deviations."""

  @staticmethod
  def parameters(state, output):
    return output, np.broadcast_to(state["policy/log_std"], output.shape)

  @staticmethod
  def log_prob(parameters, action):
    mean, log_std = parameters
    deviation = (action - mean) / np.exp(log_std)
    return (-0.5 * deviation**2 - log_std - 0.5 * np.log(2 * np.pi)).sum(-1)

  @staticmethod
  def entropy(parameters):
    return (parameters[1] + 0.5 * np.log(2 * np.pi * np.e)).sum(-1)

  @staticmethod
  def kl(parameters, other):
    (mean, log_std), (other_mean, other_log_std) = parameters, other
    return (
      other_log_std
      - log_std
      - 0.5
      + (np.exp(2 * log_std) + (mean - other_mean) ** 2) / (2 * np.exp(2 * other_log_std))
    ).sum(-1)

  @staticmethod
  def std(parameters):
    return np.exp(parameters[1]).mean()

  @staticmethod
  def saturation(action):
    return (np.abs(action) > 1).mean()

  @staticmethod
  def take(parameters, rows):
    return parameters[0][rows], parameters[1][rows]

  @staticmethod
  def gradients(parameters, old, action, grad_log_prob, grad_entropy, grad_kl):
    """Returns the gradients of the loss.

    Args:
      parameters: Means and log standard deviations, each [M, A].
      old: Parameters of the policy before the update, each [M, A].
      action: Array of shape [M, A].
      grad_log_prob: Gradient of the loss by log probability, [M].
      grad_entropy: Gradient of the loss by entropy, [M].
      grad_kl: Gradient of the loss by KL divergence, [M].

    Returns:
      Gradient with respect to the network's outputs, [M, A], and gradients with
      respect to free variables, by name.
    """
    (mean, log_std), (old_mean, old_log_std) = parameters, old
    variance = np.exp(2 * log_std)
    grad_log_prob, grad_entropy, grad_kl = (
      x[:, None] for x in (grad_log_prob, grad_entropy, grad_kl)
    )
    grad_mean = grad_log_prob * (action - mean) / variance + grad_kl * (mean - old_mean) / variance
    spread = np.exp(2 * old_log_std) + (old_mean - mean) ** 2
    grad_log_std = (
      grad_log_prob * ((action - mean) ** 2 / variance - 1)
      + grad_entropy
      + grad_kl * (1 - spread / variance)
    )
    return grad_mean, {"policy/log_std": grad_log_std.sum(0)}


class Categorical:
  """Parameters are logits."""

  @staticmethod
  def parameters(state, output):
    return output

  @staticmethod
  def log_probs(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))

  @classmethod
  def log_prob(cls, logits, action):
    return cls.log_probs(logits)[np.arange(len(logits)), action]

  @classmethod
  def entropy(cls, logits):
    log_p = cls.log_probs(logits)
    return -(np.exp(log_p) * log_p).sum(-1)

  @classmethod
  def kl(cls, logits, other):
    log_p, log_q = cls.log_probs(logits), cls.log_probs(other)
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)

  @classmethod
  def std(cls, logits):
    p = np.exp(cls.log_probs(logits))
    return np.sqrt(p * (1 - p)).mean()

  @staticmethod
  def saturation(action):
    return 0.0

  @staticmethod
  def take(logits, rows):
    return logits[rows]

  @classmethod
  def gradients(cls, logits, old, action, grad_log_prob, grad_entropy, grad_kl):
    log_p = cls.log_probs(logits)
    p, old_p = np.exp(log_p), np.exp(cls.log_probs(old))
    one_hot = np.eye(logits.shape[1])[action]
    entropy = -(p * log_p).sum(-1, keepdims=True)
    return (
      grad_log_prob[:, None] * (one_hot - p)
      - grad_entropy[:, None] * p * (log_p + entropy)
      + grad_kl[:, None] * (p - old_p)
    ), {}


class Sequence(NamedTuple):
  """An episode, or the part of an episode that was collected; L steps."""

  observ: np.ndarray  # [L, ...]
  action: np.ndarray  # [L, ...]
  reward: np.ndarray  # [L]
  terminated: bool  # The last step is terminal.
  truncated: bool  # The last step reaches the time limit.
  final_observ: np.ndarray  # [...], true successor of the last step.


def sequences(transitions: types.Transition) -> list[Sequence]:
  """Splits arrays of shape [T, B, ...]; orders by environment, then by time."""
  result, rows = [], []
  steps, batch = transitions.valid.shape
  for env in range(batch):
    for step in range(steps):
      if not transitions.valid[step, env]:
        continue
      rows.append(step)
      terminated = transitions.terminated[step, env]
      truncated = transitions.truncated[step, env]
      continues = step + 1 < steps and transitions.valid[step + 1, env]
      if terminated or truncated or not continues:
        result.append(
          Sequence(
            transitions.observ[rows, env],
            transitions.action[rows, env],
            transitions.reward[rows, env],
            terminated,
            truncated,
            transitions.next_observ[step, env],
          )
        )
        rows = []
  return result


class Learned(NamedTuple):
  """Result of an update."""

  state: dict[str, np.ndarray]  # Variables, by the names in `BatchPPO`.
  metrics: dict[str, float]
  effects: dict[str, float]  # Shares of values that bounds changed, by bound.


def learn(
  state: dict[str, np.ndarray],
  collected: list[Sequence],
  orders: list[list[np.ndarray]],
  progress: float,
  config: config_lib.Algorithm,
  network: config_lib.Network,
  distribution,
) -> Learned:
  """Computes one update.

  Args:
    state: All variables by name.
    collected: Sequences of steps. Row indices count the steps in this order.
    orders: Row indices of each gradient step, for each epoch.
    progress: Completed share of the step budget, in [0, 1].
    config: Hyper-parameters.
    network: Layers and activations.
    distribution: `Gaussian` or `Categorical`.
  """
  learner = _Learner(state, collected, config, network, distribution)
  learner.begin(progress)
  for order in orders:
    if config.recompute_advantages:
      learner.estimate()
    for rows in order:
      learner.gradient_step(rows)
  learner.adapt(progress)
  learner.explain_variance()
  learner.update_moments()
  return Learned(
    learner.state,
    learner.metrics,
    {name: np.mean(shares) for name, shares in learner.effects.items()},
  )


class _Learner:
  """Variables and intermediate results of an update."""

  def __init__(self, state, collected, config, network, distribution):
    self.state = {name: np.array(value, np.float64) for name, value in state.items()}
    self.effects = {}  # Lists of the shares in `Learned.effects`, by name.
    self._collected = collected
    self._config = config
    self._network = network
    self._distribution = distribution
    reward, self._action, observ = (
      np.concatenate([getattr(sequence, name) for sequence in collected])
      for name in ("reward", "action", "observ")
    )
    self._reward, self._observ = (reward.astype(np.float64), observ.astype(np.float64))
    self._sequence = np.repeat(
      np.arange(len(collected)), [len(sequence.reward) for sequence in collected]
    )
    self._final_inputs = self._features(np.stack([sequence.final_observ for sequence in collected]))
    self._inputs = self._features(self._observ)
    self._losses = []  # For each gradient step, losses by name.

  def begin(self, progress):
    """Computes quantities that stay constant during the update."""
    config, state = self._config, self.state
    self._before = self._policy()
    self._old_log_prob = self._distribution.log_prob(self._before, self._action)
    rate = state["step_size/rate:0"]
    if config.lr_schedule == "linear":
      rate = rate * (1 - progress)
    state["adam/learning_rate"] = self._rate = rate
    if config.reward_scale == "reward":
      _add(state, "reward", self._reward)
    self.estimate()
    self._old_value = self._value
    self.metrics = {
      "value_mean": self._old_value.mean(),
      "learning_rate": rate,
      "action_std": self._distribution.std(self._before),
      "action_saturation": self._distribution.saturation(self._action),
    }

  def estimate(self):
    """Estimates values and advantages with the current weights."""
    config = self._config
    self._value, final_value = (
      forward(self.state, "value", self._network, x)[-1][:, 0]
      for x in (self._inputs, self._final_inputs)
    )
    scaled = self._reward / self._reward_scale()
    if config.reward_clip is not None:
      self.effects["reward_clip"] = [(np.abs(scaled) > config.reward_clip).mean()]
      scaled = np.clip(scaled, -config.reward_clip, config.reward_clip)
    self._advantage = np.concatenate(
      [
        _advantage(
          sequence,
          scaled[self._sequence == index],
          self._value[self._sequence == index],
          final_value[index],
          config,
        )
        for index, sequence in enumerate(self._collected)
      ]
    )

  def gradient_step(self, rows):
    """Takes one step of Adam on the given rows."""
    config = self._config
    gradients, losses, effects = _loss_gradients(
      self.state,
      _Batch(
        self._inputs[rows],
        self._action[rows],
        self._distribution.take(self._before, rows),
        self._old_log_prob[rows],
        self._old_value[rows],
        self._advantage[rows],
        (self._value + self._advantage)[rows],
        self._sequence[rows],
      ),
      config,
      self._network,
      self._distribution,
    )
    unclipped, norm = gradients, np.sqrt(sum((x**2).sum() for x in gradients.values()))
    if config.max_grad_norm is not None:
      effects["max_grad_norm"] = norm > config.max_grad_norm
      shrink = min(1.0, config.max_grad_norm / norm)
      gradients = {name: x * shrink for name, x in gradients.items()}
    _adam(self.state, gradients, self._rate, config.adam_epsilon)
    norms = {
      f"{network}_grad_norm": np.sqrt(
        sum((x**2).sum() for name, x in unclipped.items() if name.startswith(f"{network}/"))
      )
      for network in ("policy", "value")
    }
    self._losses.append({**losses, "grad_norm": norm, **norms})
    for name, share in effects.items():
      self.effects.setdefault(name, []).append(share)

  def adapt(self, progress):
    """Adapts learning rate and penalty to the KL divergence."""
    config, state, losses = self._config, self.state, self._losses
    self.metrics.update({name: np.mean([each[name] for each in losses]) for name in losses[0]})
    self.metrics["gradient_steps"] = len(losses)
    self.metrics["finite_steps"] = sum(np.isfinite(each["grad_norm"]) for each in losses)
    kl = self._distribution.kl(self._before, self._policy()).mean()
    self.metrics["kl"] = kl
    if config.lr_schedule in ("kl_adaptive", "kl_adaptive_linear"):
      falls = config.lr_schedule == "kl_adaptive_linear"
      target = config.kl_target * (1 - progress if falls else 1)
      if kl > 2 * target:
        state["step_size/rate:0"] = self._rate / 1.5
      elif kl < target / 2:
        state["step_size/rate:0"] = self._rate * 1.5
    if config.kl_penalty:
      self.metrics["kl_penalty"] = weight = state["penalty/weight:0"]
      if kl > 1.3 * config.kl_target:
        weight = weight * config.kl_penalty_factor
      elif kl < 0.7 * config.kl_target:
        weight = weight / config.kl_penalty_factor
      state["penalty/weight:0"] = np.clip(weight, 1e-6, 1e6)

  def explain_variance(self):
    """Scores the old values by estimates that don't contain them."""
    value, advantage = self._value, self._advantage
    if not self._config.recompute_advantages:
      self.estimate()
    returns = self._value + self._advantage
    error = (returns - self._old_value).var()
    self.metrics["explained_variance"] = 1 - error / (returns.var() + 1e-8)
    self._value, self._advantage = value, advantage

  def update_moments(self):
    """Updates the moments of returns and observations."""
    config, state, observ = self._config, self.state, self._observ
    if config.reward_scale == "return":
      _add(state, "return", (self._value + self._advantage) * self._reward_scale())
    self.metrics["reward_scale"] = self._reward_scale()
    if config.normalize_observ:
      self.metrics["observ_clipped"] = (np.abs(self._inputs) == config.observ_clip).mean()
      _add(state, "observ", observ.reshape(len(observ), -1))
      self.metrics["observ_mean"] = state["observ/mean:0"].mean()
      self.metrics["observ_std"] = _std(state, "observ").mean()

  def _features(self, observ):
    bound = self._config.observ_clip
    observ = observ.reshape(len(observ), -1).astype(np.float64)
    if not self._config.normalize_observ:
      return observ
    scaled = (observ - self.state["observ/mean:0"]) / (_std(self.state, "observ") + 1e-8)
    self.effects["observ_clip"] = [(np.abs(scaled) > bound).mean()]
    return np.clip(scaled, -bound, bound)

  def _policy(self):
    output = forward(self.state, "policy", self._network, self._inputs)[-1]
    return self._distribution.parameters(self.state, output)

  def _reward_scale(self):
    scale = self._config.reward_scale
    if scale == "none":
      return 1.0
    return max(_std(self.state, scale), {"return": 1e-8, "reward": 1e-2}[scale])


_ACTIVATIONS = {
  "linear": lambda x: x,
  "tanh": np.tanh,
  "relu": lambda x: np.maximum(x, 0),
  "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
}
# Derivatives of activations as functions of their outputs.
_DERIVATIVES = {
  "linear": np.ones_like,
  "tanh": lambda y: 1 - y**2,
  "relu": lambda y: np.where(y > 0, 1.0, 0.0),
  "elu": lambda y: np.where(y > 0, 1.0, y + 1),
}


def _layers(name, network, state):
  """Returns names and activations of a network's layers."""
  num_hidden = len(getattr(network, f"{name}_layers"))
  # `mean_activation` applies to means, which only Gaussian policies output.
  gaussian = name == "policy" and "policy/log_std" in state
  output = network.mean_activation if gaussian else "linear"
  return [(f"{name}/hidden_{index}", network.activation) for index in range(num_hidden)] + [
    (f"{name}/output", output)
  ]


def forward(state, name, network, inputs):
  """Returns the inputs of a network, followed by the outputs of each layer."""
  results = [inputs]
  for layer, activation in _layers(name, network, state):
    results.append(
      _ACTIVATIONS[activation](results[-1] @ state[f"{layer}/kernel"] + state[f"{layer}/bias"])
    )
  return results


def _backward(state, name, network, results, grad_output):
  """Returns gradients of the loss with respect to a network's weights."""
  gradients = {}
  layers = _layers(name, network, state)
  for index, (layer, activation) in reversed(list(enumerate(layers))):
    grad_sum = grad_output * _DERIVATIVES[activation](results[index + 1])
    gradients[f"{layer}/kernel"] = results[index].T @ grad_sum
    gradients[f"{layer}/bias"] = grad_sum.sum(0)
    grad_output = grad_sum @ state[f"{layer}/kernel"].T
  return gradients


class _Batch(NamedTuple):
  """The M steps of one gradient step."""

  inputs: np.ndarray  # [M, D]
  action: np.ndarray  # [M, ...]
  old: tuple[np.ndarray, ...] | np.ndarray  # Parameters before the update.
  old_log_prob: np.ndarray  # [M]
  old_value: np.ndarray  # [M]
  advantage: np.ndarray  # [M]
  value_target: np.ndarray  # [M]
  sequence: np.ndarray  # [M], index of each step's sequence.


def _loss_gradients(state, batch, config, network, distribution):
  """Returns gradients, losses, and shares as in `Learned.effects`, by name."""
  num_rows, losses, effects = len(batch.inputs), {}, {}
  policy = forward(state, "policy", network, batch.inputs)
  values = forward(state, "value", network, batch.inputs)
  parameters = distribution.parameters(state, policy[-1])
  advantage = batch.advantage
  if config.normalize_advantage:
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)

  log_prob = distribution.log_prob(parameters, batch.action)
  ratio = np.exp(log_prob - batch.old_log_prob)
  surrogate = ratio * advantage
  grad_log_prob = -surrogate / num_rows
  if config.clip_ratio is not None:
    low, high = 1 - config.clip_ratio, 1 + config.clip_ratio
    # The gradient of a clipped ratio is zero.
    is_clipped = np.where(advantage > 0, ratio > high, ratio < low)
    surrogate = np.where(is_clipped, np.clip(ratio, low, high) * advantage, surrogate)
    grad_log_prob = np.where(is_clipped, 0, grad_log_prob)
    effects["clip_ratio"] = is_clipped.mean()
    losses["clip_fraction"] = ((ratio < low) | (ratio > high)).mean()

  value = values[-1][:, 0]
  error = value - batch.value_target
  grad_value = 2 * error
  if config.value_clip is not None:
    low = batch.old_value - config.value_clip
    high = batch.old_value + config.value_clip
    clipped_error = np.clip(value, low, high) - batch.value_target
    # The larger error counts; the gradient of a clipped value is zero.
    is_clipped = np.abs(clipped_error) > np.abs(error)
    grad_value = np.where(is_clipped, 0, grad_value)
    error = np.where(is_clipped, clipped_error, error)
    effects["value_clip"] = is_clipped.mean()

  kl = distribution.kl(batch.old, parameters)
  grad_kl = np.zeros(num_rows)
  if config.kl_penalty:
    grad_kl += state["penalty/weight:0"] / num_rows
  if config.kl_cutoff_coef:
    losses["kl_cutoff"], grad_cutoff, effects["kl_cutoff"] = _cutoff(kl, batch.sequence, config)
    grad_kl += grad_cutoff

  grad_entropy = np.full(num_rows, -config.entropy_coef / num_rows)
  grad_output, gradients = distribution.gradients(
    parameters, batch.old, batch.action, grad_log_prob, grad_entropy, grad_kl
  )
  gradients |= _backward(state, "policy", network, policy, grad_output)
  grad_value = config.value_coef * grad_value[:, None] / num_rows
  gradients |= _backward(state, "value", network, values, grad_value)
  losses.update(
    policy_loss=-surrogate.mean(),
    value_loss=(error**2).mean(),
    entropy=distribution.entropy(parameters).mean(),
  )
  return gradients, losses, effects


def _cutoff(kl, sequence, config):
  """Returns the KL cutoff of M steps.

  Returns:
    Loss, gradient with respect to the KL divergence of each step, [M], and
    share of penalized sequences.
  """
  threshold = config.kl_cutoff_factor * config.kl_target
  indices, lengths = np.unique(sequence, return_counts=True)
  excesses, grad_kl = [], np.zeros(len(kl))
  for index, length in zip(indices, lengths, strict=True):
    members = sequence == index
    excess = max(0, kl[members].mean() - threshold)
    grad_kl[members] += config.kl_cutoff_coef * 2 * excess / length / len(indices)
    excesses.append(excess)
  return (
    config.kl_cutoff_coef * np.mean(np.square(excesses)),
    grad_kl,
    np.mean([excess > 0 for excess in excesses]),
  )


def _adam(state, gradients, rate, epsilon, beta1=0.9, beta2=0.999):
  """Applies Adam (Kingma 2015, end of section 2), like Keras.

  Section 2 of the paper ends with an efficient order of the operations in
  algorithm 1.
  """
  state["adam/iteration"] = step = state["adam/iteration"] + 1
  rate = rate * np.sqrt(1 - beta2**step) / (1 - beta1**step)
  for name, gradient in gradients.items():
    prefix = "adam/" + name.replace("/", "_")
    momentum, velocity = prefix + "_momentum", prefix + "_velocity"
    state[momentum] = beta1 * state[momentum] + (1 - beta1) * gradient
    state[velocity] = beta2 * state[velocity] + (1 - beta2) * gradient**2
    state[name] = state[name] - rate * state[momentum] / (np.sqrt(state[velocity]) + epsilon)


def _advantage(sequence, reward, value, final_value, config):
  """Sums the TD errors from each step to the end of its sequence."""
  has_no_future = sequence.terminated
  if not config.bootstrap_truncation:
    has_no_future = has_no_future or sequence.truncated
  next_value = [*value[1:], 0.0 if has_no_future else final_value]
  errors = reward + config.discount * np.array(next_value) - value
  decay = config.discount * config.gae_lambda
  return np.array(
    [
      sum(decay**step * error for step, error in enumerate(errors[start:]))
      for start in range(len(errors))
    ]
  )


def _std(state, name):
  count = state[f"{name}/count:0"]
  return np.sqrt(state[f"{name}/squares:0"] / count) if count else 1.0


def _add(state, name, samples):
  """Adds samples to the moments, which it computes from plain sums."""
  count, mean, squares = (state[f"{name}/{field}:0"] for field in ("count", "mean", "squares"))
  total = count * mean + samples.sum(0)
  total_of_squares = squares + count * mean**2 + (samples**2).sum(0)
  count = count + len(samples)
  state[f"{name}/count:0"] = count
  state[f"{name}/mean:0"] = total / count
  state[f"{name}/squares:0"] = total_of_squares - total**2 / count
