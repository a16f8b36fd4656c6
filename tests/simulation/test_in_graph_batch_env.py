"""What crosses between graph and environments, and what errors become."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.blocks import base
from agents.simulation import in_graph_batch_env
from tests import modes
from tests import toy

_both_modes = pytest.mark.parametrize(
    "eager", [True, False], ids=["eager", "graph"])

# What float32, or even float64, would round.
_BYTES = gymnasium.spaces.Box(0, 255, (2, 3), np.uint8)
_CHOICES = gymnasium.spaces.Discrete(5, start=2 ** 53 + 1)
_MATRIX = gymnasium.spaces.Box(-np.inf, np.inf, (2, 2), np.float32)
_SCALAR = gymnasium.spaces.Box(-np.inf, np.inf, (), np.float32)
_spaces = pytest.mark.parametrize(
    "space", [_BYTES, _CHOICES, _MATRIX, _SCALAR], ids=str)


class _Exact(gymnasium.Env):
  """Observes numbers that survive only as they are; four steps an episode."""

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


def _exact(space, amount=3):
  return batch_env.BatchEnv([lambda: _Exact(space)] * amount)


def _steps(env, inputs, eager):
  """Step from inside the graph; return answers, and them packed."""
  @tf.function
  def step(*tensors):
    packed, _ = env.exchange(*tensors)
    return env.unpack(packed), packed
  with modes.functions_run_eagerly(eager):
    return [step(*map(tf.constant, row)) for row in zip(*inputs, strict=True)]


_ANY, _KNOWN = None, 9  # Steps of a collection, as its graph knows them.


def _collection(env, packed, eager, time=_KNOWN):
  """Unpack all steps at once; return answers and true successors."""
  @tf.function(input_signature=[
      tf.TensorSpec([time, *env.packed_spec.shape], tf.uint8)])
  def unpack(packed):
    answers = env.unpack(packed)
    return answers, in_graph_batch_env.successors(
        answers, env.final_observ(answers))
  with modes.functions_run_eagerly(eager):
    return unpack(tf.stack(packed))


@_both_modes
@_spaces
@pytest.mark.parametrize("pauses", [False, True], ids=["busy", "pauses"])
def test_all_fields_cross_as_they_are(pauses, space, eager):
  inputs = [np.random.default_rng(0).integers(0, 7, (9, 3))]
  if pauses:
    # Episodes of four steps; the last environment begins five steps later.
    yes, no = True, False
    inputs.append(np.array([[yes, yes, no]] * 4 + [[no, yes, no]] + [
        [yes, yes, yes]] * 3 + [[yes, no, yes]]))
  with _exact(space) as outside, _exact(space) as inside:
    outside.reset()
    inside.reset()
    expected = [outside.step(*row) for row in zip(*inputs, strict=True)]
    env = in_graph_batch_env.InGraphBatchEnv(inside)
    steps = _steps(env, inputs, eager)
    answers, successors = _collection(
        env, [packed for _, packed in steps], eager)
  assert any(step.terminated.any() for step in expected)
  assert set(answers._fields) | {"next_observ"} == set(
      batch_env.Step._fields)
  for time, ((got, _), wanted) in enumerate(zip(steps, expected, strict=True)):
    for name, array in wanted._asdict().items():
      tensors = [successors[time]] if name == "next_observ" else [
          getattr(got, name), getattr(answers, name)[time]]
      for tensor in tensors:
        assert tensor.dtype == array.dtype
        assert tensor.shape == array.shape
        assert tensor.numpy().tobytes() == array.tobytes(), name


def test_integers_are_not_rounded():
  with _exact(_CHOICES, 1) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    steps = _steps(env, [np.zeros((4, 1), np.int64)], eager=False)
    answers, successors = _collection(
        env, [packed for _, packed in steps], eager=False, time=_ANY)
  assert (successors[:, 0].numpy() - 2 ** 53).tolist() == [2, 3, 4, 5]
  assert (answers.observ[:, 0].numpy() - 2 ** 53).tolist() == [2, 3, 4, 1]
  observed = [step.observ.numpy().item() - 2 ** 53 for step, _ in steps]
  assert observed == [2, 3, 4, 1]


def test_bytes_are_not_stretched():
  with _exact(_BYTES, 1) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    (step, _), = _steps(env, [np.zeros((1, 1), np.int64)], eager=False)
  np.testing.assert_array_equal(
      step.observ, [[[249, 250, 251], [252, 253, 254]]])


def _shapes(tensors):
  return [tuple(tensor.shape) for tensor in tensors]


@_spaces
def test_shapes_are_known_while_tracing(space):
  traced = []
  with _exact(space) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    @tf.function
    def step(action):
      packed, seconds = env.exchange(action)
      answers = env.unpack(packed)
      traced.extend([_shapes([packed, seconds]), _shapes(answers)])
      return answers
    step(tf.zeros([3], tf.int64))
  observ = (3, *space.shape)
  assert traced == [[(batch.step_layout.num_bytes,), ()],
                    [observ, (3,), (3,), (3,), (3,)]]


@_spaces
@pytest.mark.parametrize("time", [_ANY, _KNOWN])
def test_shapes_of_a_collection_are_known_while_tracing(space, time):
  traced = []
  with _exact(space) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    @tf.function(input_signature=[
        tf.TensorSpec([time, batch.step_layout.num_bytes], tf.uint8)])
    def unpack(packed):
      answers = env.unpack(packed)
      traced.extend([*answers, in_graph_batch_env.successors(
        answers, env.final_observ(answers))])
      return answers
    unpack.get_concrete_function()
  observ, rest = (time, 3, *space.shape), (time, 3)
  assert [tuple(tensor.shape.as_list()) for tensor in traced] == [
      observ, rest, rest, rest, rest, observ]


@_spaces
def test_specs_describe_what_crosses(space):
  with _exact(space) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    batch.reset()
    packed, seconds = env.exchange(tf.zeros([3], tf.int64))
  assert len(env) == 3
  assert env.action_spec == tf.TensorSpec([3], tf.int64)
  assert env.packed_spec == tf.TensorSpec(
      [batch.step_layout.num_bytes], tf.uint8)
  assert env.packed_spec == tf.TensorSpec(packed.shape, packed.dtype)
  assert seconds.dtype == tf.float64 and seconds >= 0


def test_spec_of_actions_in_a_box():
  with batch_env.BatchEnv([toy.Counter] * 4) as batch:
    env = in_graph_batch_env.InGraphBatchEnv(batch)
  assert env.action_spec == tf.TensorSpec([4, 1], tf.float32)


def test_a_traced_step_runs_every_time():
  with batch_env.BatchEnv([lambda: toy.Counter(100)]) as batch:
    batch.reset()
    env = in_graph_batch_env.InGraphBatchEnv(batch)
    @tf.function
    def rewards():
      first, _ = env.exchange(tf.zeros([1, 1]))
      env.exchange(tf.zeros([1, 1]))  # Its result is used by nobody.
      third, _ = env.exchange(tf.zeros([1, 1]))
      return tf.concat([
          env.unpack(first).reward, env.unpack(third).reward], 0)
    np.testing.assert_array_equal(rewards(), [1, 3])
    np.testing.assert_array_equal(rewards(), [4, 6])


def _faulty(fault="raise"):
  return in_graph_batch_env.InGraphBatchEnv(batch_env.BatchEnv(
      [toy.Counter, lambda: toy.Faulty(fault)]))


@_both_modes
def test_errors_come_out_as_themselves(eager):
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


def test_an_action_that_does_not_fit_comes_out_as_itself_too():
  env = _faulty()
  env.batch_env.reset()
  with pytest.raises(ValueError, match="`action` must have shape"):
    with env.original_errors():
      _steps(env, [np.zeros((1, 3, 1), np.float32)], eager=False)
  env.batch_env.close()


def test_waiting_at_the_wrong_time_comes_out_as_itself():
  env = _faulty()
  env.batch_env.reset()
  inputs = np.zeros((2, 2, 1), np.float32), np.array([[1, 1], [0, 1]], bool)
  with pytest.raises(ValueError, match="can't wait in the middle"):
    with env.original_errors():
      _steps(env, inputs, eager=False)
  env.batch_env.close()


def test_errors_of_the_graph_are_not_taken_for_the_environments():
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
