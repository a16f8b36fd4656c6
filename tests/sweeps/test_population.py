"""Population-based training continues good runs and changes their settings."""

import random

import numpy as np
import optuna
import pytest

from agents import errors
from agents.sweeps import population as population_lib
from agents.sweeps import trial_runner

_SIZE = 8
_POPULATION = population_lib.Population(_SIZE, 3, seed=5)


def _suggest(trial):
  return (
    trial.suggest_float("rate", 1e-4, 1e-2, log=True),
    trial.suggest_int("epochs", 2, 20, step=3),
    trial.suggest_categorical("scale", ["return", "none"]),
  )


def _study(score, num_generations, population=_POPULATION, order=None):
  """Returns a study, the settings and the parents by number of the trial.

  Args:
    score: Function of the number of a trial; None means that the trial failed.
    num_generations: Number of generations to run.
    population: Population of the study.
    order: Changes the order of the trials of a generation.
  """
  study = optuna.create_study(
    direction="maximize", sampler=population_lib.PopulationSampler(population)
  )
  settings, parents = {}, {}
  for generation in range(num_generations):
    numbers = [generation * population.size + member for member in range(population.size)]
    (order or (lambda numbers: None))(numbers)
    for number in numbers:
      study.enqueue_trial({}, {"number": number})
    for _ in numbers:
      trial = study.ask()
      number = trial_runner.first_number(trial)
      parent = population.parent(study, trial)
      parents[number] = parent and trial_runner.first_number(parent)
      settings[number] = _suggest(trial)
      if (value := score(number)) is None:
        trial.set_user_attr("why", "failed")
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
      else:
        study.tell(trial, value)
  return study, settings, parents


def test_worst_quarter_is_replaced_by_copies_of_the_best_quarter():
  _, settings, parents = _study(lambda number: float(number % _SIZE), 2)
  assert all(parents[member] is None for member in range(_SIZE))
  for member in range(2, _SIZE):
    assert parents[_SIZE + member] == member
    assert settings[_SIZE + member] == settings[member]
  for member in (0, 1):
    assert parents[_SIZE + member] in (6, 7)
    assert settings[_SIZE + member] != settings[member]


def test_copies_change_numbers_by_a_fifth_and_stay_within_the_search_space():
  ratios = []
  for seed in range(30):
    population = population_lib.Population(_SIZE, 2, seed)
    _, settings, parents = _study(lambda number: float(number % _SIZE), 2, population)
    for number in (_SIZE, _SIZE + 1):
      rate, epochs, scale = settings[number]
      assert 1e-4 <= rate <= 1e-2 and scale in ("return", "none")
      assert epochs in range(2, 21, 3)
      ratios.append(rate / settings[parents[number]][0])
  changed = [min(abs(ratio - 0.8), abs(ratio - 1.2)) < 1e-9 for ratio in ratios]
  assert 0.5 < np.mean(changed) < 1  # A quarter is drawn anew; some are clipped.


def test_decisions_do_not_depend_on_the_order_in_which_trials_run():
  first, second = (
    _study(lambda number: float(number * 7 % 5), 3, order=order)[1:]
    for order in (None, random.Random(1).shuffle)
  )
  assert first == second
  other_seed = population_lib.Population(_SIZE, 3, seed=6)
  assert _study(lambda number: float(number * 7 % 5), 3, other_seed)[1] != first[0]


def test_failed_runs_are_replaced_even_if_they_are_most_of_the_population():
  _, _, parents = _study(lambda number: 1.0 if number % _SIZE == 3 else None, 2)
  assert [parents[_SIZE + member] for member in range(_SIZE)] == [3] * _SIZE


def test_generation_without_a_complete_run_is_an_error():
  with pytest.raises(errors.RunError, match="All runs of generation 0 have failed"):
    _study(lambda number: None, 2)
