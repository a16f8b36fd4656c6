"""One run of Stable-Baselines3 has the scores after all budgets."""

import json

import pytest

from benchmarks.common import machine

_ARGS = "--budgets", "100,3000", "--episodes", "2", "--seed", "5"


@pytest.mark.slow
@pytest.mark.parametrize(
  "args",
  [
    # Observations are a Dict of two parts.
    ("--env", "Pendulum-v1", "--set", "env.wrappers=[{TimeAwareObservation: {flatten: false}}]"),
    ("--env", "Acrobot-v1", "--zoo", "--set", "env.max_length=50"),
  ],
)
def test_scores_follow_each_budget(args):
  pytest.importorskip("stable_baselines3")
  output = machine.python("-m", "benchmarks.peers.sb3_scores", *args, *_ARGS)
  first, last = (json.loads(output.splitlines()[-1])[steps] for steps in ("100", "3000"))
  assert first.keys() == {"mean_action", "mean_action_std", "seconds"}
  assert 0 < first["seconds"] <= last["seconds"]
