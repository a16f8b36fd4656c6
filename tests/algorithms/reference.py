"""One learning phase in NumPy float64, gradients and optimizer by hand.

Transcribed from the papers (Schulman 2015, Schulman 2017, Kingma 2015) to be
compared with what TensorFlow and Keras make of the same numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents import structs


class Gaussian:
  """Parameters are means and log standard deviations."""

  @staticmethod
  def parameters(state, output):
    return output, state["policy/log_std"]

  @staticmethod
  def log_prob(parameters, action):
    mean, log_std = parameters
    deviation = (action - mean) / np.exp(log_std)
    return (-0.5 * deviation ** 2 - log_std - 0.5 * np.log(2 * np.pi)).sum(-1)

  @staticmethod
  def entropy(parameters):
    mean, log_std = parameters
    return np.full(len(mean), (
        log_std + 0.5 * np.log(2 * np.pi * np.e)).sum())

  @staticmethod
  def kl(parameters, other):
    (mean, log_std), (other_mean, other_log_std) = parameters, other
    return (other_log_std - log_std - 0.5 + (
        np.exp(2 * log_std) + (mean - other_mean) ** 2) / (
            2 * np.exp(2 * other_log_std))).sum(-1)

  @staticmethod
  def std(parameters):
    return np.exp(parameters[1]).mean()

  @staticmethod
  def gradients(parameters, action, by_log_prob, by_entropy):
    """Return gradients by the network's output and by own weights.

    Args:
      parameters, action: Of a minibatch, [M, A].
      by_log_prob, by_entropy: Gradients of the loss, [M].
    """
    mean, log_std = parameters
    deviation = (action - mean) / np.exp(log_std)
    by_mean = by_log_prob[:, None] * deviation / np.exp(log_std)
    by_log_std = (by_log_prob[:, None] * (deviation ** 2 - 1)
                  + by_entropy[:, None]).sum(0)
    return by_mean, {"policy/log_std": by_log_std}


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

  @classmethod
  def gradients(cls, logits, action, by_log_prob, by_entropy):
    log_p = cls.log_probs(logits)
    p = np.exp(log_p)
    one_hot = np.eye(logits.shape[1])[action]
    entropy = -(p * log_p).sum(-1, keepdims=True)
    return (by_log_prob[:, None] * (one_hot - p)
            - by_entropy[:, None] * p * (log_p + entropy)), {}


class Learned(NamedTuple):
  """What a learning phase leaves behind."""

  state: dict[str, np.ndarray]  # Named as `BatchPPO.variables` names them.
  metrics: dict[str, float]
  norms: list[float]  # Of every minibatch's gradients, before clipping.


def learn(state: dict[str, np.ndarray], segment: structs.Transition,
          orders: list[np.ndarray], progress: float,
          config: config_lib.Algorithm, layers: int, head) -> Learned:
  """Improve policy and value by all of a segment.

  Args:
    state: All variables by name.
    segment: Arrays of shape [T, B, ...].
    orders: Order of the T * B steps at every epoch.
    progress: Share of the budget that is done.
    config: Hyper-parameters.
    layers: Hidden layers of both networks.
    head: `Gaussian` or `Categorical`.
  """
  state = {name: np.array(value, np.float64) for name, value in state.items()}
  def flat(array):
    return array.reshape(-1, *array.shape[2:])
  def features(observ):
    observ = flat(observ).reshape(segment.reward.size, -1).astype(np.float64)
    if not config.normalize_observ:
      return observ
    std = _std(state, "observ")
    return np.clip((observ - state["observ/mean:0"]) / (std + 1e-8),
                   -config.observ_clip, config.observ_clip)
  def policy(inputs):
    return head.parameters(state, _forward(state, "policy", layers, inputs)[-1])
  def estimate():
    scale = _std(state, "return") + 1e-8 if config.normalize_return else 1.0
    value, next_value = (
        _forward(state, "value", layers, x)[-1].reshape(segment.reward.shape)
        for x in (inputs, next_inputs))
    advantage = _advantage(
        segment.reward / scale, value, next_value, segment.terminated,
        segment.truncated, config.discount, config.gae_lambda)
    return flat(value), flat(advantage), scale

  inputs, next_inputs = features(segment.observ), features(segment.next_observ)
  action = flat(segment.action)
  before = policy(inputs)
  old_log_prob = head.log_prob(before, action)
  rate = state["step_size/rate:0"]
  if config.lr_schedule == "linear":
    rate = rate * (1 - progress)
  state["adam/learning_rate"] = rate
  value, advantage, scale = estimate()
  metrics = {
      "explained_variance": 1 - advantage.var() / (value + advantage).var(),
      "value_mean": value.mean(), "learning_rate": rate,
      "action_std": head.std(before)}

  parts, norms = [], []
  for order in orders:
    if config.recompute_advantages:
      value, advantage, scale = estimate()
    for rows in order.reshape(-1, config.minibatch_size):
      gradients, part = _loss_gradients(
          state, inputs[rows], action[rows], old_log_prob[rows],
          advantage[rows], (value + advantage)[rows], config, layers, head)
      norm = np.sqrt(sum((x ** 2).sum() for x in gradients.values()))
      shrink = min(1.0, config.max_grad_norm / norm)
      _adam(state, {k: x * shrink for k, x in gradients.items()}, rate)
      parts.append({**part, "grad_norm": norm})
      norms.append(norm)
  metrics.update({name: np.mean([part[name] for part in parts])
                  for name in parts[0]})

  metrics["kl"] = head.kl(before, policy(inputs)).mean()
  if config.lr_schedule == "kl_adaptive":
    if metrics["kl"] > 2 * config.kl_target:
      state["step_size/rate:0"] = rate / 1.5
    elif metrics["kl"] < config.kl_target / 2:
      state["step_size/rate:0"] = rate * 1.5
  if config.normalize_observ:
    _add(state, "observ", flat(segment.observ).reshape(len(value), -1))
    metrics["observ_mean"] = state["observ/mean:0"].mean()
    metrics["observ_std"] = _std(state, "observ").mean()
  _add(state, "return", (value + advantage) * scale)
  metrics["return_std"] = _std(state, "return")
  return Learned(state, metrics, norms)


def _forward(state, name, layers, inputs):
  """Return the inputs, every hidden layer, and the output."""
  activations = [inputs]
  for index in range(layers):
    activations.append(np.tanh(
        activations[-1] @ state[f"{name}/hidden_{index}/kernel"]
        + state[f"{name}/hidden_{index}/bias"]))
  activations.append(activations[-1] @ state[f"{name}/output/kernel"]
                     + state[f"{name}/output/bias"])
  return activations


def _backward(state, name, activations, by_output):
  """Return the gradients of a network's weights."""
  layers = len(activations) - 2
  gradients = {}
  for index in reversed(range(layers + 1)):
    layer = f"{name}/hidden_{index}" if index < layers else f"{name}/output"
    gradients[f"{layer}/kernel"] = activations[index].T @ by_output
    gradients[f"{layer}/bias"] = by_output.sum(0)
    by_output = by_output @ state[f"{layer}/kernel"].T
    by_output = by_output * (1 - activations[index] ** 2)
  return gradients


def _loss_gradients(state, inputs, action, old_log_prob, advantage,
                    value_target, config, layers, head):
  """Return gradients of the loss on one minibatch, and the loss's parts."""
  amount = len(inputs)
  policy = _forward(state, "policy", layers, inputs)
  parameters = head.parameters(state, policy[-1])
  values = _forward(state, "value", layers, inputs)
  error = values[-1][:, 0] - value_target
  if config.normalize_advantage:
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
  ratio = np.exp(head.log_prob(parameters, action) - old_log_prob)
  low, high = 1 - config.clip_ratio, 1 + config.clip_ratio
  # The surrogate is flat where the ratio has gone far enough already.
  flat = np.where(advantage > 0, ratio > high, ratio < low)
  gain = np.where(flat, np.clip(ratio, low, high), ratio) * advantage
  by_log_prob = -np.where(flat, 0, ratio * advantage) / amount
  by_entropy = np.full(amount, -config.entropy_coef / amount)
  by_output, gradients = head.gradients(
      parameters, action, by_log_prob, by_entropy)
  gradients |= _backward(state, "policy", policy, by_output)
  gradients |= _backward(
      state, "value", values, config.value_coef * 2 * error[:, None] / amount)
  return gradients, {
      "policy_loss": -gain.mean(), "value_loss": (error ** 2).mean(),
      "entropy": head.entropy(parameters).mean(),
      "clip_fraction": ((ratio < low) | (ratio > high)).mean()}


def _adam(state, gradients, rate, beta1=0.9, beta2=0.999, epsilon=1e-5):
  """Algorithm 1 in the order of its section 2, as Keras has it."""
  state["adam/iteration"] = step = state["adam/iteration"] + 1
  rate = rate * np.sqrt(1 - beta2 ** step) / (1 - beta1 ** step)
  for name, gradient in gradients.items():
    prefix = "adam/" + name.replace("/", "_")
    momentum, velocity = prefix + "_momentum", prefix + "_velocity"
    state[momentum] = beta1 * state[momentum] + (1 - beta1) * gradient
    state[velocity] = beta2 * state[velocity] + (1 - beta2) * gradient ** 2
    state[name] = state[name] - rate * state[momentum] / (
        np.sqrt(state[velocity]) + epsilon)


def _advantage(reward, value, next_value, terminated, truncated, discount,
               lambda_):
  """Sum the TD errors from each step to the end of its episode."""
  advantage = np.zeros(reward.shape)
  for start, row in np.ndindex(*reward.shape):
    weight = 1.0
    for step in range(start, len(reward)):
      future = 0.0 if terminated[step, row] else next_value[step, row]
      advantage[start, row] += weight * (
          reward[step, row] + discount * future - value[step, row])
      if terminated[step, row] or truncated[step, row]:
        break
      weight *= discount * lambda_
  return advantage


def _std(state, name):
  count = state[f"{name}/count:0"]
  return np.sqrt(state[f"{name}/squares:0"] / count) if count else 1.0


def _add(state, name, samples):
  """Add samples to the moments, by way of the plain sums."""
  count, mean, squares = (
      state[f"{name}/{field}:0"] for field in ("count", "mean", "squares"))
  total = count * mean + samples.sum(0)
  total_of_squares = squares + count * mean ** 2 + (samples ** 2).sum(0)
  count = count + len(samples)
  state[f"{name}/count:0"] = count
  state[f"{name}/mean:0"] = total / count
  state[f"{name}/squares:0"] = total_of_squares - total ** 2 / count
