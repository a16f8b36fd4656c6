import dataclasses

import pytest

from benchmarks import simulated_cluster

_QUIET = simulated_cluster.Constants(
    jitter=0.0, rest=1.0, packing=0.5, latency=0.25, reduction=0.125,
    bandwidth=1000.0)
_TASK = simulated_cluster.Task(
    step=0.01, batched_step=0.5, learn=0.1, step_bytes=50, weights=25, envs=8,
    length=5, minibatch=20, epochs=2)


def test_one_machine_tells_nobody():
  # 5 x (8 x 0.01 + 0.5) of stepping, 40 x 0.1 of learning.
  speed, shares = simulated_cluster.simulate(_TASK, 1, _QUIET)
  assert speed == pytest.approx(40 / (2.9 + 4.0 + 1.0))
  assert shares["telling"] == shares["waiting"] == 0
  assert sum(shares.values()) == pytest.approx(1)


def test_two_machines_step_half_each_and_learn_all():
  # Telling: 0.5, two messages of 0.25, 40 x 50 bytes of which half is told.
  speed, _ = simulated_cluster.simulate(_TASK, 2, _QUIET)
  assert speed == pytest.approx(40 / (2.7 + 4.0 + 1.0 + 0.5 + 0.5 + 1.0))


def test_shared_gradients_are_told_at_every_step():
  # Four steps of 0.125 and 100 bytes.
  speed, _ = simulated_cluster.simulate(_TASK, 2, _QUIET, shared=True)
  assert speed == pytest.approx(
      40 / (2.7 + 2.0 + 1.0 + 0.5 + 0.5 + 1.0 + 4 * (0.125 + 0.1)))


def test_all_wait_for_the_slowest():
  jittery = dataclasses.replace(_QUIET, jitter=0.2)
  _, shares = simulated_cluster.simulate(_TASK, 4, jittery)
  assert shares["waiting"] > 0.01


def test_constants_can_be_set(capsys):
  simulated_cluster.main([])
  default = capsys.readouterr().out
  simulated_cluster.main(["--set", "bandwidth=1e7"])
  slower = capsys.readouterr().out
  assert default != slower
  assert default.count("\n") == slower.count("\n") > 20
