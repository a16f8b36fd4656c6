"""Domain randomization changes the simulation in every episode."""

import gymnasium
import mujoco
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.making import domain_randomization, make
from tests import toy

_HALF, _TWICE = (0.5, 0.5), (2.0, 2.0)


def _make(task="Hopper-v5", **ranges):
  return domain_randomization.DomainRandomization(gymnasium.make(task), **ranges)


def _play(env, seed=3, num_steps=30):
  """Returns observations, rewards and infos of an episode."""
  env.action_space.seed(0)
  observ, info = env.reset(seed=seed)
  results = [(observ, 0.0, info)]
  for _ in range(num_steps):
    observ, reward, _, _, info = env.step(env.action_space.sample())
    results.append((observ, reward, info))
  return results


@pytest.mark.parametrize(
  "name, fields",
  [
    ("friction", ["geom_friction"]),
    ("mass", ["body_mass", "body_inertia", "body_subtreemass"]),
    ("motor", ["actuator_gainprm"]),
    ("damping", ["dof_damping"]),
  ],
)
def test_a_factor_multiplies_fields_of_the_model(name, fields):
  original, env = gymnasium.make("Ant-v5"), _make("Ant-v5", **{name: _TWICE})
  for seed in (0, 1):  # Factors of earlier episodes don't accumulate.
    _, info = env.reset(seed=seed)
    assert info[f"randomization_{name}"] == 2
    for field in fields:
      expected = 2 * getattr(original.unwrapped.model, field)
      np.testing.assert_allclose(getattr(env.unwrapped.model, field), expected, rtol=1e-12)


def test_gravity_is_multiplied():
  env = _make("Ant-v5", gravity=_HALF)
  env.reset(seed=0)
  np.testing.assert_allclose(env.unwrapped.model.opt.gravity, [0, 0, -9.81 / 2])


def test_constants_that_depend_on_masses_are_those_of_a_compiled_model(tmp_path):
  """Compares with a model that was compiled with twice the density."""
  path = gymnasium.make("Hopper-v5").unwrapped.fullpath
  spec = mujoco.MjSpec.from_file(path)
  for geom in spec.geoms:
    geom.density *= 2
  expected, env = spec.compile(), _make(mass=_TWICE)
  env.reset(seed=0)
  for field in ("body_mass", "body_invweight0", "dof_invweight0", "dof_M0", "actuator_acc0"):
    np.testing.assert_allclose(
      getattr(env.unwrapped.model, field), getattr(expected, field), rtol=1e-6, err_msg=field
    )


def test_payload_is_a_point_mass_on_the_first_body():
  """Compares with a model that was compiled with the payload."""
  path = gymnasium.make("Hopper-v5").unwrapped.fullpath
  original, spec = mujoco.MjModel.from_xml_path(path), mujoco.MjSpec.from_file(path)
  total = original.body_mass.sum()
  torso = spec.body("torso")
  torso.mass, torso.ipos = original.body_mass[1] + total / 2, original.body_ipos[1]
  torso.inertia, torso.iquat = original.body_inertia[1], original.body_iquat[1]
  torso.explicitinertial = True
  spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
  expected, env = spec.compile(), _make(payload=_HALF)
  env.reset(seed=0)
  for field in ("body_mass", "body_inertia", "body_invweight0", "dof_M0", "body_subtreemass"):
    np.testing.assert_allclose(
      getattr(env.unwrapped.model, field), getattr(expected, field), rtol=1e-6, err_msg=field
    )


def test_payload_is_added_to_a_scaled_mass():
  original, env = (
    gymnasium.make("Ant-v5").unwrapped.model,
    _make("Ant-v5", mass=_TWICE, payload=_HALF),
  )
  for seed in (0, 1):
    env.reset(seed=seed)
    added = env.unwrapped.model.body_mass - 2 * original.body_mass
    assert added[1] == pytest.approx(original.body_mass.sum() / 2)
    assert not added[2:].any()


@pytest.mark.parametrize("name, value", domain_randomization.NOMINAL.items())
def test_nominal_values_do_not_change_episodes(name, value):
  plain, nominal = gymnasium.make("Hopper-v5"), _make(**{name: (value, value)})
  for (observ, reward, _), (other_observ, other_reward, _) in zip(_play(plain), _play(nominal)):
    np.testing.assert_array_equal(observ, other_observ)
    assert reward == other_reward


def test_latency_delays_actions():
  env = _make(latency=(2, 2))
  env.reset(seed=0)
  applied = []
  for action in ([0.1] * 3, [0.2] * 3, [0.3] * 3):
    env.step(np.array(action, np.float32))
    applied.append(env.unwrapped.data.ctrl[0])
  assert applied == pytest.approx([0, 0, 0.1])


def test_noise_has_the_drawn_standard_deviation():
  plain, noisy = _make(friction=(1, 1)), _make(noise=(0.3, 0.3))
  differences = np.concatenate(
    [np.subtract(a[0], b[0]) for a, b in zip(_play(plain, 3, 300), _play(noisy, 3, 300))]
  )
  assert np.std(differences) == pytest.approx(0.3, rel=0.05)
  assert abs(np.mean(differences)) < 0.03


def test_noise_is_added_to_all_parts_of_a_dict():
  envs = [
    domain_randomization.DomainRandomization(
      make.MakeEnv(config_lib.Env("robots/go1-v0", {"noise": 0.0}))(), **ranges
    )
    for ranges in ({"friction": (1, 1)}, {"noise": (0.3, 0.3)})
  ]
  for part in "state", "privileged_state":
    observations = [[step[0][part] for step in _play(env)] for env in envs]
    assert np.std(np.subtract(*observations)) == pytest.approx(0.3, rel=0.1), part


@pytest.mark.parametrize("task, joints", [("Hopper-v5", 1), ("Ant-v5", 2)])
def test_pushes_change_the_velocity_at_regular_steps(task, joints):
  plain, pushed = _make(task, friction=(1, 1)), _make(task, push=(0.7, 0.7), push_every=10)
  velocities = []
  for env in (plain, pushed):
    step, before = env.unwrapped.do_simulation, []

    def simulate(*args, env=env, step=step, before=before):
      before.append(env.unwrapped.data.qvel.copy())
      step(*args)

    env.unwrapped.do_simulation = simulate
    _play(env, num_steps=10)
    velocities.append(np.array(before))
  difference = velocities[1] - velocities[0]
  assert not difference[:-1].any()
  assert np.linalg.norm(difference[-1, :joints]) == pytest.approx(0.7)
  assert not difference[-1, joints:].any()


def test_the_seed_determines_episodes():
  ranges = dict(
    friction=(0.5, 1.5), mass=(0.8, 1.2), motor=(0.8, 1.2), damping=(0.5, 2), gravity=(0.9, 1.1)
  )
  ranges |= dict(payload=(0, 0.5), latency=(0, 3), noise=(0, 0.1), push=(0, 1), push_every=7)
  first, second = _make(**ranges), _make(**ranges)
  _play(second, seed=9)  # Earlier episodes have no influence.
  drawn = set()
  for seed in range(3):
    one, other = _play(first, seed), _play(second, seed)
    for (observ, reward, info), (other_observ, other_reward, other_info) in zip(one, other):
      np.testing.assert_array_equal(observ, other_observ)
      assert (reward, info) == (other_reward, other_info)
    values = [value for key, value in one[-1][2].items() if key.startswith("randomization_")]
    assert len(values) == 9
    drawn.add(tuple(values))
  assert len(drawn) == 3


def test_values_lie_in_their_ranges():
  env = _make(friction=(0.5, 1.5), latency=(1, 3))
  infos = [env.reset(seed=seed)[1] for seed in range(100)]
  friction = np.array([info["randomization_friction"] for info in infos])
  assert 0.5 <= friction.min() < 0.55 and 1.45 < friction.max() <= 1.5
  assert {info["randomization_latency"] for info in infos} == {1, 2, 3}


def test_observed_values_are_a_part_of_the_observation():
  env = _make(mass=(0.8, 1.2), gravity=(0.9, 1.1), observe=True)
  for observ, _, info in _play(env):
    assert env.observation_space.contains(observ)
    assert observ["randomization"] == pytest.approx(
      [info["randomization_mass"], info["randomization_gravity"]]
    )


@pytest.mark.parametrize(
  "ranges, message",
  [
    ({}, "needs a range"),
    ({"mass": (0, 1)}, r"`mass` must be \[low, high\].*greater than 0"),
    ({"friction": (-0.1, 1)}, "`friction` .*at least 0"),
    ({"damping": (2, 1)}, "low <= high"),
    ({"motor": 1.5}, r"Received: 1.5"),
    ({"motor": (1, float("inf"))}, "`motor`"),
    ({"latency": (0, 1.5)}, "whole numbers"),
    ({"push": (0, 1), "push_every": 0}, "push_every must be at least 1"),
    ({"gravity": (1, 1e300)}, "becomes unstable"),
  ],
)
def test_invalid_ranges_are_errors(ranges, message):
  with pytest.raises(ValueError, match=message):
    _make(**ranges)


def test_other_environments_are_errors():
  with pytest.raises(TypeError, match="needs a MuJoCo environment, not Target"):
    domain_randomization.DomainRandomization(toy.Target(), mass=(1, 2))


def test_separate_steps_are_noted():
  for ranges, noted in (({"mass": [0.8, 1.2]}, False), ({"noise": [0, 0.1]}, True)):
    env = config_lib.Env("Hopper-v5", wrappers=({"DomainRandomization": ranges},))
    assert any("separate steps" in note for note in make.check(env)) == noted
