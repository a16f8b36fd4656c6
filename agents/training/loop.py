"""Training loop; decides when to report, evaluate, record videos and save."""

import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import config_parsing, errors, spaces
from agents.environments.making import make
from agents.training import divergence, early_end, epoch_result, remaining_time
from agents.training import schedule as schedule_lib
from agents.training import trainer as trainer_lib
from agents.training.faults import crash_folder
from agents.training.monitoring import (
  guarded_logger,
  layer_norms,
  memory,
  metrics_row,
  metrics_writer,
  progress,
  recent_episodes,
  time_usage,
  training_videos,
  training_warnings,
)
from agents.training.run_folder import checkpoint, provenance, run_folder

# Returns a context manager; the argument is a function that saves a checkpoint.
SaveOnTimeout = Callable[[Callable[[], None]], contextlib.AbstractContextManager]

_MAX_FALLBACKS = 3  # Maximum number of fallbacks to the same checkpoint.
_SMALL_STATE = 2**26  # Bytes of a checkpoint besides its variables.
_FORECAST_EPOCH = 3  # The first forecast follows this epoch.


class Loop:
  """Trains one run to the end of its budget.

  Decisions depend on the number of environment steps, not on time, and a
  checkpoint stores their inputs. A resumed run therefore makes the same
  decisions as an uninterrupted run. There are two exceptions: a due video
  starts only after the previous video is rendered, and `end` may limit the
  minutes of this process.

  Args:
    trainer: Trainer of the run.
    folder: Run folder, which contains the configuration.
    stop: Returns whether to end early; called after every epoch.
    video_variables: Environment variables of the process that renders videos.
    save_on_timeout: Context of every epoch. The context receives a function
      that another thread may call to save the state from before the epoch.
    end: Conditions under which the run ends early, evaluated and saved.

  Attributes:
    step: Number of steps of all environments so far.
    end_reason: Why the run has ended before its budget was used up, or "".
  """

  def __init__(
    self,
    trainer: trainer_lib.Trainer,
    folder: run_folder.RunFolder,
    stop: Callable[[], bool],
    video_variables: dict[str, str] | None = None,
    save_on_timeout: SaveOnTimeout = contextlib.nullcontext,
    end: early_end.EarlyEnd | None = None,
  ) -> None:
    self.step = 0
    self.end_reason = ""
    self._trainer = trainer
    self._folder = folder
    self._config: config_lib.Config = folder.config
    self._settings = config_lib.flat(self._config)
    self._stop = stop
    self._save_on_timeout = save_on_timeout
    self._end = end or early_end.EarlyEnd()
    last = {"report_every": 0, "eval_every": 0, "checkpoint_every": -1}
    self._schedule = schedule_lib.Schedule(
      self._config.steps,
      {
        **{name: self._config.every(name) for name in last},
        "video_every": self._config.video_every,
      },
      {**last, "video_every": 0},
    )
    self._statistics = epoch_result.Statistics()
    env = trainer.train_env.batch_env
    self._failures = env.failure_budget
    self._restarts = 0  # Replaced environments and workers, across resumes.
    self._recent_episodes = recent_episodes.RecentEpisodes()
    self._video_recorder = training_videos.VideoRecorder(folder, video_variables or {})
    self._warnings = training_warnings.TrainingWarnings(
      self._config,
      any(
        isinstance(leaf.space, gymnasium.spaces.Box)
        for leaf in spaces.leaves(env.action_space, is_action=True)
      ),
    )
    self._best_score: float | None = None  # Best mean return of an evaluation.
    self._num_fallbacks = 0  # Fallbacks since the latest checkpoint.
    self._remaining_time = remaining_time.RemainingTime(self._config, self._schedule)

  @property
  def complete(self) -> bool:
    """Whether the budget is used up and the final policy is evaluated."""
    return checkpoint.complete(self.step, self._schedule.last, self._config.steps)

  def start(self) -> None:
    """Begins a new run.

    Raises:
      RunError: If the logger cannot start.
      EnvironmentsError: If environments fail in their first reset.
    """
    logger = self._make_logger(None)
    with self._record_fatal_failures():
      self._trainer.start()
    self._start_time = time.monotonic()
    self._metrics = metrics_writer.MetricsWriter(self._folder.path, None, logger)
    self._metrics.describe(self._config)

  def resume(self) -> None:
    """Continues from the newest checkpoint that is not damaged.

    Raises:
      ConfigError: If the checkpoint does not fit the configuration.
      CheckpointError: If all checkpoints are damaged.
      ReadError: If a checkpoint cannot be read for another reason.
      EnvironmentsError: If environments fail while episodes are replayed.
    """
    with self._record_fatal_failures():
      self._load()
    self._record_failures()  # Episodes that could not be rebuilt.

  def run(self) -> None:
    """Trains until the budget is used up or `stop` returns true.

    Raises:
      EnvironmentsError: If environments fail and cannot be replaced.
      MachineLost: If another machine does not answer.
      TrainingDiverged: If metrics or weights are repeatedly not finite.
    """
    self._progress = progress.Progress(self._config.steps, self.step)
    self._time_usage = time_usage.TimeUsage()
    try:
      with self._record_fatal_failures(save=True):
        self._train()
        if self._stop():
          self._save()
        self._trainer.end(self.complete)
        self._finish_videos()
    finally:
      self._video_recorder.close()
      self._progress.bar.close()
      self._metrics.close()

  @property
  def _seconds(self) -> float:
    """Seconds since the start of the run, across resumes."""
    return time.monotonic() - self._start_time

  def metadata(self) -> dict[str, Any]:
    """Returns the metadata of a checkpoint of the current state."""
    return dataclasses.asdict(
      checkpoint.Metadata(
        self.step,
        self._schedule.last,
        **dataclasses.asdict(self._statistics),
        health=self._warnings.state,
        files=self._metrics.lengths(),
        seconds=self._seconds,
        restarts=self._restarts,
        config=self._settings,
        best_score=self._best_score,
      )
    )

  def _train(self) -> None:
    """Repeats epochs until the budget is used up or `stop` returns true."""
    epoch = None
    while True:
      if self._schedule.is_due("report_every", self.step) and epoch:
        self._report(epoch)
      if self._schedule.is_due("eval_every", self.step):
        self._evaluate(epoch)
      self._advance_videos()
      if self._schedule.is_due("checkpoint_every", self.step) and not self._stop():
        self._schedule.last["checkpoint_every"] = self.step
        self._save()
      if self._stop() or self.step >= self._config.steps:
        return
      if epoch and self._end_early(epoch):
        return
      self._progress.bar.set_description("train")
      if not (self._remaining_time.epochs or self._config.eager):
        progress.say("Compiling the graph; the first update follows.")
      start = time.monotonic()
      with self._save_on_timeout(functools.partial(self._save, self._trainer.capture())):
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

  def _end_early(self, epoch: epoch_result.Epoch) -> bool:
    """Evaluates and saves the run if a condition of `end` holds.

    Returns whether a condition holds.
    """
    is_evaluated = self._schedule.last["eval_every"] == self.step
    self.end_reason = self._end.reason(self._folder.path / "metrics.jsonl", is_evaluated)
    if not self.end_reason:
      return False
    if not is_evaluated:
      self._evaluate(epoch)
    if not is_evaluated or self._schedule.last["checkpoint_every"] != self.step:
      self._schedule.last["checkpoint_every"] = self.step
      self._save()
    return True

  def _add(self, epoch: epoch_result.Epoch, seconds: float) -> None:
    """Counts the steps, episodes and seconds of an epoch."""
    self._record_failures()
    self.step += epoch.steps
    self._progress.bar.update(self.step - self._progress.bar.n)
    self._statistics.add(epoch.episodes)
    self._recent_episodes.add(epoch.episodes, self.step)
    self._remaining_time.add_epoch(epoch, seconds)
    if self._remaining_time.epochs == 1:  # It also compiles the graph.
      self._time_usage.seconds["compiling"] += seconds
      if self._config.trace_graph:
        with self._metrics.training_events(self.step):
          tf.summary.graph(self._trainer.graph())
    else:
      self._time_usage.add(epoch.steps, epoch.seconds, epoch.busy_seconds)
    remaining = self._remaining_time.seconds(self.step)
    if remaining and self._remaining_time.epochs == _FORECAST_EPOCH:
      progress.say(
        f"forecast  about {progress.duration(remaining)} from now, including evaluations"
      )

  def _report(self, epoch: epoch_result.Epoch) -> None:
    """Writes a row about training since the previous report."""
    performance = {**self._time_usage.row(), **memory.usage(self._trainer.worker_pids)}
    self._time_usage = time_usage.TimeUsage()
    warnings = self._warnings.examine(epoch.metrics)
    self._write(
      metrics_row.training_row(
        self.step,
        self._seconds,
        self._statistics,
        epoch.metrics,
        performance,
        warnings,
        self._restarts,
      )
    )
    for warning in warnings:
      progress.warn(f"step {self.step:,}: {warning}")
    if warnings:  # Joins the texts: TensorBoard keeps only one text per step.
      with self._metrics.training_events(self.step):
        tf.summary.text("health/warnings", "\n\n".join(warnings))
    self._statistics = epoch_result.Statistics()
    self._schedule.last["report_every"] = self.step

  def _evaluate(self, epoch: epoch_result.Epoch | None) -> None:
    """Evaluates the policy, and writes a row if `stop` did not abort."""
    self._progress.bar.set_description("eval")
    start = time.monotonic()
    result = self._trainer.evaluate(self._config.eval_episodes, self._stop)
    self._record_failures()
    if result:
      self._schedule.last["eval_every"] = self.step
      self._remaining_time.add_evaluation(time.monotonic() - start)
      algorithm = self._trainer.algorithm
      row = metrics_row.evaluation_row(
        self.step,
        self._seconds,
        result,
        layer_norms.layer_norms(algorithm.weights, algorithm.variables()),
      )
      self._write(row)
      self._save_best(row.fields["return_mean"])
      if self._config.histograms and epoch:
        self._metrics.write_histograms(self.step, self._trainer.histograms(epoch.samples))
    self._time_usage.seconds["evaluation"] += time.monotonic() - start

  def _write(self, row: metrics_row.MetricsRow) -> None:
    """Writes a row to the files, the logger and the terminal."""
    self._metrics.write(row)
    self._progress.report(row.fields, self._remaining_time.seconds(self.step))

  def _advance_videos(self) -> bool:
    """Writes a finished video and starts one that is due.

    Returns:
      Whether a video was finished.
    """
    if finished := self._video_recorder.take_finished():
      self._metrics.write_video("films/training", finished)
    last_episode = self._recent_episodes.last
    if (
      self._schedule.is_due("video_every", self.step)
      and last_episode
      and not self._video_recorder.busy
    ):
      self._video_recorder.start(last_episode)
      self._schedule.last["video_every"] = self.step
    return bool(finished)

  def _finish_videos(self) -> None:
    """Finishes the video in progress, and renders a video that is due."""
    has_written = not self._stop() and self._advance_videos()
    if self._video_recorder.busy:
      progress.note("Rendering the last video of training; Ctrl-C skips it.")
    while self._video_recorder.busy and not self._stop():
      self._video_recorder.remove_throttle()
      time.sleep(0.1)
      has_written |= self._advance_videos()
    if has_written:
      # Resuming truncates files to their lengths in the checkpoint. Without
      # this checkpoint, resuming would remove the videos from TensorBoard.
      self._save()

  def _save(self, state: Callable[[], dict[str, np.ndarray]] | None = None) -> None:
    """Writes a checkpoint.

    Args:
      state: Result of `Trainer.capture`; by default the current state.
    """
    self._num_fallbacks = 0
    arrays = (state or self._trainer.capture())()
    self._metrics.sync()
    checkpoint.save(
      self._folder.checkpoints,
      self.step,
      {**arrays, **self._recent_episodes.arrays()},
      self.metadata(),
    )

  def _save_best(self, score: float) -> None:
    """Writes the policy if its evaluation is the best one so far."""
    if self._best_score is None or score > self._best_score:
      self._best_score = score
      checkpoint.save_best(
        self._folder.checkpoints,
        self.step,
        {
          name: array
          for name, array in self._trainer.state().items()
          if name.startswith("variable/")
        },
      )

  def _load(self) -> None:
    """Loads the newest checkpoint that is not damaged."""
    path = checkpoint.newest_readable(self._folder.checkpoints)
    arrays, data = checkpoint.load(path, self._check_sizes)
    try:
      metadata = config_parsing.convert(checkpoint.Metadata, data, "metadata")
      self._trainer.load(arrays)
      self._statistics = epoch_result.Statistics(
        metadata.scores, metadata.lengths, metadata.reward_parts
      )
      self.step = metadata.step
      self._start_time = time.monotonic() - metadata.seconds
      self._schedule.last |= metadata.done
      self._warnings.state = metadata.health
      self._restarts = metadata.restarts
      self._best_score = metadata.best_score
      self._recent_episodes.load(arrays)
      # Extensions change the budget as intended.
      budget = {name: self._settings[name] for name in ("steps", "extended_from")}
      saved = config_lib.without_removed(metadata.config or self._settings)
      changed = provenance.differences(_complete(saved, self._settings) | budget, self._settings)
    except KeyError as error:
      raise config_lib.ConfigError(
        f"The checkpoint lacks {error}; another version of this program wrote it."
      ) from error
    except (
      ValueError,
      TypeError,
      AttributeError,
      IndexError,
      ArithmeticError,
      tf.errors.OpError,
    ) as error:
      if isinstance(error.__cause__, errors.EnvironmentsError):
        raise  # An environment failed while its episode was replayed.
      raise config_lib.ConfigError(f"config.yaml and checkpoint do not fit: {error}") from error
    if changed:
      progress.note(f"Settings that differ from those of the checkpoint: {', '.join(changed)}.")
    self._metrics = metrics_writer.MetricsWriter(
      self._folder.path, metadata.files, self._make_logger(self.step)
    )

  def _make_logger(self, resumed_step: int | None) -> guarded_logger.GuardedLogger | None:
    """Returns the logger of the run, or None; see `guarded_logger`."""
    if not self._config.logger:
      return None
    return guarded_logger.GuardedLogger(self._folder, resumed_step)

  def _check_sizes(self, sizes: Mapping[str, int]) -> None:
    """Raises ConfigError if arrays of a checkpoint are larger than expected.

    Args:
      sizes: Number of bytes of each array by name.
    """
    algorithm, config = self._trainer.algorithm, self._config
    trainer_lib.check_sizes(algorithm, sizes)
    received = sum(size for name, size in sizes.items() if not name.startswith("variable/"))
    if received <= _SMALL_STATE:
      return
    try:
      length = make.max_length(config.env)
    except config_lib.ConfigError:
      return  # Without a time limit, episodes can have any number of actions.
    env = self._trainer.train_env.batch_env
    action = env.action_layout.num_bytes // len(env)
    state = tf.nest.flatten(algorithm.initial_state(config.num_envs))
    expected = (
      (config.num_envs * length + recent_episodes.MAX_STEPS) * action
      + config.num_envs * env.step_layout.num_bytes // len(env)
      + sum(math.prod(tensor.shape) * tensor.dtype.size for tensor in state)
    )
    if received > 2 * expected + _SMALL_STATE:
      raise config_lib.ConfigError(
        f"The episodes in the checkpoint have {received:,} bytes, but those of config.yaml have at "
        f"most {expected:,}."
      )

  def _fall_back(self, error: errors.TrainingDiverged) -> None:
    """Loads the newest checkpoint, and changes the random numbers.

    Raises:
      TrainingDiverged: If `_MAX_FALLBACKS` earlier fallbacks to the checkpoint
        did not help, or if the checkpoint cannot be loaded.
    """
    self._num_fallbacks += 1
    if self._num_fallbacks > _MAX_FALLBACKS:
      raise error
    self._record_failures()
    self._metrics.close()
    start_time, restarts = self._start_time, self._restarts
    try:
      self._load()
    except Exception as load_error:
      # "from None" removes the cause. If the cause were a failure of
      # environments, `run` would save the state that diverged.
      raise errors.TrainingDiverged(
        f"{error} The last checkpoint cannot be loaded: {load_error}"
      ) from None
    # `_load` has reset time and restarts to their values in the checkpoint, but
    # time and restarts after the checkpoint still count.
    self._start_time, self._restarts = start_time, restarts
    self._trainer.change_random_numbers(self._num_fallbacks)
    self._time_usage = time_usage.TimeUsage()
    progress.warn(
      f"{error} Training continues from the checkpoint of step "
      f"{self.step:,}, with other random numbers."
    )

  @contextlib.contextmanager
  def _record_fatal_failures(self, save: bool = False) -> Iterator[None]:
    """Context that records failures of environments, and raises them again.

    Args:
      save: Whether to save a checkpoint after a failure, and to suppress
        failures after a request to stop.
    """
    try:
      yield
    except Exception as error:
      # After a failure of environments or an interrupted step, the trainer
      # still has the state from before the epoch. Other errors may leave a
      # state that must not be saved.
      if not crash_folder.is_environment_failure(error):
        raise
      try:
        self._record_failures()
        if not isinstance(error, errors.MachineLost) and not self._stop():
          crash_folder.save_fatal(self._folder, self._failures, self.step, error)
      finally:
        if save:
          self._save()
      if not (save and self._stop()):
        raise

  def _record_failures(self) -> None:
    """Records and prints which environments and workers were replaced."""
    for line in crash_folder.save_survived(self._folder, self._failures, self.step):
      self._restarts += 1
      progress.warn(line)


def _complete(saved: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
  """Adds the defaults of settings that did not exist when a run was saved.

  Args:
    saved: Settings of an earlier version, by dotted key.
    settings: Settings of the current version.
  """
  defaults = config_lib.flat(config_lib.Config())
  return {key: defaults[key] for key in settings if key in defaults} | saved
