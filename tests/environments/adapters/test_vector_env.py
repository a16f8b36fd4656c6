"""VectorEnv returns the same results as Gymnasium's SyncVectorEnv."""

import contextlib
import copy
import functools
import gc
import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import vector
from gymnasium.wrappers import vector as vector_wrappers

from agents.environments.adapters import vector_env
from agents.environments.blocks import base
from agents.environments.data import failure_budget
from agents.environments.workers import pool as pool_lib
from agents.environments.workers import process
from tests import toy
from tests.environments import faulty_envs, scripts

_MODES = vector.AutoresetMode
_SPACE = gymnasium.spaces.Dict(
  {
    "image": gymnasium.spaces.Box(0, 255, (2, 2), np.uint8),
    "place": gymnasium.spaces.Box(-9, 9, (2,), np.float64),
    "parts": gymnasium.spaces.Tuple(
      [
        gymnasium.spaces.Discrete(5, start=-2),
        gymnasium.spaces.MultiDiscrete([3, 4]),
        gymnasium.spaces.MultiBinary(3),
      ]
    ),
  }
)


class RandomInfos(gymnasium.Env):
  """Returns random observations of its space, and infos of many types."""

  metadata = {"render_modes": ["rgb_array"], "render_fps": 7}
  render_mode = "rgb_array"

  def __init__(self, observation=_SPACE, action=_SPACE):
    # Copies the space, because each space has its own generator for `sample`.
    self.observation_space = copy.deepcopy(observation)
    self.action_space = action
    self.value = 3

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    if seed is not None:
      self.observation_space.seed(seed)
    return self.observation_space.sample(), {
      "began": True,
      "options": options,
      "draw": self.np_random.random(),
    }

  def step(self, action):
    self.action = action
    ended, draw = self.np_random.random(2) < 0.1, self.np_random.random()
    info = {
      "text": f"{draw:.2f}",
      "array": np.full((2, 1), draw),
      "flag": bool(draw < 0.5),
      "single": np.float32(draw),
      "nested": {"count": 3, "deeper": {"draw": draw}},
    }
    if draw < 0.3:
      info["seldom"] = int(10 * draw)
    if draw < 0.5:
      info["mixed"] = 1 if draw < 0.25 else 2.5
    return self.observation_space.sample(), draw, *ended, info

  def render(self):
    return np.full((2, 2, 3), self.value, np.uint8)

  def add(self, first, second=0, name=0):
    return self.value + first + second + name


def _make(env_id, **kwargs):
  return functools.partial(gymnasium.make, env_id, **kwargs)


_ENVS = {
  "cartpole": _make("CartPole-v1"),
  "pendulum": _make("Pendulum-v1", max_episode_steps=7),
  "cheetah": _make("HalfCheetah-v5", max_episode_steps=9),
  "hopper": _make("Hopper-v5"),
  "frozen_lake": _make("FrozenLake-v1"),
  "blackjack": _make("Blackjack-v1"),
  "dict": RandomInfos,
  "integers": functools.partial(
    RandomInfos,
    gymnasium.spaces.Box(-3, 3, (), np.int16),
    gymnasium.spaces.Box(-3, 3, (2,), np.int8),
  ),
}


def _assert_equal(actual, expected, path="result"):
  """Asserts that nested values have equal types, shapes and contents."""
  assert type(actual) is type(expected), path
  if isinstance(actual, dict):
    assert actual.keys() == expected.keys(), path
    for key in actual:
      _assert_equal(actual[key], expected[key], f"{path}[{key!r}]")
  elif isinstance(actual, (tuple, list)) or (
    isinstance(actual, np.ndarray) and actual.dtype == object
  ):
    assert len(actual) == len(expected), path
    for index, pair in enumerate(zip(actual, expected)):
      _assert_equal(*pair, f"{path}[{index}]")
  elif isinstance(actual, np.ndarray):
    assert actual.dtype == expected.dtype, path
    assert actual.shape == expected.shape, path
    np.testing.assert_array_equal(actual, expected, path)
  else:
    assert actual == expected, path


def _play(envs, steps=60):
  """Returns the results of resets and random steps."""
  results = [envs.reset(seed=5, options={"far": 3})]
  envs.action_space.seed(1)
  mode = envs.metadata["autoreset_mode"]
  for step in range(steps):
    results.append(envs.step(envs.action_space.sample()))
    ended = results[-1][2] | results[-1][3]
    if mode == _MODES.DISABLED and ended.any():
      results.append(envs.reset(options={"reset_mask": ended, "far": 4}))
    if step == 30:
      results.append(envs.reset(seed=[None, 7, None, 8, 9]))
      mask = np.array([True, False, False, True, False])
      results.append(envs.reset(seed=3, options={"reset_mask": mask}))
  return results


@pytest.fixture(params=["serial", "processes"])
def workers(request, pool):
  """Runs a test without workers (0), and with a pool of workers."""
  return pool if request.param == "processes" else 0


@pytest.fixture(scope="module")
def random_envs(pool):
  """Environments in two workers, shared by tests that leave them usable."""
  envs = vector_env.VectorEnv([RandomInfos] * 3, pool)
  envs.reset(seed=0)
  yield envs
  envs.close()


@pytest.mark.fast_variants(8)
@pytest.mark.parametrize("mode", _MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", _ENVS)
def test_every_result_equals_gymnasium(name, mode, pool):
  constructors = [_ENVS[name]] * 5
  theirs = vector.SyncVectorEnv(constructors, autoreset_mode=mode)
  expected = _play(theirs)
  assert any((step[2] | step[3]).any() for step in expected if len(step) == 5)
  for workers in (0, pool):
    ours = vector_env.VectorEnv(constructors, workers, mode)
    try:
      _assert_equal(_play(ours), expected)
      for space in (
        "observation_space",
        "action_space",
        "single_observation_space",
        "single_action_space",
      ):
        assert getattr(ours, space) == getattr(theirs, space)
      assert ours.metadata == theirs.metadata
      assert ours.metadata["autoreset_mode"] is mode
      assert ours.render_mode == theirs.render_mode
      assert ours.num_envs == theirs.num_envs == 5
    finally:
      ours.close()


def test_autoreset_mode_can_be_a_string():
  envs = vector_env.VectorEnv([toy.Counter], 0, "SameStep")
  assert envs.metadata["autoreset_mode"] is _MODES.SAME_STEP


def test_results_do_not_change_in_later_steps(random_envs):
  random_envs.reset(seed=0)
  random_envs.action_space.seed(0)
  steps = [random_envs.step(random_envs.action_space.sample())]
  before = repr(steps)
  random_envs.step(random_envs.action_space.sample())
  assert repr(steps) == before


def test_environments_receive_unscaled_actions(workers):
  envs = vector_env.VectorEnv([toy.Counter] * 3, workers)
  envs.reset()
  envs.step(np.array([[-7], [0.1], [7]]))
  first = envs.get_attr("last_action")
  envs.step(np.zeros((3, 1), np.float32))
  assert [x.dtype for x in first] == [np.float32] * 3  # Type of the space.
  assert [x.tolist() for x in first] == [[-7], [np.float32(0.1)], [7]]
  envs.close()


def test_actions_that_environments_keep_do_not_change():
  class Keeping(toy.Counter):
    kept = None

    def step(self, action):
      self.kept = self.kept if self.kept is not None else action
      return super().step(action)

  envs = vector_env.VectorEnv([Keeping] * 2, 0)
  envs.reset()
  envs.step(np.ones((2, 1)))
  envs.step(np.zeros((2, 1)))
  assert envs.get_attr("kept") == (1, 1)


def test_final_observation_is_a_copy_of_a_reused_array():
  envs = vector_env.VectorEnv([faulty_envs.Reusing] * 2, 0, _MODES.SAME_STEP)
  envs.reset()
  for _ in range(3):
    observ, _, _, _, infos = envs.step(np.zeros((2, 1)))
  assert observ[:, 1].tolist() == [0, 0]
  assert [final[1] for final in infos["final_obs"]] == [3, 3]


@pytest.mark.parametrize(
  "action, error",
  [
    (np.zeros((2, 1)), ValueError),
    (np.zeros((3,)), ValueError),
    (np.zeros((3, 1), complex), TypeError),
  ],
)
def test_actions_of_wrong_shape_or_type_are_refused(action, error):
  envs = vector_env.VectorEnv([toy.Counter] * 3, 0)
  envs.reset()
  with pytest.raises(error):
    envs.step(action)


@pytest.mark.parametrize("mask", [[True] * 3, np.ones(2, bool), np.ones(3), np.zeros(3, bool)])
def test_wrong_reset_masks_are_refused(random_envs, mask):
  with pytest.raises(ValueError, match="reset_mask"):
    random_envs.reset(options={"reset_mask": mask})


def test_wrong_number_of_seeds_is_refused(random_envs):
  with pytest.raises(ValueError, match="must contain 3"):
    random_envs.reset(seed=[1, 2])


def test_reset_does_not_change_the_options(random_envs):
  options = {"reset_mask": np.array([True, False, True]), "far": 1}
  random_envs.reset(options=options)
  assert options.keys() == {"reset_mask", "far"}


def test_methods_and_attributes_are_accessible(random_envs):
  random_envs.set_attr("value", [1, 2, 3])
  assert random_envs.get_attr("value") == (1, 2, 3)
  assert random_envs.call("add", 1, second=2, name=3) == (7, 8, 9)
  assert random_envs.call("value") == (1, 2, 3)
  assert [int(image[0, 0, 0]) for image in random_envs.render()] == [1, 2, 3]
  random_envs.set_attr("value", 5)
  assert random_envs.get_attr("value") == (5, 5, 5)
  with pytest.raises(ValueError, match="must contain 3"):
    random_envs.set_attr("value", [1, 2])
  random_envs.reset(seed=4)
  assert random_envs.np_random_seed == (4, 5, 6)
  assert all(isinstance(x, np.random.Generator) for x in random_envs.np_random)


def test_disabled_autoreset_refuses_steps_after_the_end(workers):
  envs = vector_env.VectorEnv(
    [functools.partial(toy.Counter, length) for length in (9, 1)], workers, _MODES.DISABLED
  )
  envs.reset()
  envs.step(np.zeros((2, 1)))
  with pytest.raises(RuntimeError, match="episode of environment 1 has ended"):
    envs.step(np.zeros((2, 1)))
  envs.close()


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize(
  "wrap",
  [
    vector_wrappers.RecordEpisodeStatistics,
    vector_wrappers.NormalizeObservation,
    vector_wrappers.NormalizeReward,
    functools.partial(vector_wrappers.ClipReward, max_reward=0.5),
    vector_wrappers.DictInfoToList,
  ],
  ids=str,
)
def test_vector_wrappers_return_the_same_results(wrap, workers):
  results = []
  for make_envs in (vector.SyncVectorEnv, functools.partial(vector_env.VectorEnv, workers=workers)):
    envs = wrap(make_envs([_ENVS["hopper"]] * 3))
    envs.action_space.seed(0)
    steps = [envs.reset(seed=0)]
    for _ in range(40):
      steps.append(list(envs.step(envs.action_space.sample())))
      infos = steps[-1][-1]
      if "episode" in infos:
        infos["episode"]["t"][:] = 0  # Seconds since the start.
    envs.close()
    results.append(steps)
  _assert_equal(*results)


@pytest.mark.parametrize("fault, error", [("raise", ValueError), ("exit", base.EnvironmentFailure)])
def test_errors_of_steps_name_the_environment(fault, error, workers):
  envs = vector_env.VectorEnv([toy.Counter, functools.partial(toy.Faulty, fault)], workers)
  envs.reset(seed=6)
  envs.step(np.zeros((2, 1)))
  with pytest.raises(error) as caught:
    envs.step(np.zeros((2, 1)))
  texts = [str(caught.value), str(caught.value.__cause__)]
  expected = "Environment 1 ('Faulty', seed 7, step 2 of its episode) failed in"
  assert any(expected in text for text in texts)
  envs.close()


def test_errors_of_constructors_and_resets_name_the_environment(workers):
  def make(fault):
    return vector_env.VectorEnv([toy.Counter, functools.partial(toy.Faulty, fault)], workers)

  with pytest.raises(ValueError, match="faulty") as caught:
    make("constructor")
  assert "Environment 1" in str(caught.value.__cause__)
  envs = make("reset")
  with pytest.raises(ValueError, match="faulty") as caught:
    envs.reset()
  assert "Environment 1" in str(caught.value.__cause__)
  envs.close()


def test_error_names_the_environment_of_a_misshapen_observation(workers):
  envs = vector_env.VectorEnv(
    [toy.Counter, functools.partial(faulty_envs.WrongShapeOrType, "observ")], workers
  )
  envs.reset()
  with pytest.raises(ValueError) as caught:
    envs.step(np.zeros((2, 1)))
  assert "Environment 1 ('WrongShapeOrType') failed in its observation" in str(
    caught.value.__cause__
  )
  envs.close()


def test_different_spaces_are_refused(workers):
  with pytest.raises(ValueError, match="must have equal spaces"):
    vector_env.VectorEnv([toy.Counter, toy.Target], workers)


def test_unsupported_spaces_are_refused():
  text = gymnasium.spaces.Text(3)
  with pytest.raises(TypeError, match="Text.*is not supported"):
    vector_env.VectorEnv([functools.partial(RandomInfos, text)])
  with pytest.raises(TypeError, match="Text.*is not supported"):
    vector_env.VectorEnv([functools.partial(RandomInfos, action=text)])


def _pids(envs):
  return list(dict.fromkeys(envs.call("pid")))


def test_killed_worker_raises_and_all_processes_end():
  envs = vector_env.VectorEnv([faulty_envs.ProcessInfo] * 4, 2)
  pids = _pids(envs)
  envs.reset()
  os.kill(pids[1], signal.SIGKILL)
  with pytest.raises(process.WorkerDied, match="Worker 1.*SIGKILL"):
    envs.step(np.zeros((4, 1)))
  envs.close()
  assert envs.closed
  assert not scripts.wait_for_exit(pids, 1)


def test_killed_worker_raises_although_the_pool_tolerates_failures():
  with pool_lib.WorkerPool(2, failure_budget=failure_budget.FailureBudget(9)) as workers:
    envs = vector_env.VectorEnv([toy.Counter] * 4, workers)
    envs.reset()
    os.kill(workers.pids[0], signal.SIGKILL)
    with pytest.raises(process.WorkerDied, match="Worker 0.*SIGKILL"):
      envs.step(np.zeros((4, 1)))
    envs.close()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "del"])
def test_closing_leaves_no_process_and_no_open_file(end):
  gc.collect()
  before = len(os.listdir("/proc/self/fd"))
  envs = vector_env.VectorEnv([faulty_envs.ProcessInfo] * 4, 2)
  pids = _pids(envs)
  envs.reset()
  if end == "close":
    envs.close()
    envs.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
      envs.step(np.zeros((4, 1)))
  del envs
  gc.collect()
  assert not scripts.wait_for_exit(pids, 1)
  assert len(os.listdir("/proc/self/fd")) == before


def test_script_that_does_not_close_leaves_no_process(tmp_path):
  stdout, stderr = scripts.run(
    """
from agents.environments.adapters import vector_env
from tests.environments import faulty_envs
envs = vector_env.VectorEnv([faulty_envs.ProcessInfo] * 2, 2)
envs.reset()
print(*envs.call("pid"))
""",
    tmp_path,
  )
  assert not stderr
  assert not scripts.wait_for_exit(map(int, stdout.split()), 5)


@pytest.mark.slow
def test_closing_does_not_wait_for_a_hanging_environment(deadline):
  deadline(30)

  class Hanging(toy.Faulty):
    def __init__(self):
      super().__init__("hang")

    def pid(self):
      return os.getpid()

  envs = vector_env.VectorEnv([Hanging] * 2, 2)
  pids = _pids(envs)
  envs.reset()
  envs.step(np.zeros((2, 1)))

  def interrupt(*_):
    raise KeyboardInterrupt

  before = signal.signal(signal.SIGUSR1, interrupt)
  killer = subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -USR1 {os.getpid()}"])
  with pytest.raises(KeyboardInterrupt):
    envs.step(np.zeros((2, 1)))
  signal.signal(signal.SIGUSR1, before)
  killer.wait()
  start = time.monotonic()
  envs.close()
  assert time.monotonic() - start < 10
  assert not scripts.wait_for_exit(pids, 1)


def test_infos_that_cannot_be_pickled_arrive_as_text(pool):
  class UnpicklableInfo(toy.Counter):
    def step(self, action):
      *rest, info = super().step(action)
      return *rest, {**info, "unpicklable": (number for number in ())}

  envs = vector_env.VectorEnv([UnpicklableInfo] * 2, pool)
  envs.reset()
  *_, infos = envs.step(np.zeros((2, 1)))
  envs.close()
  assert infos["step"].tolist() == [1, 1]
  assert all("generator" in text for text in infos["unpicklable"])


def test_vector_envs_share_workers_that_stay_alive(pool):
  envs = [vector_env.VectorEnv([faulty_envs.ProcessInfo] * 2, pool) for _ in range(2)]
  assert _pids(envs[0]) == _pids(envs[1]) == pool.pids
  envs[0].close()
  envs[1].reset()
  envs[1].close()
  assert not pool.refusal


def test_number_of_processes_is_at_most_the_number_of_environments():
  envs = vector_env.VectorEnv([faulty_envs.ProcessInfo] * 2, 5)
  assert len(_pids(envs)) == 2
  envs.close()


def test_tensorflow_is_not_imported():
  code = (
    "import sys; from agents.environments.adapters import vector_env; "
    "assert 'tensorflow' not in sys.modules"
  )
  subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("workers", [0, 2])
def test_final_infos_are_copies_of_a_reused_dictionary(workers):
  constructors = [faulty_envs.SameInfo] * 2
  with contextlib.closing(vector_env.VectorEnv(constructors, workers, _MODES.SAME_STEP)) as envs:
    envs.reset()
    for _ in range(3):
      *_, infos = envs.step(np.zeros((2, 1)))
  assert infos["final_info"]["step"].tolist() == [3, 3]
  assert infos["step"].tolist() == [0, 0]


class EchoesAction(gymnasium.Env):
  """Observes the latest action; the keys of its spaces are not sorted."""

  # `Dict` sorts the keys of a plain dict, but not keyword arguments.
  observation_space = action_space = gymnasium.spaces.Dict(
    z=gymnasium.spaces.Box(-1, 1, (2,)),
    a=gymnasium.spaces.Box(-1, 1, (2,)),
    b=gymnasium.spaces.Box(-1, 1, (3,)),
  )

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return {
      key: np.zeros(space.shape, np.float32) for key, space in self.observation_space.items()
    }, {}

  def step(self, action):
    return copy.deepcopy(action), 0.0, False, False, {}


def test_dicts_with_unsorted_keys_are_not_mixed_up():
  envs = vector_env.VectorEnv([EchoesAction] * 2, 0)
  envs.reset(seed=0)
  envs.action_space.seed(0)
  action = envs.action_space.sample()
  observ, *_ = envs.step(action)
  envs.close()
  assert observ.keys() == action.keys() == {"z", "a", "b"}
  for key, value in action.items():
    np.testing.assert_array_equal(observ[key], value, err_msg=key)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_spaces_may_have_different_bounds(num_workers):
  def make(high):
    env = toy.Target()
    env.observation_space = gymnasium.spaces.Box(-high, high, (1,), np.float32)
    return env

  constructors = [functools.partial(make, high) for high in (1, 2)]
  expected = vector.SyncVectorEnv(constructors, observation_mode="different")
  with contextlib.closing(
    vector_env.VectorEnv(constructors, num_workers, observation_mode="different")
  ) as envs:
    assert envs.observation_space == expected.observation_space
    assert envs.single_observation_space == expected.single_observation_space
    np.testing.assert_array_equal(envs.reset(seed=3)[0], expected.reset(seed=3)[0])
  spaces = gymnasium.spaces.Box(-9, 9, (2, 1)), gymnasium.spaces.Box(-9, 9, (1,))
  with contextlib.closing(
    vector_env.VectorEnv(constructors, num_workers, observation_mode=spaces)
  ) as envs:
    assert (envs.observation_space, envs.single_observation_space) == spaces


def test_unknown_observation_modes_are_refused():
  with pytest.raises(ValueError, match="'same', 'different' or a tuple"):
    vector_env.VectorEnv([toy.Target], 0, observation_mode="equal")


def test_observations_without_copy_change_in_later_steps():
  with contextlib.closing(vector_env.VectorEnv([toy.Counter] * 2, 0, copy=False)) as envs:
    first, _ = envs.reset(seed=3)
    assert first[:, 1].tolist() == [0, 0]
    second = envs.step(np.zeros((2, 1), np.float32))[0]
    assert second is first and first[:, 1].tolist() == [1, 1]


def test_steps_that_exceed_the_timeout_are_errors():
  constructor = functools.partial(toy.Faulty, "hang", 9)
  with contextlib.closing(vector_env.VectorEnv([constructor], 1, timeout=1.0)) as envs:
    envs.reset(seed=0)
    actions = np.zeros((1, 1), np.float32)
    envs.step(actions)
    with pytest.raises(process.WorkerDied, match="gave no answer for 1 seconds"):
      envs.step(actions)


@pytest.mark.parametrize(
  "env_id, num_envs, num_processes", [("CartPole-v1", 8, 0), ("Ant-v5", 16, 2)]
)
def test_processes_are_started_only_if_they_save_time(env_id, num_envs, num_processes, monkeypatch):
  monkeypatch.setattr(pool_lib, "num_cores", lambda: 2)
  with contextlib.closing(vector_env.make_vec(env_id, num_envs, max_episode_steps=7)) as envs:
    assert envs.num_envs == num_envs
    is_remote = isinstance(envs.block, pool_lib.RemoteBlock)
    assert is_remote == bool(num_processes)
    envs.reset(seed=0)
    results = [envs.step(envs.action_space.sample()) for _ in range(7)]
    assert (results[-1][2] | results[-1][3]).all()


def test_make_vec_passes_options_to_the_vector():
  with contextlib.closing(
    vector_env.make_vec("Pendulum-v1", 3, workers=0, autoreset_mode="SameStep", g=5.0)
  ) as envs:
    assert envs.metadata["autoreset_mode"] is _MODES.SAME_STEP
    assert envs.get_attr("g") == (5.0,) * 3


def test_a_timeout_needs_processes(pool):
  for workers in (0, pool):
    with pytest.raises(ValueError, match="needs processes of this vector"):
      vector_env.VectorEnv([toy.Target], workers, timeout=1.0)
  with contextlib.closing(vector_env.make_vec("CartPole-v1", 2, timeout=9.0)) as envs:
    assert isinstance(envs.block, pool_lib.RemoteBlock)
