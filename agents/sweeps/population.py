"""Population-based training (Jaderberg et al. 2017, arXiv:1711.09846).

All members of a population train for one generation. Before the next one, a
copy of a random member of the best quarter replaces each member of the worst
quarter, and continues with other settings.
"""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
from optuna import distributions

from agents import errors
from agents.sweeps import study as study_lib
from agents.sweeps import trial_runner

_QUARTER = 4
_FACTORS = 0.8, 1.2  # Changes of numbers; values of the paper.
_RESAMPLE = 0.25  # Probability that a value is drawn from the whole range.

Trial = optuna.Trial | optuna.trial.FrozenTrial


@dataclasses.dataclass(frozen=True)
class Population:
  """Decides which runs continue with which settings.

  Trial `generation * size + member` trains a member in a generation. Decisions
  depend only on the seed and on the scores of the previous generation, so a
  resumed sweep repeats them.
  """

  size: int  # Number of members.
  generations: int
  seed: int

  def parent(self, study: optuna.Study, trial: Trial) -> optuna.trial.FrozenTrial | None:
    """Returns the trial whose run a trial continues.

    Args:
      study: Study of the population.
      trial: Trial of the study.

    Returns:
      Trial of the previous generation, or None in the first generation.

    Raises:
      RunError: If all runs of the previous generation have failed.
    """
    number = trial_runner.first_number(trial)
    generation, member = divmod(number, self.size)
    if not generation:
      return None
    trials = self._generation(study, generation - 1)
    scores = np.array([trial.value if _complete(trial) else -np.inf for trial in trials])
    if np.isneginf(scores).all():
      raise errors.RunError(
        f"All runs of generation {generation - 1} have failed; see output.txt in their folders. "
        "Correct the cause, and start another --study."
      )
    order = np.argsort(scores, kind="stable")
    quarter = max(1, self.size // _QUARTER)
    if member in order[:quarter] or np.isneginf(scores[member]):
      best = [index for index in order[-quarter:] if np.isfinite(scores[index])]
      member = self._random(number, "parent").choice(best)
    return trials[member]

  def setting(
    self,
    study: optuna.Study,
    trial: optuna.trial.FrozenTrial,
    name: str,
    distribution: distributions.BaseDistribution,
  ) -> Any:
    """Returns the value of a setting in a trial.

    Args:
      study: Study of the population.
      trial: Trial of the study.
      name: Dotted key of the setting.
      distribution: Values to try.
    """
    number = trial_runner.first_number(trial)
    random = self._random(number, name)
    parent = self.parent(study, trial)
    if parent and trial_runner.first_number(parent) + self.size == number:
      return parent.params[name]  # The member has not been replaced.
    if parent and random.random() >= _RESAMPLE:
      return _change(parent.params[name], distribution, random)
    sampler = optuna.samplers.RandomSampler(seed=int(random.integers(2**31)))
    return sampler.sample_independent(study, trial, name, distribution)

  def _generation(self, study: optuna.Study, generation: int) -> list[optuna.trial.FrozenTrial]:
    """Returns the ended trials of a generation, in order of the members."""
    trials = {
      trial_runner.first_number(trial): trial
      for trial in study.get_trials(deepcopy=False)
      if study_lib.has_ended(trial)
    }
    first = generation * self.size
    return [trials[number] for number in range(first, first + self.size)]

  def _random(self, number: int, name: str) -> np.random.Generator:
    return np.random.default_rng([self.seed, number, zlib.crc32(name.encode())])


class PopulationSampler(optuna.samplers.BaseSampler):
  """Suggests the settings that a population decides.

  Args:
    population: Population that decides the settings.
  """

  def __init__(self, population: Population) -> None:
    self._population = population

  def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
    """Returns no settings, because all are sampled independently."""
    return {}

  def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
    """Returns no settings, because all are sampled independently."""
    return {}

  def sample_independent(
    self,
    study: optuna.Study,
    trial: optuna.trial.FrozenTrial,
    param_name: str,
    param_distribution: distributions.BaseDistribution,
  ) -> Any:
    """Returns the value of a setting; see `Population.setting`."""
    return self._population.setting(study, trial, param_name, param_distribution)


def run(
  study: study_lib.Study,
  population: Population,
  run_trial: trial_runner.TrialRunner,
  num_parallel: int,
  report: Callable[[optuna.trial.FrozenTrial], None],
) -> None:
  """Trains all generations of a population.

  Args:
    study: Study with a `PopulationSampler`.
    population: Population of this sampler.
    run_trial: Runs one trial.
    num_parallel: Number of trials that run simultaneously.
    report: Called with each trial that ended in this process.

  Raises:
    RunError: If several consecutive trials, or all runs of a generation, have
      failed.
  """
  for generation in range(population.generations):
    end = (generation + 1) * population.size
    study.enqueue(range(end - population.size, end))
    study.run(run_trial, end, num_parallel, run_trial.stop, report)
    if run_trial.stop():
      return


def _complete(trial: optuna.trial.FrozenTrial) -> bool:
  return trial.state == optuna.trial.TrialState.COMPLETE


def _change(
  value: Any, distribution: distributions.BaseDistribution, random: np.random.Generator
) -> Any:
  """Returns a similar number within its range, or the same choice."""
  if isinstance(distribution, distributions.CategoricalDistribution):
    return value
  assert isinstance(distribution, distributions.FloatDistribution | distributions.IntDistribution)
  low, high, step = distribution.low, distribution.high, distribution.step
  changed = value * random.choice(_FACTORS)
  if step:
    changed = low + step * round((changed - low) / step)
  return type(value)(min(max(changed, low), high))
