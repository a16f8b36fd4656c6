"""From the first epoch to the last: when to report, evaluate and save."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import config_parsing
from agents import errors
from agents import spaces
from agents.training import divergence
from agents.training import epoch_result
from agents.training import forecast
from agents.training import trainer as trainer_lib
from agents.training import training_statistics
from agents.training.faults import crash_recorder
from agents.training.monitoring import diagnostics
from agents.training.monitoring import episode_recorder
from agents.training.monitoring import metrics
from agents.training.monitoring import progress
from agents.training.monitoring import time_budget
from agents.training.monitoring import video_recorder
from agents.training.run_folder import checkpoint
from agents.training.run_folder import checkpoint_metadata
from agents.training.run_folder import provenance
from agents.training.run_folder import run_folder

# Context manager that receives a function to save a checkpoint.
SaveOnTimeout = Callable[
    [Callable[[], None]], contextlib.AbstractContextManager]

_MOST_FALLBACKS = 3  # From one checkpoint.


class Loop:
  """Trains one run to the end of its budget.

  All decisions depend on steps alone, never on the clock, and everything they
  depend on is in the checkpoint; so a resumed run makes the same ones. (Only a
  film waits for the one before it.)

  Args:
    trainer: What is trained.
    folder: Where the run is kept; its config says when to do what.
    stop: Called at every epoch; returns whether to end early.
    rendering: Environment variables of processes that render videos.
    save_on_timeout: Context of every epoch; receives a function that another
      thread may call to save the state from before the epoch.
  """

  def __init__(self, trainer: trainer_lib.Trainer,
               folder: run_folder.RunFolder, stop: Callable[[], bool],
               rendering: dict[str, str] | None = None,
               save_on_timeout: SaveOnTimeout = contextlib.nullcontext):
    self._trainer = trainer
    self._folder = folder
    self._config: config_lib.Config = folder.config
    self._settings = config_lib.flat(self._config)
    self._stop = stop
    self._save_on_timeout = save_on_timeout
    self.step = 0  # Of all environments together.
    self._done = {"report_every": 0, "eval_every": 0, "checkpoint_every": -1,
                  "video_every": 0}
    self._tally = training_statistics.TrainingStatistics()
    self._failures = crash_recorder.CrashRecorder(
        folder, self._config, trainer.failure_budget)
    self._recorder = episode_recorder.EpisodeRecorder()
    actions = spaces.leaves(
        trainer.train_env.batch_env.action_space, acting=True)
    self._health = diagnostics.Diagnostics(self._config, any(
        isinstance(leaf.space, gymnasium.spaces.Box) for leaf in actions))
    self._filming = video_recorder.VideoRecorder(folder, rendering or {})
    self._fallbacks = 0  # To the last checkpoint.
    self._compiled = False  # A process's first epoch compiles; it isn't timed.
    self._seconds = 0.0  # Of the run, up to the checkpoint it resumed from.

  @property
  def complete(self) -> bool:
    """Whether the budget is used up and what came of it evaluated."""
    return checkpoint_metadata.complete(self.step, self._done, self._config.steps)

  def start(self):
    """Begin a new run."""
    with self._failures_kept():
      self._trainer.start()
    self._metrics = metrics.MetricsWriter(self._folder.path)
    self._metrics.describe({
        "about/steps": (
            f"The x-axis counts decisions of the agent in all "
            f"{self._config.num_envs} training environments together; each is "
            f"{self._config.env.action_repeat} step(s) of the simulator."),
        "about/config": f"```\n{config_lib.dump(self._config)}```",
    }, self._settings)

  def resume(self):
    """Go on from the newest checkpoint that is not damaged."""
    with self._failures_kept():
      self._load()

  def _load(self):
    arrays, data = checkpoint.load_newest(self._folder.checkpoints)
    try:
      facts = config_parsing.convert(checkpoint_metadata.CheckpointMetadata, data, "facts")
      self._trainer.load(arrays)
      self._load_facts(facts)
      self._recorder.load(episode_recorder.recorded_arrays(arrays))
    except KeyError as error:
      raise config_lib.ConfigError(
          f"The checkpoint lacks {error}; another version of this program "
          "made it.") from error
    except (ValueError, TypeError, AttributeError, IndexError, MemoryError,
            ArithmeticError, tf.errors.OpError) as error:
      if isinstance(error.__cause__, errors.EnvironmentsError):
        raise  # An environment's own, while its episode was replayed.
      raise config_lib.ConfigError(
          f"config.yaml and checkpoint do not fit: {error}") from error
    self._metrics = metrics.MetricsWriter(self._folder.path, facts.files)

  def _load_facts(self, facts: checkpoint_metadata.CheckpointMetadata):
    """Go on from what `_save` knew."""
    self.step = facts.step
    self._done |= facts.done
    self._tally = training_statistics.TrainingStatistics(facts.scores, facts.lengths, facts.reward_parts)
    self._health.state = facts.health
    self._seconds = facts.seconds
    self._failures.count = facts.restarts
    if changed := provenance.differences(
        config_lib.without_removed(facts.config or self._settings),
        self._settings):
      print("Not the settings that the checkpoint was made with: "
            f"{', '.join(changed)}.", file=sys.stderr)

  def run(self):
    """Train until the budget is used up or `stop` says so.

    Raises:
      TrainingDiverged: If a loss or another metric is not finite, time and
        again.
    """
    self._start = time.monotonic()
    self._progress = progress.Progress(self._config.steps, self.step)
    self._ledger = time_budget.TimeBudget()
    try:
      self._train()
      if self._stop():
        self._save()
      self._trainer.end(self.complete)
      self._finish_films()
    except Exception as error:
      # Where environments failed, or hang and the user has stopped waiting,
      # the trainer still holds the end of the last epoch.
      if not crash_recorder.is_environment_failure(error):
        raise
      try:
        self._tell_restarts()
        self._keep_fatal(error)
      finally:
        self._save()
      if not self._stop():
        raise
    finally:
      self._filming.close()
      self._progress.close()
      self._metrics.close()

  def _train(self):
    epoch = None
    while True:
      if self._due("report_every") and epoch:
        self._report(epoch)
      if self._due("eval_every"):
        self._evaluate(epoch)
      self._show_film()
      self._film()
      if self._stop():
        return
      if self._due("checkpoint_every"):
        self._done["checkpoint_every"] = self.step
        self._save()
      if self.step >= self._config.steps:
        return
      self._progress.phase("train")
      start = time.monotonic()
      with self._save_on_timeout(
          functools.partial(self._save, self._trainer.capture())):
        epoch = self._trainer.epoch(self.step / self._config.steps)
      if epoch is None:
        self._tell_restarts()
        return
      try:
        divergence.check(epoch, self.step, self._trainer.algorithm)
      except errors.TrainingDiverged as error:
        self._fall_back(error)
        epoch = None
      else:
        self._add(epoch, time.monotonic() - start)

  def _due(self, name: str) -> bool:
    """Whether a multiple of the interval, or the budget, has been passed."""
    every, before = self._config.every(name), self._done[name]
    return before < self.step and (
        before < 0 or self.step // every > before // every
        or self.step >= self._config.steps)

  def _add(self, epoch: epoch_result.Epoch, seconds: float):
    self._tell_restarts()
    self.step += epoch.steps
    self._progress.advance(self.step)
    self._tally.add(epoch)
    self._recorder.add(epoch.episodes, self.step)
    if self._compiled:
      self._ledger.train(epoch.steps, epoch.seconds, epoch.least_seconds)
    else:
      self._ledger.spend("compiling", seconds)
      self._compiled = True
      self._progress.forecast(forecast.minutes(
          self._config, self._trainer, epoch, self._config.steps - self.step))

  def _fall_back(self, error: errors.TrainingDiverged):
    """Go on from the last checkpoint, with other random numbers.

    Raises:
      TrainingDiverged: If that has not helped before.
    """
    self._fallbacks += 1
    if self._fallbacks > _MOST_FALLBACKS:
      raise error
    self._tell_restarts()
    self._metrics.close()
    seconds, restarts = self._seconds, self._failures.count
    try:
      self._load()
    except Exception as failure:
      # Without a cause, so that nobody saves what has diverged.
      raise errors.TrainingDiverged(
          f"{error} Nor is there a way back to the last checkpoint: {failure}"
      ) from None
    self._seconds, self._failures.count = seconds, restarts  # These go on.
    self._trainer.change_random_numbers(self._fallbacks)
    self._ledger = time_budget.TimeBudget()
    self._progress.warn(
        f"{error} Going on from the checkpoint of step {self.step:,}, with "
        "other random numbers.")

  def _report(self, epoch: epoch_result.Epoch):
    """Write a row of training."""
    time_spent = self._ledger.row()
    self._ledger = time_budget.TimeBudget()
    warnings = self._health.examine(epoch.metrics)
    row = {**self._row("train", self._tally.row()), **time_spent,
           "warnings": warnings, "restarts": self._failures.count}
    scalars = metrics.by_tag(epoch.metrics)
    scalars["reliability/restarts"] = self._failures.count
    for name, value in time_spent.items():
      if value is not None:
        scalars[f"performance/{name}"] = value
    for name, value in self._tally.mean_reward_parts().items():
      scalars[f"reward_parts/{name}"] = value
    self._write(row, scalars)
    for warning in warnings:
      self._progress.warn(f"step {self.step:,}: {warning}")
    if warnings:  # As one, as TensorBoard keeps one text a step.
      self._metrics.write_text(
          "health/warnings", "\n\n".join(warnings), self.step)
    self._tally = training_statistics.TrainingStatistics()
    self._done["report_every"] = self.step

  def _evaluate(self, epoch: epoch_result.Epoch | None):
    """Evaluate and write a row, unless interrupted."""
    self._progress.phase("eval")
    start = time.monotonic()
    played = self._trainer.evaluate(self._config.eval_episodes, self._stop)
    self._tell_restarts()
    if played:
      self._write(self._row("eval", training_statistics.summarize(*played)), {})
      self._done["eval_every"] = self.step
      if self._config.histograms and epoch:
        self._metrics.write_histograms(
            self._trainer.histograms(epoch.samples), self.step)
    self._ledger.spend("evaluation", time.monotonic() - start)

  def _tell_restarts(self):
    """Tell which environments and workers were replaced."""
    for line in self._failures.save_survived(self.step):
      self._progress.warn(line)

  @contextlib.contextmanager
  def _failures_kept(self):
    """Keep what environments failed in."""
    try:
      yield
    except Exception as error:
      self._keep_fatal(error)
      raise

  def _keep_fatal(self, error: Exception):
    """Keep what environments failed in, unless the user has stopped waiting."""
    lost = isinstance(error, errors.MachineLost)
    if crash_recorder.is_environment_failure(error) and not (lost or self._stop()):
      self._failures.save_fatal(self.step, error)

  def _film(self):
    """Begin a film if it is due, there is an episode, and no other is drawn."""
    last = self._recorder.last
    if (self._config.video_every and self._due("video_every") and last
        and not self._filming.busy):
      self._filming.start(last)
      self._done["video_every"] = self.step

  def _finish_films(self):
    """Wait for what has begun, then for what is due, unless interrupted."""
    shown = False
    for _ in range(2):
      if not self._stop():
        self._film()
      if self._filming.busy:
        print("Drawing a last film of training; Ctrl-C leaves it out.",
              file=sys.stderr, flush=True)
        self._filming.remove_throttle()
      while self._filming.busy and not self._stop():
        time.sleep(0.1)
        shown |= self._show_film()
    if shown:
      self._save()  # What was written since the last time would be cut off.

  def _show_film(self) -> bool:
    """Show a film that is done; return whether there was one."""
    if finished := self._filming.take_finished():
      step, gif = finished
      self._metrics.write_video("films/training", gif, step)
    return bool(finished)

  def _save(self, state: Callable[[], dict[str, np.ndarray]] | None = None):
    """Writes a checkpoint.

    Args:
      state: Result of `Trainer.capture`; by default the current state.
    """
    self._fallbacks = 0
    arrays = state() if state else self._trainer.state()
    for name, array in self._recorder.arrays().items():
      arrays[f"recorded/{name}"] = array
    self._metrics.sync()
    checkpoint.save(
        self._folder.checkpoints, self.step, arrays, self.facts())

  def facts(self) -> dict[str, Any]:
    """Return what a checkpoint of now knows beside its arrays."""
    return dataclasses.asdict(checkpoint_metadata.CheckpointMetadata(
        self.step, self._done, **dataclasses.asdict(self._tally),
        health=self._health.state, seconds=self._elapsed(),
        files=self._metrics.lengths(), restarts=self._failures.count,
        config=self._settings))

  def _elapsed(self) -> float:
    return self._seconds + time.monotonic() - self._start

  def _row(self, phase: str, episodes: dict[str, Any]) -> dict[str, Any]:
    return {"phase": phase, "step": self.step,
            "seconds": round(self._elapsed(), 3), **episodes}

  def _write(self, row: dict[str, Any], scalars: dict[str, float]):
    for name, tag in (("return_mean", "score/return"),
                      ("length_mean", "score/length")):
      if row[name] is not None:
        scalars[tag] = row[name]
    self._metrics.write(row, scalars)
    self._progress.report(row)
