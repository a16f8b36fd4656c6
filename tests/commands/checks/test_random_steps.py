"""Recorded steps are complete, and later steps do not change them."""

from agents.commands.checks import random_steps
from tests import toy
from tests.environments import faulty_envs


def test_steps_and_resets_are_counted_separately():
  steps = random_steps.play(toy.Counter(length=2), 0, 3)
  assert [step.place for step in steps] == ["reset 1", "step 1", "step 2", "reset 2", "step 3"]


def test_recorded_copies_do_not_change():
  steps = random_steps.play(faulty_envs.Reusing(), 0, 3)
  assert [int(step.copy[1]) for step in steps] == [0, 1, 2, 3]
  assert all(step.observ is steps[0].observ for step in steps)


def test_equal_seeds_give_equal_actions():
  space = toy.Counter().action_space
  first, second, other = (random_steps.actions(space, seed, (5, 2)) for seed in (0, 0, 1))
  assert first.shape == (5, 2, 1)
  assert (first == second).all() and (first != other).any()
