import json

import numpy as np
import pytest

from agents import config as config_lib
from benchmarks import throughput
from benchmarks.common import machine, training

ROUNDS = [
  {"raw": 100.0, "new": 40.0, "sb3_training": 10.0},
  {"raw": 200.0, "new": 100.0, "sb3_training": 10.0},
  {"raw": 100.0, "new": 60.0, "sb3_training": 30.0},
]


def test_ratio_is_the_median_of_the_ratios_of_rounds():
  assert throughput.ratio(ROUNDS, "new", "raw") == 0.5
  assert throughput.ratio(ROUNDS, "new", "sb3_training") == 4.0


def test_own_vector_env_is_compared_with_gymnasium():
  table = throughput.markdown(
    {
      "cores": 2,
      "load": 0.0,
      "configs": {"ant": [{"raw": 9.0, "gymnasium_async": 2.0, "vector_env": 7.0}]},
    }
  )
  assert "vector_env ÷ gymnasium_async" in table and "3.5" in table


def test_rows_that_a_task_does_not_have_are_empty():
  rounds = [{"physics": 200.0, "raw": 100.0, "stepping": 50.0, "training": 20.0}]
  table = throughput.markdown(
    {"cores": 2, "load": 0.0, "configs": {"ant": rounds, "pong": [{"raw": 9.0, "training": 3.0}]}}
  )
  cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
  assert ["physics", "200 (2.00)", ""] in cells
  assert ["training", "20 (0.20)", "3 (0.33)"] in cells
  assert ["training ÷ physics", "0.10", ""] in cells


def test_table_has_medians_and_ratios_to_raw():
  table = throughput.markdown(
    {"cores": 2, "load": 0.25, "configs": {"ant": ROUNDS, "hopper": ROUNDS[:1]}}
  )
  cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
  assert cells[0] == ["steps/s (÷ raw)", "ant", "hopper"]
  assert cells[2:] == [
    ["raw", "100 (1.00)", "100 (1.00)"],
    ["new", "60 (0.50)", "40 (0.40)"],
    ["sb3_training", "10 (0.10)", "10 (0.10)"],
    ["new ÷ sb3_training", "4.00", "4.00"],
    [""],
    ["2 cores, load 0.2 at the start, 3 rounds."],
  ]


@pytest.mark.parametrize(
  "arguments, message",
  [
    (["--peers", "tianshou"], "choose from gymnasium, sb3"),
    (["--peers", "gymnasium,tianshou"], "choose from"),
    (["--configs", "cartpole,cat"], "cat"),
    (["--set", "num_env=3"], "Did you mean 'num_envs'?"),
    (
      ["--set", "algorithm.segment_length=null", "--set", "algorithm.update_every=600"],
      "learn from whole episodes",
    ),
  ],
)
def test_invalid_arguments_are_refused(arguments, message, capsys):
  with pytest.raises(SystemExit) as error:
    throughput.main(arguments)
  assert error.value.code == 2
  assert message in capsys.readouterr().err


@pytest.mark.slow
def test_every_measurement_repeats_the_recorded_actions(monkeypatch):
  monkeypatch.setattr(throughput, "_SECONDS", 0.2)
  config = config_lib.Config().override(
    {"env.id": "CartPole-v1", "num_envs": 4, "num_workers": 1, "algorithm.segment_length": 64}
  )
  with training.open_workers(config) as workers, training.open_trainer(config, workers) as trainer:
    own = throughput.OwnTraining(trainer, steps=1000)
    assert own.action.shape[0] % 64 == 0
    recorded = own.action
    own.measure()
    trainer.algorithm.assign(own._trained)
    repeated = own._record()
    length = min(len(recorded), len(repeated))
    np.testing.assert_array_equal(repeated[:length], recorded[:length])


@pytest.mark.slow
def test_all_rows_are_measured_and_written(tmp_path):
  out = tmp_path / "speed"
  machine.python(
    "-m",
    "benchmarks.throughput",
    "--configs",
    "cartpole",
    "--peers",
    "gymnasium",
    "--rounds",
    "1",
    "--train",
    "4000",
    "--set",
    "num_envs=16",
    "--out",
    str(out),
  )
  configs = json.loads(out.with_suffix(".json").read_text())["configs"]
  assert configs.keys() == {"cartpole"}
  for rounds in configs.values():
    assert len(rounds) == 1
    for speeds in rounds:
      assert speeds.keys() == {
        "raw",
        "gymnasium_sync",
        "gymnasium_async",
        "vector_env",
        *throughput.ROWS,
      }
      assert all(speed > 0 for speed in speeds.values())
  assert out.with_suffix(".md").read_text().startswith("| steps/s (÷ raw) ")
