"""The graph receives data and errors of environments unchanged."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import spaces
from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.making import action_scaling
from agents.simulation import in_graph_batch_env
from tests import echo, toy
from tests.support import modes

_both_modes = pytest.mark.parametrize("eager", [True, False], ids=["eager", "graph"])

# Conversions to float32 or float64 would change some values of these spaces.
_BYTES = gymnasium.spaces.Box(0, 255, (2, 3), np.uint8)
_CHOICES = gymnasium.spaces.Discrete(5, start=2**53 + 1)
_MATRIX = gymnasium.spaces.Box(-np.inf, np.inf, (2, 2), np.float32)
_SCALAR = gymnasium.spaces.Box(-np.inf, np.inf, (), np.float32)
_spaces = pytest.mark.parametrize("space", [_BYTES, _CHOICES, _MATRIX, _SCALAR], ids=str)


class _Exact(gymnasium.Env):
  """Observes numbers that conversions would change; episodes have 4 steps."""

  action_space = gymnasium.spaces.Discrete(7, start=-3)

  def __init__(self, space: gymnasium.Space):
    self.observation_space = space

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return self._observ(), {}

  def step(self, action):
    assert -3 <= action < 4
    self._step += 1
    return self._observ(), 0.1 * action, self._step == 4, False, {}

  def _observ(self):
    space = self.observation_space
    if isinstance(space, gymnasium.spaces.Discrete):
      return space.start + self._step
    if space.dtype == np.uint8:
      return (250 + np.arange(6).reshape(2, 3) - self._step).astype(np.uint8)
    return np.full(space.shape, 1 / 3, np.float32) + self._step


def _exact(space, size=3):
  return batch_env.BatchEnv([lambda: _Exact(space)] * size)


def _steps(env, inputs, eager):
  """Returns results and packed results of each step inside of the graph."""

  @tf.function
  def step(*tensors):
    packed, _ = env.step_packed(*tensors)
    return env.unpack(packed), packed

  with modes.functions_run_eagerly(eager):
    return [step(*map(tf.constant, row)) for row in zip(*inputs, strict=True)]


_DYNAMIC, _STATIC = None, 9  # Number of steps in the traced shapes.


def _unpack_all(env, packed, eager, num_steps=_STATIC):
  """Unpacks all steps at once; returns results and true successors."""

  @tf.function(input_signature=[tf.TensorSpec([num_steps, *env.packed_spec.shape], tf.uint8)])
  def unpack(packed):
    results = env.unpack(packed)
    return results, in_graph_batch_env.successors(results, env.final_observ(results))

  with modes.functions_run_eagerly(eager):
    return unpack(tf.stack(packed))


@pytest.mark.fast_variants(6)
@_both_modes
@_spaces
@pytest.mark.parametrize("pauses", [False, True], ids=["busy", "pauses"])
def test_fields_have_the_same_bits_inside_and_outside_of_the_graph(pauses, space, eager):
  inputs = [np.random.default_rng(0).integers(0, 7, (9, 3))]
  if pauses:
    # Episodes have four steps. Environments 0 and 1 wait between two episodes;
    # environment 2 waits before its first episode.
    yes, no = True, False
    inputs.append(
      np.array([[yes, yes, no]] * 4 + [[no, yes, no]] + [[yes, yes, yes]] * 3 + [[yes, no, yes]])
    )
  with _exact(space) as outside, _exact(space) as inside:
    outside.reset()
    inside.reset()
    expected = [outside.step(*row) for row in zip(*inputs, strict=True)]
    env = in_graph_batch_env.InGraphBatchEnv(inside)
    steps = _steps(env, inputs, eager)
    results, successors = _unpack_all(env, [packed for _, packed in steps], eager)
  assert any(step.terminated.any() for step in expected)
  assert set(results._fields) | {"next_observ"} == set(batch_env.StepResult._fields)
  for time, ((result, _), expected_result) in enumerate(zip(steps, expected, strict=True)):
    for name, array in expected_result._asdict().items():
      tensors = (
        [successors[time]]
        if name == "next_observ"
        else [getattr(result, name), getattr(results, name)[time]]
      )
      for tensor in tensors:
        assert tensor.dtype == array.dtype
        assert tensor.shape == array.shape
        assert tensor.numpy().tobytes() == array.tobytes(), name


def test_integers_are_not_rounded():
  with _exact(_CHOICES, 1) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    steps = _steps(env, [np.zeros((4, 1), np.int64)], eager=False)
    results, successors = _unpack_all(
      env, [packed for _, packed in steps], eager=False, num_steps=_DYNAMIC
    )
  assert (successors[:, 0].numpy() - 2**53).tolist() == [2, 3, 4, 5]
  assert (results.observ[:, 0].numpy() - 2**53).tolist() == [2, 3, 4, 1]
  observed = [step.observ.numpy().item() - 2**53 for step, _ in steps]
  assert observed == [2, 3, 4, 1]


def test_image_bytes_are_not_scaled():
  with _exact(_BYTES, 1) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    ((step, _),) = _steps(env, [np.zeros((1, 1), np.int64)], eager=False)
  np.testing.assert_array_equal(step.observ, [[[249, 250, 251], [252, 253, 254]]])


def _shapes(tensors):
  return [tuple(tensor.shape) for tensor in tensors]


@_spaces
def test_shapes_of_a_step_are_static(space):
  traced = []
  with _exact(space) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)

    @tf.function
    def step(action):
      packed, seconds = env.step_packed(action)
      results = env.unpack(packed)
      traced.extend([_shapes([packed, seconds]), _shapes(results)])
      return results

    step(tf.zeros([3], tf.int64))
  observ = (3, *space.shape)
  assert traced == [[(batch.step_layout.num_bytes,), ()], [observ, (3,), (3,), (3,), (3,)]]


@_spaces
@pytest.mark.parametrize("num_steps", [_DYNAMIC, _STATIC])
def test_shapes_of_several_steps_are_static(space, num_steps):
  traced = []
  with _exact(space) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)

    @tf.function(
      input_signature=[tf.TensorSpec([num_steps, batch.step_layout.num_bytes], tf.uint8)]
    )
    def unpack(packed):
      results = env.unpack(packed)
      traced.extend([*results, in_graph_batch_env.successors(results, env.final_observ(results))])
      return results

    unpack.get_concrete_function()
  observ, scalar = (num_steps, 3, *space.shape), (num_steps, 3)
  assert [tuple(tensor.shape.as_list()) for tensor in traced] == [
    observ,
    scalar,
    scalar,
    scalar,
    scalar,
    observ,
  ]


@_spaces
def test_specs_have_types_and_shapes_of_actions_and_packed_results(space):
  with _exact(space) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    batch.reset()
    packed, seconds = env.step_packed(tf.zeros([3], tf.int64))
  assert len(env) == 3
  assert env.action_spec == tf.TensorSpec([3], tf.int64)
  assert env.packed_spec == tf.TensorSpec([batch.step_layout.num_bytes], tf.uint8)
  assert env.packed_spec == tf.TensorSpec(packed.shape, packed.dtype)
  assert seconds.dtype == tf.float64 and seconds >= 0


def test_action_spec_of_a_box_is_float32():
  with batch_env.BatchEnv([toy.Counter] * 4) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
  assert env.action_spec == tf.TensorSpec([4, 1], tf.float32)


def test_a_traced_step_runs_every_time():
  with batch_env.BatchEnv([lambda: toy.Counter(100)]) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)

    @tf.function
    def rewards():
      first, _ = env.step_packed(tf.zeros([1, 1]))
      env.step_packed(tf.zeros([1, 1]))  # The result of this step is unused.
      third, _ = env.step_packed(tf.zeros([1, 1]))
      return tf.concat([env.unpack(first).reward, env.unpack(third).reward], 0)

    np.testing.assert_array_equal(rewards(), [1, 3])
    np.testing.assert_array_equal(rewards(), [4, 6])


def _faulty(fault="raise"):
  return in_graph_batch_env.InGraphBatchEnv(
    batch_env.BatchEnv([toy.Counter, lambda: toy.Faulty(fault)])
  )


@_both_modes
def test_error_of_an_environment_keeps_its_type(eager):
  env = _faulty()
  env.batch_env.reset()
  with pytest.raises(ValueError, match="^faulty step$") as caught:
    with env.original_errors():
      _steps(env, [np.zeros((2, 2, 1), np.float32)], eager)
  failure = caught.value.__cause__
  assert isinstance(failure, base.EnvironmentFailure)
  assert "Environment 1" in str(failure)
  assert "step 1 of its episode" in str(failure)
  assert 'raise ValueError("faulty step")' in str(failure)
  env.batch_env.close()


def test_error_about_the_action_shape_keeps_its_type():
  env = _faulty()
  env.batch_env.reset()
  with pytest.raises(ValueError, match="`action` must have shape"):
    with env.original_errors():
      _steps(env, [np.zeros((1, 3, 1), np.float32)], eager=False)
  env.batch_env.close()


def test_error_about_waiting_inside_of_an_episode_keeps_its_type():
  env = _faulty()
  env.batch_env.reset()
  inputs = np.zeros((2, 2, 1), np.float32), np.array([[1, 1], [0, 1]], bool)
  with pytest.raises(ValueError, match="cannot wait inside"):
    with env.original_errors():
      _steps(env, inputs, eager=False)
  env.batch_env.close()


def test_later_error_of_the_graph_is_not_replaced():
  env = _faulty()
  env.batch_env.reset()
  with pytest.raises(ValueError):
    with env.original_errors():
      _steps(env, [np.zeros((2, 2, 1), np.float32)], eager=False)

  @tf.function
  def fail():
    tf.debugging.assert_equal(tf.random.uniform([]), 2.0)

  with pytest.raises(tf.errors.InvalidArgumentError):
    with env.original_errors():
      fail()
  env.batch_env.close()


@pytest.mark.parametrize("space", ["box", "nested"])
@_both_modes
def test_reset_and_step_work_in_any_graph(space, eager):
  """Compares with the same calls of `BatchEnv`."""
  tf.config.run_functions_eagerly(eager)
  make = lambda: echo.Echo(space, length=3)  # noqa: E731
  expected, inside = (batch_env.BatchEnv([make] * 4, seed=5) for _ in range(2))
  rng = np.random.default_rng(0)
  actions = [action_scaling.sample(expected.action_space, 4, rng) for _ in range(7)]
  env = in_graph_batch_env.InGraphBatchEnv(inside)
  results = [expected.reset()]
  for action in actions:
    results += [*expected.step(action)]
  results.append(expected.reset(indices=[2, 0]))

  @tf.function
  def play(actions):
    results = [env.reset()]
    for action in tf.unstack(actions):
      results += [*env.step(action)]
    return [*results, env.reset(tf.constant([2, 0]))]

  try:
    received = play(tf.constant(np.stack([spaces.as_bytes(action) for action in actions])))
  finally:
    tf.config.run_functions_eagerly(False)
  for tensor, array in zip(received, results, strict=True):
    assert None not in tensor.shape
    np.testing.assert_array_equal(tensor, spaces.as_bytes(array))
  assert not inside.take_final_observ()
