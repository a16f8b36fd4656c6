"""Trains a run: decides when to report, evaluate, record videos and save."""

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
from agents import config_parsing, errors, spaces
from agents.training import (
  divergence,
  epoch_result,
  forecast,
  training_statistics,
)
from agents.training import trainer as trainer_lib
from agents.training.faults import crash_recorder
from agents.training.monitoring import (
  diagnostics,
  episode_recorder,
  metrics_writer,
  progress,
  time_budget,
  video_recorder,
)
from agents.training.run_folder import (
  checkpoint,
  checkpoint_metadata,
  provenance,
  run_folder,
)

# Context manager that receives a function to save a checkpoint.
SaveOnTimeout = Callable[
    [Callable[[], None]], contextlib.AbstractContextManager]

_MAX_FALLBACKS = 3  # To the same checkpoint.


class Every:
  """Schedule of a periodic action, such as a report.

  The action is due at the first step at or after each multiple of the interval,
  and at the end of the budget.

  Args:
    interval: Environment steps between two actions; None disables the action.
    budget: Environment steps of the run.
    last: Step of the previous action; -1 makes the action due at step 0.
  """

  def __init__(self, interval: int | None, budget: int, last: int = 0):
    self.last = last
    self._interval = interval
    self._budget = budget

  def is_due(self, step: int) -> bool:
    """Returns whether the action is due.

    Args:
      step: Environment steps so far.
    """
    if not self._interval or step <= self.last:
      return False
    return (self.last < 0 or step >= self._budget
            or step // self._interval > self.last // self._interval)


class Loop:
  """Trains one run to the end of its budget.

  All decisions depend on environment steps, never on time, and a checkpoint
  stores everything they depend on. A resumed run therefore makes the same
  decisions. The exception are videos: one is skipped while another is rendered.

  Args:
    trainer: Trainer of the run.
    folder: Run folder, with the configuration.
    stop: Called after every epoch; returns whether to end early.
    rendering: Environment variables of processes that render videos.
    save_on_timeout: Context of every epoch; receives a function that another
      thread may call to save the state from before the epoch.

  The attribute `step` is the number of steps of all environments so far.
  """

  def __init__(self, trainer: trainer_lib.Trainer,
               folder: run_folder.RunFolder, stop: Callable[[], bool],
               rendering: dict[str, str] | None = None,
               save_on_timeout: SaveOnTimeout = contextlib.nullcontext):
    self.step = 0
    self._trainer = trainer
    self._folder = folder
    self._config: config_lib.Config = folder.config
    self._settings = config_lib.flat(self._config)
    self._stop = stop
    self._save_on_timeout = save_on_timeout
    budget = self._config.steps
    self._schedule = {
        name: Every(self._config.every(name), budget)
        for name in ("report_every", "eval_every")}
    self._schedule["checkpoint_every"] = Every(
        self._config.every("checkpoint_every"), budget, last=-1)
    self._schedule["video_every"] = Every(self._config.video_every, budget)
    self._statistics = training_statistics.TrainingStatistics()
    self._crash_recorder = crash_recorder.CrashRecorder(
        folder, self._config, trainer.failure_budget)
    self._episode_recorder = episode_recorder.EpisodeRecorder()
    self._video_recorder = video_recorder.VideoRecorder(
        folder, rendering or {})
    actions = spaces.leaves(
        trainer.train_env.batch_env.action_space, acting=True)
    self._diagnostics = diagnostics.Diagnostics(self._config, any(
        isinstance(leaf.space, gymnasium.spaces.Box) for leaf in actions))
    self._num_fallbacks = 0  # Since the latest checkpoint.
    self._is_compiled = False  # The first epoch compiles, so its time differs.
    self._seconds_before = 0.0  # Duration of the run in earlier processes.

  @property
  def complete(self) -> bool:
    """Whether the budget is used up and the result is evaluated."""
    return checkpoint_metadata.complete(
        self.step, self._last_steps(), self._config.steps)

  def start(self):
    """Begins a new run.

    Raises:
      EnvironmentsError: If environments fail in their first reset.
    """
    with self._record_fatal_failures():
      self._trainer.start()
    self._metrics = metrics_writer.MetricsWriter(self._folder.path)
    self._metrics.describe({
        "about/steps": (
            f"The x-axis counts decisions of the agent in all "
            f"{self._config.num_envs} training environments together; each is "
            f"{self._config.env.action_repeat} step(s) of the simulator."),
        "about/config": f"```\n{config_lib.dump(self._config)}```",
    }, self._settings)

  def resume(self):
    """Continues from the newest checkpoint that is not damaged.

    Raises:
      ConfigError: If the checkpoint does not fit the configuration.
      CheckpointError: If no checkpoint can be read.
      EnvironmentsError: If environments fail while episodes are replayed.
    """
    with self._record_fatal_failures():
      self._load()

  def run(self):
    """Trains until the budget is used up or `stop` returns true.

    Raises:
      EnvironmentsError: If environments fail and cannot be replaced.
      MachineLost: If another machine does not answer.
      TrainingDiverged: If metrics or weights are repeatedly not finite.
    """
    self._start_time = time.monotonic()
    self._progress = progress.Progress(self._config.steps, self.step)
    self._time_budget = time_budget.TimeBudget()
    try:
      self._train()
      if self._stop():
        self._save()
      self._trainer.end(self.complete)
      self._finish_videos()
    except Exception as error:
      # After failures of environments, and after an interrupted step, the
      # trainer still holds the state before the epoch.
      if not crash_recorder.is_environment_failure(error):
        raise
      try:
        self._record_failures()
        self._record_fatal(error)
      finally:
        self._save()
      if not self._stop():
        raise
    finally:
      self._video_recorder.close()
      self._progress.close()
      self._metrics.close()

  def metadata(self) -> dict[str, Any]:
    """Returns the metadata of a checkpoint of the current state."""
    return dataclasses.asdict(checkpoint_metadata.CheckpointMetadata(
        self.step, self._last_steps(), **dataclasses.asdict(self._statistics),
        health=self._diagnostics.state, seconds=self._seconds(),
        files=self._metrics.lengths(), restarts=self._crash_recorder.count,
        config=self._settings))

  def _train(self):
    """Repeats epochs until the budget is used up or training shall stop."""
    epoch = None
    while True:
      if self._is_due("report_every") and epoch:
        self._report(epoch)
      if self._is_due("eval_every"):
        self._evaluate(epoch)
      self._write_finished_video()
      self._start_video()
      if self._is_due("checkpoint_every") and not self._stop():
        self._schedule["checkpoint_every"].last = self.step
        self._save()
      if self._stop() or self.step >= self._config.steps:
        return
      self._progress.phase("train")
      start = time.monotonic()
      with self._save_on_timeout(
          functools.partial(self._save, self._trainer.capture())):
        epoch = self._trainer.epoch(self.step / self._config.steps)
      if epoch is None:
        self._record_failures()
        return
      try:
        divergence.check(epoch, self.step, self._trainer.algorithm)
      except errors.TrainingDiverged as error:
        self._fall_back(error)
        epoch = None
      else:
        self._add(epoch, time.monotonic() - start)

  def _is_due(self, name: str) -> bool:
    return self._schedule[name].is_due(self.step)

  def _add(self, epoch: epoch_result.Epoch, seconds: float):
    """Counts the steps, episodes and seconds of an epoch."""
    self._record_failures()
    self.step += epoch.steps
    self._progress.advance(self.step)
    self._statistics.add(epoch)
    self._episode_recorder.add(epoch.episodes, self.step)
    if self._is_compiled:
      self._time_budget.train(epoch.steps, epoch.seconds, epoch.least_seconds)
    else:
      self._time_budget.spend("compiling", seconds)
      self._is_compiled = True
      self._progress.forecast(forecast.minutes(
          self._config, self._trainer, epoch, self._config.steps - self.step))

  def _report(self, epoch: epoch_result.Epoch):
    """Writes a row about training since the previous report."""
    time_shares = self._time_budget.row()
    self._time_budget = time_budget.TimeBudget()
    warnings = self._diagnostics.examine(epoch.metrics)
    restarts = self._crash_recorder.count
    row = {**self._row("train", self._statistics.row()), **time_shares,
           "warnings": warnings, "restarts": restarts}
    scalars = metrics_writer.by_tag(epoch.metrics)
    scalars["reliability/restarts"] = restarts
    for name, value in time_shares.items():
      if value is not None:
        scalars[f"performance/{name}"] = value
    for name, value in self._statistics.mean_reward_parts().items():
      scalars[f"reward_parts/{name}"] = value
    self._write(row, scalars)
    for warning in warnings:
      self._progress.warn(f"step {self.step:,}: {warning}")
    if warnings:  # TensorBoard keeps one text per step.
      self._metrics.write_text(
          "health/warnings", "\n\n".join(warnings), self.step)
    self._statistics = training_statistics.TrainingStatistics()
    self._schedule["report_every"].last = self.step

  def _evaluate(self, epoch: epoch_result.Epoch | None):
    """Evaluates and writes a row, unless interrupted."""
    self._progress.phase("eval")
    start = time.monotonic()
    result = self._trainer.evaluate(self._config.eval_episodes, self._stop)
    self._record_failures()
    if result:
      self._write(self._row("eval", training_statistics.summarize(*result)), {})
      self._schedule["eval_every"].last = self.step
      if self._config.histograms and epoch:
        self._metrics.write_histograms(
            self._trainer.histograms(epoch.samples), self.step)
    self._time_budget.spend("evaluation", time.monotonic() - start)

  def _row(self, phase: str, episodes: dict[str, Any]) -> dict[str, Any]:
    return {"phase": phase, "step": self.step,
            "seconds": round(self._seconds(), 3), **episodes}

  def _write(self, row: dict[str, Any], scalars: dict[str, float]):
    """Writes a row to `metrics.jsonl`, TensorBoard and the terminal."""
    for name, tag in (("return_mean", "score/return"),
                      ("length_mean", "score/length")):
      if row[name] is not None:
        scalars[tag] = row[name]
    self._metrics.write(row, scalars)
    self._progress.report(row)

  def _start_video(self):
    """Starts to render an episode if a video is due and none is rendered."""
    last_episode = self._episode_recorder.last
    if (self._is_due("video_every") and last_episode
        and not self._video_recorder.busy):
      self._video_recorder.start(last_episode)
      self._schedule["video_every"].last = self.step

  def _write_finished_video(self) -> bool:
    """Writes a finished video to TensorBoard; returns whether there was one."""
    finished = self._video_recorder.take_finished()
    if finished:
      step, gif = finished
      self._metrics.write_video("films/training", gif, step)
    return bool(finished)

  def _finish_videos(self):
    """Waits for the video in progress and for one that is due."""
    has_written = False
    for _ in range(2):
      if not self._stop():
        self._start_video()
      if self._video_recorder.busy:
        print("Rendering the last video of training; Ctrl-C skips it.",
              file=sys.stderr, flush=True)
        self._video_recorder.remove_throttle()
      while self._video_recorder.busy and not self._stop():
        time.sleep(0.1)
        has_written |= self._write_finished_video()
    if has_written:
      self._save()  # Resuming truncates files to their length at a checkpoint.

  def _save(self, state: Callable[[], dict[str, np.ndarray]] | None = None):
    """Writes a checkpoint.

    Args:
      state: Result of `Trainer.capture`; by default the current state.
    """
    self._num_fallbacks = 0
    arrays = state() if state else self._trainer.state()
    for name, array in self._episode_recorder.arrays().items():
      arrays[f"recorded/{name}"] = array
    self._metrics.sync()
    checkpoint.save(
        self._folder.checkpoints, self.step, arrays, self.metadata())

  def _load(self):
    """Loads the newest checkpoint that is not damaged."""
    arrays, data = checkpoint.load_newest(self._folder.checkpoints)
    try:
      metadata = config_parsing.convert(
          checkpoint_metadata.CheckpointMetadata, data, "metadata")
      self._trainer.load(arrays)
      self._load_metadata(metadata)
      self._episode_recorder.load(episode_recorder.recorded_arrays(arrays))
    except KeyError as error:
      raise config_lib.ConfigError(
          f"The checkpoint lacks {error}; another version of this program "
          "wrote it.") from error
    except (ValueError, TypeError, AttributeError, IndexError, MemoryError,
            ArithmeticError, tf.errors.OpError) as error:
      if isinstance(error.__cause__, errors.EnvironmentsError):
        raise  # An environment failed while its episode was replayed.
      raise config_lib.ConfigError(
          f"config.yaml and checkpoint do not fit: {error}") from error
    self._metrics = metrics_writer.MetricsWriter(
        self._folder.path, metadata.files)

  def _load_metadata(self, metadata: checkpoint_metadata.CheckpointMetadata):
    """Continues from the result of `metadata`."""
    self.step = metadata.step
    for name, every in self._schedule.items():
      every.last = metadata.done.get(name, every.last)
    self._statistics = training_statistics.TrainingStatistics(
        metadata.scores, metadata.lengths, metadata.reward_parts)
    self._diagnostics.state = metadata.health
    self._seconds_before = metadata.seconds
    self._crash_recorder.count = metadata.restarts
    if changed := provenance.differences(
        config_lib.without_removed(metadata.config or self._settings),
        self._settings):
      print("Settings that differ from those of the checkpoint: "
            f"{', '.join(changed)}.", file=sys.stderr)

  def _fall_back(self, error: errors.TrainingDiverged):
    """Returns to the newest checkpoint, with other random numbers.

    Raises:
      TrainingDiverged: If earlier fallbacks to it did not help.
    """
    self._num_fallbacks += 1
    if self._num_fallbacks > _MAX_FALLBACKS:
      raise error
    self._record_failures()
    self._metrics.close()
    seconds, restarts = self._seconds_before, self._crash_recorder.count
    try:
      self._load()
    except Exception as load_error:
      # Without a cause, because `run` saves if environments are the cause.
      raise errors.TrainingDiverged(
          f"{error} The last checkpoint cannot be loaded: {load_error}"
      ) from None
    # Time and restarts after the checkpoint still count.
    self._seconds_before, self._crash_recorder.count = seconds, restarts
    self._trainer.change_random_numbers(self._num_fallbacks)
    self._time_budget = time_budget.TimeBudget()
    self._progress.warn(
        f"{error} Training continues from the checkpoint of step "
        f"{self.step:,}, with other random numbers.")

  @contextlib.contextmanager
  def _record_fatal_failures(self):
    """Context that records failures of environments, and raises them again."""
    try:
      yield
    except Exception as error:
      self._record_fatal(error)
      raise

  def _record_fatal(self, error: Exception):
    """Records a failure of environments, unless a signal has caused it."""
    if isinstance(error, errors.MachineLost) or self._stop():
      return
    if crash_recorder.is_environment_failure(error):
      self._crash_recorder.save_fatal(self.step, error)

  def _record_failures(self):
    """Records and prints which environments and workers were replaced."""
    for line in self._crash_recorder.save_survived(self.step):
      self._progress.warn(line)

  def _last_steps(self) -> dict[str, int]:
    """Returns the step of the latest report, evaluation, ..., by setting."""
    return {name: every.last for name, every in self._schedule.items()}

  def _seconds(self) -> float:
    """Returns the seconds of the run so far, across resumes."""
    return self._seconds_before + time.monotonic() - self._start_time
