"""Vector environments step the batch in each mode of autoreset."""

import importlib.util

import numpy as np
import pytest

from agents import build, errors
from agents import config as config_lib
from agents.environments import backends, batch_env
from agents.environments.making import make
from agents.videos import renderer, video
from tests.training import scored
from tests.videos import canvas

_MODES = "NextStep", "SameStep", "Disabled"
_COUNTERS = "tests.environments.blocks.vectors:counters"


def _env(name=_COUNTERS, **kwargs):
  return config_lib.Env(name, kwargs, backend="vector")


def _batch(env, size=3, seed=4):
  config = config_lib.Config(env)
  return batch_env.BatchEnv(
    make.constructors(env, size, 0), None, seed, block_class=backends.block_class(config)
  )


def _counts(observ, parts):
  return observ["count"][:, 1] if parts else observ[:, 1]


@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("mode", _MODES)
def test_steps_are_those_of_the_environments(mode, parts, truncates):
  """Compares with counters whose episodes have 2, 3 and 4 steps."""
  lengths = np.array([2, 3, 4])
  with _batch(_env(mode=mode, parts=parts, truncates=truncates)) as batch:
    assert (_counts(batch.reset(), parts) == 0).all()
    count, waits = np.zeros(3, int), np.zeros(3, bool)
    episodes = []
    for _ in range(25):
      action = np.zeros(3, batch.action_layout.fields[0].dtype) if parts else np.zeros((3, 1))
      step = batch.step(action.astype(np.float32) if not parts else action)
      count = np.where(waits, 0, count + 1)
      ended = count == lengths
      np.testing.assert_array_equal(step.valid, ~waits)
      np.testing.assert_array_equal(step.terminated, ended & (not truncates))
      np.testing.assert_array_equal(step.truncated, ended & truncates)
      np.testing.assert_array_equal(step.reward, np.where(waits, 0, count))
      valid = ~waits
      np.testing.assert_array_equal(_counts(step.next_observ, parts)[valid], count[valid])
      if mode == "NextStep":
        waits = ended
      else:
        count[ended] = 0
      np.testing.assert_array_equal(_counts(step.observ, parts), count)
      if parts:
        np.testing.assert_array_equal(step.observ["even"], count % 2)
      episodes += batch.take_finished()
  assert {episode.environment for episode in episodes} == {0, 1, 2}
  for episode in episodes:
    length = lengths[episode.environment]
    assert episode.length == length and episode.score == length * (length + 1) / 2
    # The environment reports half of each reward as a part.
    assert episode.info["reward_parts"] == {"reward_part": episode.score / 2}
    assert episode.info["step"] == length


@pytest.mark.parametrize("mode", _MODES)
def test_evaluations_use_separate_vectors_of_one_environment(mode):
  env = make.MakeEnv(_env(mode=mode, parts=True))()
  for seed in (3, 5):
    observ, _ = env.reset(seed=seed)
    assert env.observation_space.contains(observ)
    for step in (1, 2):
      observ, reward, terminated, truncated, info = env.step(env.action_space.sample())
      assert observ["count"].tolist() == [seed, step] and reward == step
      assert terminated == (step == 2) and not truncated
      assert info["reward_part"] == step / 2


def test_films_show_a_separate_vector_of_one_environment():
  constructor = make.MakeEnv(_env("tests.environments.blocks.vectors:canvases"), "rgb_array")
  tile = video.Tile(canvas.episode(0.5, 1.0))
  film = renderer.VideoRenderer(video.Video("", (tile,)), constructor, None)
  frames = list(film.frames())
  assert film.problem() == ""
  # Frames have a gray level of 10 times the number of steps.
  assert [canvas.brightness(frame) for frame in frames] == [10, 20]


def _config(env, **changes):
  return config_lib.Config(env).override(
    {
      "num_envs": 16,
      "algorithm.segment_length": 16,
      "algorithm.minibatch_size": 64,
      "eval_episodes": 2,
      **changes,
    }
  )


_TASKS = {
  "gymnasium": _env("CartPole-v1"),
  "jax": _env("phys2d/CartPole-v1"),
  "envpool": _env("tests.environments.blocks.vectors:envpool_cartpole"),
}
_PACKAGES = {"gymnasium": "gymnasium", "jax": "jax", "envpool": "envpool"}


@pytest.mark.slow
@pytest.mark.parametrize("name", _TASKS)
def test_cartpole_is_learned(name):
  if not importlib.util.find_spec(_PACKAGES[name]):
    pytest.skip("A required package is not installed.")
  config = _config(_TASKS[name], **{"steps": 15_000, "algorithm.learning_rate": 2e-3})
  assert backends.check(config)
  trainer = build.trainer(config, None)
  trainer.start()
  scores, done = [], 0
  while done < config.steps:
    epoch = trainer.epoch(done / config.steps)
    done += epoch.steps
    scores += scored.scores(epoch)
  assert np.mean(scores[:20]) < 60 and np.mean(scores[-10:]) > 150
  # Evaluations use another environment.
  assert np.mean(trainer.evaluate(2, lambda: False).scores) > 200
  trainer.close()


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_learning_ignores_the_steps_that_only_reset():
  config = _config(_env(), num_envs=3, **{"algorithm.minibatch_size": None})
  trainer = build.trainer(config, None)
  trainer.start()
  epoch = trainer.epoch(0.0)
  # Episodes have 2, 3 and 4 steps, and then one step without effect.
  ignored = sum(range(16).count(step) for step in ())
  for length in (2, 3, 4):
    ignored += sum(1 for step in range(16) if step % (length + 1) == length)
  assert epoch.steps == 3 * 16 - ignored
  trainer.close()


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_a_loaded_run_begins_new_episodes():
  config = _config(_env(), num_envs=3, **{"algorithm.minibatch_size": None})
  first, second = (build.trainer(config, None) for _ in range(2))
  first.start()
  first.epoch(0.0)
  second.load(first.state())
  epoch = second.epoch(0.5)
  assert epoch.finite_weights and {episode.length for episode in epoch.episodes} == {2, 3, 4}
  for trainer in (first, second):
    trainer.close()


@pytest.mark.parametrize(
  "fault, message",
  [
    ("mode", r"metadata\['autoreset_mode'\] is None. Set it"),
    ("size", "num_envs=4, but the argument was num_envs=3"),
    ("float64", "type float64, but their space has .* float32"),
    ("shape", r"have shape \(3, 1\)"),
    ("first nan", "contain NaN"),
    ("reward", r"`reward` with shape \(3, 1\)"),
    ("flags", "`terminated` .*Return bool"),
    ("infos", "'x' is an array of objects"),
  ],
)
def test_wrong_results_are_errors_before_the_first_step(fault, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    _batch(_env("tests.environments.blocks.vectors:Faulty", fault=fault)).reset()


def test_reward_parts_of_steps_that_only_reset_do_not_count():
  with _batch(_env("tests.environments.blocks.vectors:Faulty", fault="late infos")) as batch:
    batch.reset()
    for _ in range(8):
      batch.step(np.zeros(3, np.int64))
    episodes = batch.take_finished()
  # The check before the first step has counted once.
  assert [episode.length for episode in episodes] == [2] * 9
  assert {episode.info["reward_parts"]["reward_part"] for episode in episodes} == {2.0}


@pytest.mark.parametrize(
  "fault, message", [("crash", "No more steps."), ("nan", "not finite for environment 0, step 3")]
)
def test_later_faults_name_the_environment(fault, message):
  with _batch(_env("tests.environments.blocks.vectors:Faulty", fault=fault)) as batch:
    batch.reset()
    with pytest.raises(errors.EnvironmentsError, match=message):
      for _ in range(5):
        batch.step(np.zeros(3, np.int64))


@pytest.mark.parametrize(
  "name, message",
  [
    ("Pendulum-v1", "has no vector environment. Name an id"),
    ("tests.environments.blocks.vectors:wrapped", "have the wrapper `Autoreset`"),
    ("tests.toy:Counter", "has no vector environment"),
  ],
)
def test_other_environments_are_errors(name, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    _batch(_env(name))


def test_functions_need_a_return_annotation():
  with pytest.raises(config_lib.ConfigError, match="return annotation"):
    make.check(_env("tests.environments.blocks.vectors:unnamed"))


@pytest.mark.parametrize(
  "changes, message",
  [
    (
      {"algorithm.segment_length": None, "algorithm.update_every": 64},
      "set algorithm.segment_length",
    ),
    ({"env.max_length": 50}, "does not declare"),
    ({"env.action_repeat": 2}, "env.action_repeat needs"),
    ({"video_every": 1000}, "video_every needs replays"),
  ],
)
def test_unsupported_settings_are_errors(changes, message):
  config = config_lib.Config(_env("CartPole-v1")).override(changes)
  with pytest.raises(config_lib.ConfigError, match=message):
    backends.check(config)
