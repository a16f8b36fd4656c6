"""EnvPoolBlock steps EnvPool's environments like Gymnasium's environments."""

import functools

import gymnasium
import numpy as np
import pytest

from agents import build
from agents import config as config_lib
from agents.commands import replay, visualize
from agents.environments import batch_env
from agents.environments.blocks import base, envpool_block
from agents.environments.data import episode_data, failure_budget
from agents.environments.making import action_scaling, make
from agents.training.faults import crash_folder
from agents.training.run_folder import run_folder

pytest.importorskip("envpool")


def _constructor(env_id, **options):
  return make.MakeEnv(config_lib.Env(env_id, backend="envpool", **options))


def _batch(env_id, size=4, seed=0, **options):
  return batch_env.BatchEnv(
    [_constructor(env_id, **options)] * size, seed=seed, block_class=envpool_block.EnvPoolBlock
  )


def _actions(batch, steps, seed=0):
  field = batch.action_layout.fields[0]
  random = np.random.default_rng(seed)
  shape = steps, len(batch), *field.shape[1:]
  if field.dtype == np.int64:
    return random.integers(int(batch.action_space.n), size=shape)
  return random.uniform(-1, 1, shape).astype(np.float32)


def test_pendulum_equals_gymnasium():
  env = gymnasium.make("Pendulum-v1").unwrapped
  env.reset(seed=0)
  convert = action_scaling.action_converter(env.action_space)
  with _batch("Pendulum-v1", 3) as batch:
    observ = batch.reset()
    for action in _actions(batch, 50):
      step = batch.step(action)
      for row in range(3):
        cos, sin, velocity = observ[row].astype(np.float64)
        env.state = np.array([np.arctan2(sin, cos), velocity])
        expected, reward, *_ = env.step(convert(action)[row])
        np.testing.assert_allclose(step.observ[row], expected, atol=1e-4)
        np.testing.assert_allclose(step.reward[row], reward, atol=1e-4)
      observ = step.observ


@pytest.mark.parametrize("env_id, tolerance", [("HalfCheetah-v5", 1e-3), ("Hopper-v5", 1e-3)])
def test_mujoco_physics_and_rewards_equal_gymnasium(env_id, tolerance):
  env = gymnasium.make(env_id).unwrapped
  env.reset(seed=0)
  with _batch(env_id, 1) as batch:
    observ = batch.reset()[0]
    for action in _actions(batch, 10):
      # The unobserved x position does not affect the physics.
      state = np.concatenate([[0.0], observ.astype(np.float64)])
      env.set_state(state[: env.model.nq], state[env.model.nq :])
      expected, reward, *_ = env.step(action[0])
      step = batch.step(action)
      np.testing.assert_allclose(step.observ[0], expected, rtol=tolerance, atol=tolerance)
      np.testing.assert_allclose(step.reward[0], reward, rtol=1e-2, atol=tolerance)
      observ = step.observ[0]


def test_terminated_steps_have_the_true_last_observation():
  with _batch("CartPole-v1", 8) as batch:
    batch.reset()
    num_ended = 0
    for action in _actions(batch, 100):
      step = batch.step(action)
      assert step.valid.all() and (step.reward == 1).all()
      assert not step.truncated.any()
      fallen = (np.abs(step.next_observ[:, 0]) > 2.4) | (np.abs(step.next_observ[:, 2]) > 0.2095)
      np.testing.assert_array_equal(step.terminated, fallen)
      # `observ` is the first observation of the next episode.
      assert (np.abs(step.observ[fallen]) <= 0.05).all()
      running = ~fallen
      np.testing.assert_array_equal(step.observ[running], step.next_observ[running])
      num_ended += fallen.sum()
    finished = batch.take_finished()
    assert len(finished) == len(batch.take_final_observ()) == num_ended > 10
    lengths = [episode.length for episode in finished]
    assert [episode.score for episode in finished] == lengths
    assert min(lengths) >= 8


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "HalfCheetah-v5"])
def test_max_length_truncates_episodes(env_id):
  with _batch(env_id, 3, max_length=7) as batch:
    batch.reset()
    for count, action in enumerate(_actions(batch, 21), 1):
      step = batch.step(action)
      assert not step.terminated.any()
      assert step.truncated.all() == step.truncated.any() == (count % 7 == 0)
    assert [episode.length for episode in batch.take_finished()] == [7] * 9


def test_max_length_truncates_episodes_of_tasks_that_ignore_it_in_envpool():
  with _batch("CliffWalking-v1", 3, max_length=7) as batch:
    batch.reset()
    for count in range(1, 22):
      step = batch.step(np.zeros(3, np.int64))  # Moves up, away from the cliff.
      assert not step.terminated.any()
      assert step.truncated.all() == step.truncated.any() == (count % 7 == 0)
    finished = batch.take_finished()
    assert [episode.length for episode in finished] == [7] * 9
    assert not any("cut_short" in episode.info for episode in finished)


def test_endless_episodes_are_truncated_at_the_default_limit(monkeypatch):
  monkeypatch.setattr(make, "DEFAULT_MAX_LENGTH", 20)
  with _batch("CliffWalking-v1", 2) as batch:
    batch.reset()
    for _ in range(40):
      batch.step(np.zeros(2, np.int64))
    assert [episode.length for episode in batch.take_finished()] == [20] * 4


def test_episodes_of_hopper_end_by_termination_and_by_truncation():
  with _batch("Hopper-v5", 4, max_length=15) as batch:
    batch.reset()
    num_ended = np.zeros(2, int)  # Terminated and truncated episodes.
    for action in _actions(batch, 100):
      step = batch.step(action)
      assert not (step.terminated & step.truncated).any()
      height, angle = step.next_observ[:, 0], step.next_observ[:, 1]
      fallen = (height <= 0.7) | (np.abs(angle) >= 0.2)
      # EnvPool does not report terminations at the time limit.
      np.testing.assert_array_equal(step.terminated, fallen & ~step.truncated)
      num_ended += step.terminated.sum(), step.truncated.sum()
    assert num_ended.all()


def test_reward_parts_are_summed():
  with _batch("HalfCheetah-v5", 2, max_length=5) as batch:
    batch.reset()
    for action in _actions(batch, 10):
      batch.step(action)
    finished = batch.take_finished()
    assert len(finished) == 4
    for episode in finished:
      parts = episode.info["reward_parts"]
      assert sum(parts.values()) == pytest.approx(episode.score, abs=1e-4)
      assert episode.info["elapsed_step"] == 5


def test_nested_observations_are_those_of_single_environments():
  seeds = [episode_data.episode_seed(5, index, 0) for index in range(3)]
  envs = [_constructor("Parking-v0")() for _ in seeds]
  with _batch("Parking-v0", 3, seed=5) as batch:
    observs = [batch.reset()]
    expected = [[env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)]]
    convert = action_scaling.action_converter(batch.action_space)
    for action in _actions(batch, 5):
      step = batch.step(action)
      observs.append(step.next_observ)
      results = [env.step(row) for env, row in zip(envs, convert(action), strict=True)]
      expected.append([result[0] for result in results])
      np.testing.assert_array_equal(step.reward, np.float32([result[1] for result in results]))
  for observ, parts in zip(observs, expected, strict=True):
    assert set(observ.dtype.names) == {"observation", "achieved_goal", "desired_goal"}
    for row, part in enumerate(parts):
      for key, values in part.items():
        np.testing.assert_array_equal(observ[key][row], np.float32(values))


def test_terminations_at_the_time_limit_are_reported_if_the_info_has_them():
  # These actions let the robot fall after 7 steps.
  actions = np.where(np.arange(12) % 3 == 1, 1.0, -1.0).astype(np.float32)
  with _batch("BarkourJoystick-v1", 1, max_length=7) as batch:
    batch.reset()
    for count in range(1, 8):
      step = batch.step(actions[None])
      assert step.terminated[0] == step.truncated[0] == (count == 7)
    (episode,) = batch.take_finished()
  assert {"reward_tracking_lin_vel", "reward_torques"} <= episode.info["reward_parts"].keys()


def test_choices_of_several_numbers_are_counted_from_their_start():
  with _batch("Minesweeper-v0", 2) as batch:
    batch.reset()
    step = batch.step(np.array([[3, 9], [0, 4]]))
    board = step.next_observ["board"]
    assert board[0, 3, 9] != -1 and board[1, 0, 4] != -1


def test_prefix_of_the_id_is_not_part_of_the_task():
  with _batch("envpool:Blackjack-v1", 2) as batch:
    first = batch.reset()
    step = batch.step(np.zeros(2, np.int64))  # Both players stop.
    np.testing.assert_array_equal(step.next_observ[:, 0], first[:, 0])
    assert step.terminated.all() and (np.abs(step.reward) <= 1.5).all()


def test_staggered_first_episodes_are_cut_short():
  constructors = make.staggered(config_lib.Env("Pendulum-v1", backend="envpool"), 4, 7)
  with batch_env.BatchEnv(constructors, seed=7, block_class=envpool_block.EnvPoolBlock) as batch:
    batch.reset()
    for action in _actions(batch, 400):
      batch.step(action)
    finished = batch.take_finished()
    lengths = [episode.length for episode in finished]
    assert sorted(lengths) == [50, 100, 150, *[200] * 5]
    assert sum("cut_short" in episode.info for episode in finished) == 3


def test_inactive_environments_do_not_step():
  with _batch("CartPole-v1", 4) as batch:
    first = batch.reset()
    active = np.array([True, False, True, False])
    step = batch.step(np.zeros(4, int), active)
    np.testing.assert_array_equal(step.valid, active)
    np.testing.assert_array_equal(step.observ[~active], first[~active])
    assert (step.reward == active).all()
    assert (step.observ[active] != first[active]).any(1).all()


def _play(seed, threads=1):
  block = functools.partial(envpool_block.EnvPoolBlock, threads=threads)
  with batch_env.BatchEnv([_constructor("CartPole-v1")] * 4, seed=seed, block_class=block) as batch:
    observs = [batch.reset()]
    observs += [batch.step(action).observ for action in _actions(batch, 60)]
    return np.array(observs)


def test_results_depend_on_the_seed_and_not_on_threads():
  np.testing.assert_array_equal(_play(0), _play(0, threads=3))
  assert (_play(0) != _play(1)).any()


def test_restored_snapshot_begins_new_episodes():
  with _batch("CartPole-v1") as batch:
    first = batch.reset()
    for action in _actions(batch, 30):
      batch.step(action)
    saved = batch.snapshot()
    batch.restore(saved)
    restored = batch.snapshot()
    np.testing.assert_array_equal(restored.episode, saved.episode + 1)
    assert restored.length.max() == restored.score.max() == 0
    assert (np.abs(restored.observ) <= 0.05).all()
    assert (restored.observ != first).any(1).all()
    batch.take_finished()
    for action in _actions(batch, 30):
      batch.step(action)
    finished = batch.take_finished()
    assert all(episode.score == episode.length for episode in finished)


def test_observations_that_are_not_finite_end_the_episode(monkeypatch):
  constructors = [_constructor("Pendulum-v1")] * 3
  for limit in (0, 1):
    with batch_env.BatchEnv(
      constructors,
      block_class=envpool_block.EnvPoolBlock,
      failure_budget=failure_budget.FailureBudget(limit),
    ) as batch:
      batch.reset()
      pool = batch._block._pool

      def recv(reset=False, receive=pool.recv, **kwargs):
        observ, *rest = receive(reset, **kwargs)
        if not reset:
          observ = np.where(np.arange(3)[:, None] == 1, np.nan, observ)
        return observ, *rest

      monkeypatch.setattr(pool, "recv", recv)
      action = np.zeros((3, 1), np.float32)
      if not limit:
        with pytest.raises(base.EnvironmentFailure, match="not finite"):
          batch.step(action)
        continue
      step = batch.step(action)
      assert step.valid.tolist() == [True, False, True]
      assert np.isfinite(step.observ).all() and not step.reward[1]
      assert not batch.take_finished()
      (failure,) = batch.failure_budget.drain()
      assert "Environment 1 ('Pendulum-v1' of EnvPool" in failure.text


@pytest.mark.parametrize(
  "options, message",
  [
    (
      {"id": "CartPole-v1", "kwargs": {"sutton_barto_reward": {"each": [True]}}},
      "env.kwargs.sutton_barto_reward",
    ),
    ({"id": "CartPole-v1", "action_repeat": 2}, "env.action_repeat needs"),
    (
      {"id": "CartPole-v1", "wrappers": ({"FlattenObservation": {}},)},
      "env.wrappers needs env.backend=gymnasium",
    ),
    ({"id": "Nothing-v0"}, "EnvPool has no Nothing-v0"),
    ({"id": "Pendulum-v1", "kwargs": {"g": 9.81}}, "does not take.*'g'"),
    ({"id": "Blackjack-v1"}, r"has the space Box\(.*in EnvPool, but Tuple"),
  ],
)
def test_unsupported_settings_are_errors(options, message):
  env = config_lib.Env(backend="envpool", **options)
  with pytest.raises(config_lib.ConfigError, match=message):
    envpool_block.check(config_lib.Config(env))


def test_videos_of_training_are_errors():
  with pytest.raises(config_lib.ConfigError, match="`visualize` renders the policy"):
    envpool_block.check(
      config_lib.Config(config_lib.Env("CartPole-v1", backend="envpool"), video_every=3)
    )


def test_check_notes_the_limits_of_envpool():
  (note,) = envpool_block.check(config_lib.Config(config_lib.Env("CartPole-v1", backend="envpool")))
  assert "can't repeat an episode" in note


def test_replay_of_an_episode_of_training_is_an_error(tmp_path, capsys):
  config = config_lib.Config(config_lib.Env("CartPole-v1", backend="envpool"))
  folder = run_folder.create(str(tmp_path), "mine", config)
  crash = crash_folder.save(folder, 7, failure_budget.Failure("It failed.", ()))
  for main, args in (
    (visualize.main, ["--logdir", folder.path, "--episode=-1"]),
    (replay.main, [crash]),
  ):
    with pytest.raises(SystemExit, match="2"):
      main(list(map(str, args)))
    assert "as env.backend is envpool" in capsys.readouterr().err


@pytest.mark.slow
def test_cartpole_is_learned_and_training_continues_after_load():
  config = config_lib.Config().override(
    {
      "env.id": "CartPole-v1",
      "env.backend": "envpool",
      "num_envs": 8,
      "algorithm.segment_length": 64,
      "algorithm.learning_rate": 1e-3,
    }
  )
  build.setup(config)
  trainer = build.trainer(config, None)
  try:
    trainer.start()
    scores = [
      np.mean([episode.score for episode in trainer.epoch(0.0).episodes] or [500])
      for _ in range(20)
    ]
    assert np.mean(scores[-3:]) > 3 * scores[0]
    trainer.load(trainer.state())
    epoch = trainer.epoch(0.0)
    assert epoch.steps == 8 * 64
    assert np.mean(trainer.evaluate(4, lambda: False).scores) > 100
  finally:
    trainer.close()
