"""The mistakes of `mutations`; each one breaks a promise of this project."""

from typing import NamedTuple


class Mutation(NamedTuple):
  """A mistake in one file, and the tests that should detect it."""

  promise: str
  file: str
  old: str  # Text that the file contains once.
  new: str
  tests: str  # Arguments of pytest.


_LOSS = "tests/algorithms/test_ppo.py tests/algorithms/test_loss.py"
_UPDATE = "tests/algorithms/test_ppo.py -k transcription"

MUTATIONS = (
  # Advantages and returns.
  Mutation(
    "GAE: no value after termination",
    "agents/ops/gae.py",
    "has_future = tf.cast(~terminated, reward.dtype)",
    "has_future = tf.ones_like(reward)",
    "tests/ops/test_gae.py",
  ),
  Mutation(
    "GAE: advantages do not cross the ends of sequences",
    "agents/ops/gae.py",
    "tf.cast(~(terminated | last), reward.dtype)",
    "tf.cast(~terminated, reward.dtype)",
    "tests/ops/test_gae.py",
  ),
  Mutation(
    "GAE: the discount also decays advantages",
    "agents/ops/gae.py",
    "decay = discount * lambda_ *",
    "decay = lambda_ *",
    "tests/ops/test_gae.py",
  ),
  Mutation(
    "Truncated episodes bootstrap if the config says so",
    "agents/algorithms/ppo.py",
    "terminated |= batch.truncated",
    "terminated |= batch.last",
    "tests/algorithms/test_ppo.py -k bootstraps",
  ),
  Mutation(
    "Sequences end before invalid steps",
    "agents/simulation/rollout_to_batch.py",
    "last = transitions.terminated | transitions.truncated | ~next_valid",
    "last = transitions.terminated | transitions.truncated",
    "tests/simulation/test_rollout_to_batch.py",
  ),
  Mutation(
    "The successor of the last step is no observation after a reset",
    "agents/simulation/in_graph_batch_env.py",
    "return tf.tensor_scatter_nd_update(results.observ, tf.where(ended), final_observ)",
    "return results.observ",
    "tests/simulation/test_successors.py",
  ),
  # Quotas of whole episodes.
  Mutation(
    "Quotas: shares add up to the number of episodes",
    "agents/simulation/rollout_to_batch.py",
    "tuple(len(range(index, num_episodes, num_envs)) for index in range(num_envs))",
    "(num_episodes // num_envs,) * num_envs",
    "tests/simulation/test_rollout_to_batch.py tests/simulation/test_simulate_episodes.py",
  ),
  Mutation(
    "Quotas: failed episodes count",
    "agents/simulation/simulate.py",
    "left -= tf.cast(result.ended | active & ~result.valid, tf.int32)",
    "left -= tf.cast(result.ended, tf.int32)",
    "tests/behaviour/runs/test_failed_steps_in_graph.py",
  ),
  Mutation(
    "Quotas: environments wait after their share",
    "agents/simulation/simulate.py",
    "active = left > 0 if has_quota else None",
    "active = left > -9 if has_quota else None",
    "tests/simulation/test_simulate_episodes.py",
  ),
  Mutation(
    "Memory is reset when an episode ends",
    "agents/simulation/simulate.py",
    "state = reset_state(state, result.valid & ~result.ended)",
    "state = reset_state(state, result.valid)",
    "tests/simulation/test_simulate.py",
  ),
  # The loss.
  Mutation(
    "The surrogate is the lower bound",
    "agents/algorithms/loss.py",
    "surrogate = tf.minimum(surrogate,",
    "surrogate = tf.maximum(surrogate,",
    _LOSS,
  ),
  Mutation(
    "Direction of KL: penalty",
    "agents/algorithms/loss.py",
    "[start:kl_penalty]\n    kl = self._distribution.kl(samples.policy, parameters)",
    "[start:kl_penalty]\n    kl = self._distribution.kl(parameters, samples.policy)",
    _UPDATE,
  ),
  Mutation(
    "Direction of KL: metric, schedule and adaptive penalty",
    "agents/algorithms/feed_forward_model.py",
    "distribution.kl(before, self.policy(batch))",
    "distribution.kl(self.policy(batch), before)",
    _UPDATE,
  ),
  Mutation(
    "The loss rewards entropy",
    "agents/algorithms/loss.py",
    "- config.entropy_coef * entropy",
    "+ config.entropy_coef * entropy",
    _LOSS,
  ),
  Mutation(
    "The value loss is the larger one",
    "agents/algorithms/loss.py",
    "error = tf.maximum(error,",
    "error = tf.minimum(error,",
    _LOSS,
  ),
  Mutation(
    "The KL penalty grows after large updates",
    "agents/algorithms/kl_penalty.py",
    "kl > _LARGE * self._target",
    "kl < _LARGE * self._target",
    "tests/algorithms/test_kl_penalty.py",
  ),
  Mutation(
    "The KL cutoff weighs sequences equally",
    "agents/algorithms/kl_penalty.py",
    "2 * coef * excess / (num_sequences * length)",
    "2 * coef * excess / num_sequences",
    "tests/algorithms/test_kl_penalty.py",
  ),
  Mutation(
    "Gradients are clipped by their global norm",
    "agents/algorithms/ppo.py",
    "tf.clip_by_global_norm(gradients, self.config.max_grad_norm, norm)",
    "tf.clip_by_global_norm(gradients, 3 * self.config.max_grad_norm, norm)",
    _UPDATE,
  ),
  # Masks, normalization and schedules.
  Mutation(
    "Means ignore padding",
    "agents/ops/masked.py",
    "tf.maximum(tf.reduce_sum(mask, axis, keepdims=True), 1.0)",
    "tf.maximum(tf.reduce_sum(tf.ones_like(mask), axis, keepdims=True), 1.0)",
    "tests/ops/test_masked.py",
  ),
  Mutation(
    "Moments ignore invalid steps",
    "agents/networks/normalization.py",
    "tf.cast(valid, tf.float64)",
    "tf.cast(valid | True, tf.float64)",
    "tests/networks/test_normalization.py",
  ),
  Mutation(
    "Moments combine batches of different means",
    "agents/networks/normalization.py",
    "tf.square(delta) * self.count * added / divisor",
    "tf.square(delta) * added / divisor",
    "tests/networks/test_normalization.py",
  ),
  Mutation(
    "Rewards are divided by their scale",
    "agents/algorithms/reward_scale.py",
    "scaled = reward / self.std",
    "scaled = reward * self.std",
    "tests/algorithms/test_reward_scale.py",
  ),
  Mutation(
    "The linear learning rate falls",
    "agents/algorithms/lr_schedule.py",
    "return self._rate * tf.maximum(0.0, 1.0 - progress)",
    "return self._rate * tf.maximum(0.0, progress)",
    "tests/algorithms/test_lr_schedule.py",
  ),
  Mutation(
    "The adaptive learning rate falls after large updates",
    "agents/algorithms/lr_schedule.py",
    "kl > 2 * target, 1 / _FACTOR",
    "kl > 2 * target, _FACTOR",
    "tests/algorithms/test_lr_schedule.py",
  ),
  Mutation(
    "The KL target of kl_adaptive_linear falls",
    "agents/algorithms/lr_schedule.py",
    "target *= tf.maximum(0.0, 1.0 - progress)",
    "target *= tf.maximum(0.0, progress)",
    "tests/algorithms/test_lr_schedule.py",
  ),
  Mutation(
    "Padding of minibatches has no weight",
    "agents/algorithms/minibatches.py",
    "weight = masked.weight(is_valid, axis=1)",
    "weight = masked.weight(tf.ones_like(is_valid), axis=1)",
    "tests/algorithms/test_minibatches.py",
  ),
  # Random numbers.
  Mutation(
    "Seeds: each epoch has its own order of samples",
    "agents/algorithms/ppo.py",
    "count = step_counter * config.update_epochs + tf.cast(epoch, tf.int64)",
    "count = step_counter * config.update_epochs",
    _UPDATE,
  ),
  Mutation(
    "Seeds: streams of random numbers are independent",
    "agents/ops/random.py",
    "spawn_key=tuple(name.encode())",
    "spawn_key=()",
    "tests/ops/test_random.py",
  ),
  Mutation(
    "Seeds: environments have different episodes",
    "agents/environments/data/episode_data.py",
    "spawn_key=(index, episode)",
    "spawn_key=(episode,)",
    "tests/environments/data tests/environments/test_batch_env.py",
  ),
  Mutation(
    "Seeds: an environment has different episodes",
    "agents/environments/data/action_log.py",
    "int(self._running.episode[index]) + 1",
    "int(self._running.episode[index])",
    "tests/environments/data tests/environments/test_batch_env.py",
  ),
  Mutation(
    "Seeds: resets use the seed of the episode",
    "agents/environments/blocks/gymnasium_block.py",
    "self._envs[offset].reset(seed=seed)",
    "self._envs[offset].reset()",
    "tests/environments/test_batch_env.py",
  ),
  # Replays, checkpoints and reports.
  Mutation(
    "Replays: another observation is detected",
    "agents/environments/data/replay_source.py",
    "equal_observ = observ.tobytes() == bytes(",
    "equal_observ = True or bytes(",
    "tests/environments/data/test_replay_source.py",
  ),
  Mutation(
    "Replays: another reward is detected",
    "agents/environments/data/replay_source.py",
    "equal_score = result is None or result == state.score[offset]",
    "equal_score = True",
    "tests/environments/data/test_replay_source.py",
  ),
  Mutation(
    "Files survive a power cut: fsync of the file",
    "agents/training/run_folder/atomic_write.py",
    "    os.fsync(file.fileno())\n",
    "",
    "tests/training/run_folder/test_atomic_write.py",
  ),
  Mutation(
    "Files survive a power cut: fsync of the folder",
    "agents/training/run_folder/atomic_write.py",
    "os.fsync(descriptor)  #",
    "pass  #",
    "tests/training/run_folder/test_atomic_write.py",
  ),
  Mutation(
    "A save keeps its checkpoint beside damaged newer ones",
    "agents/training/run_folder/checkpoint.py",
    "[path for path in paths(folder) if step_of(path) <= step]",
    "paths(folder)",
    "tests/training/run_folder/test_checkpoint.py",
  ),
  Mutation(
    "Unreadable checkpoints do not count as damaged",
    "agents/training/run_folder/checkpoint.py",
    "is_format = not isinstance(error, OSError) or error.errno in (None, errno.EINVAL)",
    "is_format = True",
    "tests/training/run_folder/test_checkpoint.py",
  ),
  Mutation(
    "Arrays need no more memory than their file has bytes",
    "agents/training/run_folder/array_file.py",
    "if sum(member.file_size for member in members) > size:",
    "if False:",
    "tests/training/run_folder/test_array_file.py",
  ),
  Mutation(
    "Resumed runs report nothing twice",
    "agents/training/monitoring/metrics_writer.py",
    "os.truncate(path, length)",
    "pass",
    "tests/training/monitoring/test_metrics_writer.py",
  ),
  Mutation(
    "Missing reports are an error",
    "agents/training/monitoring/metrics_writer.py",
    "if size < expected and path.exists():",
    "if False:",
    "tests/training/monitoring/test_metrics_writer.py",
  ),
  Mutation(
    "Diverged updates are detected",
    "agents/training/divergence.py",
    "not epoch.finite_weights",
    "False",
    "tests/training/test_loop.py",
  ),
  # Files from other people, and other machines.
  Mutation(
    "Import guard: changed modules need permission",
    "agents/training/run_folder/user_modules.py",
    "return [*map(_digest, self.paths)] == [*self.files.values()]",
    "return True",
    "tests/training/run_folder/test_user_modules.py tests/training/run_folder/test_import_guard.py",
  ),
  Mutation(
    "Import guard: wrappers with side effects need permission",
    "agents/training/run_folder/import_guard.py",
    "    _check_wrapper(wrapper, folder, places)",
    "    pass",
    "tests/training/run_folder/test_import_guard.py",
  ),
  Mutation(
    "Only machines with the secret join a cluster",
    "agents/distributed/access.py",
    "if not hmac.compare_digest(received, digest(rank)):",
    "if False:",
    "tests/distributed/test_access.py",
  ),
  Mutation(
    "A lock of another host is not taken over",
    "agents/training/run_folder/run_lock.py",
    "if before and before.host != socket.gethostname() and before != lost:",
    "if False:",
    "tests/training/run_folder/test_run_lock.py",
  ),
  # Workers, signals and sweeps.
  Mutation(
    "Worker guard: workers end after the trainer",
    "agents/environments/workers/guard.py",
    "if alive not in _wait(None, alive, lifeline_fd):",
    "if False:",
    "tests/environments/workers/test_worker_main.py",
  ),
  Mutation(
    "Worker guard: child processes of environments end, too",
    "agents/environments/workers/guard.py",
    "os.killpg(guarded, signal.SIGKILL)",
    "os.kill(guarded, signal.SIGKILL)",
    "tests/environments/workers/test_worker_main.py",
  ),
  Mutation(
    "Hanging workers are replaced",
    "agents/environments/workers/connection.py",
    "if seconds and time.monotonic() > self.since + seconds:",
    "if False:",
    "tests/behaviour/environments/test_worker_restarts.py -k hang",
  ),
  Mutation(
    "A closed terminal saves the run",
    "agents/training/faults/interrupts.py",
    "_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP",
    "_SIGNALS = signal.SIGINT, signal.SIGTERM",
    "tests/training/faults/test_interrupts.py",
  ),
  Mutation(
    "A signal during a long epoch saves the state before it",
    "agents/training/faults/interrupts.py",
    "    self._save()\n",
    "    pass\n",
    "tests/training/faults/test_interrupts.py",
  ),
  Mutation(
    "Sweeps: only complete runs count",
    "agents/sweeps/trial_runner.py",
    "      if monitor.complete:\n        return\n",
    "      if monitor.complete or code == 0:\n        return\n",
    "tests/sweeps tests/commands/test_sweep.py",
  ),
)
