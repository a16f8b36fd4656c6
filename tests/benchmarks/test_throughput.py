from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks import throughput
from tests import command

ROUNDS = [{"raw": 100.0, "new": 40.0, "sb3_training": 10.0},
          {"raw": 200.0, "new": 100.0, "sb3_training": 10.0},
          {"raw": 100.0, "new": 60.0, "sb3_training": 30.0}]


def test_ratio_is_the_median_of_each_rounds_own():
  assert throughput.ratio(ROUNDS, "new", "raw") == 0.5
  assert throughput.ratio(ROUNDS, "new", "sb3_training") == 4.0


def test_ours_is_compared_to_gymnasiums():
  table = throughput.markdown({"cores": 2, "load": 0.0, "configs": {"ant": [
      {"raw": 9.0, "gymnasium_async": 2.0, "vector_env": 7.0}]}})
  assert "vector_env ÷ gymnasium_async" in table and "3.5" in table


def test_table():
  table = throughput.markdown({
      "cores": 2, "load": 0.25,
      "configs": {"ant": ROUNDS, "hopper": ROUNDS[:1]}})
  cells = [[cell.strip() for cell in line.strip("|").split("|")]
           for line in table.splitlines()]
  assert cells[0] == ["steps/s (÷ raw)", "ant", "hopper"]
  assert cells[2:] == [
      ["raw", "100 (1.00)", "100 (1.00)"], ["new", "60 (0.50)", "40 (0.40)"],
      ["sb3_training", "10 (0.10)", "10 (0.10)"],
      ["new ÷ sb3_training", "4.0", "4.0"], [""],
      ["2 cores, load 0.2 at the start, 3 rounds."]]


@pytest.mark.parametrize("arguments, message", [
    (["--peers", "tianshou"], "choose from gymnasium, sb3, envpool"),
    (["--peers", "gymnasium,tianshou"], "choose from"),
    (["--configs", "cartpole,cat"], "cat"),
    (["--set", "num_env=3"], "Did you mean 'num_envs'?")])
def test_what_is_unknown_is_refused(arguments, message):
  result = subprocess.run(
      [sys.executable, "-m", "benchmarks.throughput", *arguments],
      cwd=command.ROOT, stderr=subprocess.PIPE, text=True)
  assert result.returncode == 2
  assert message in result.stderr


@pytest.mark.slow
def test_everything_is_measured(tmp_path):
  out = tmp_path / "speed"
  subprocess.run(
      [sys.executable, "-m", "benchmarks.throughput", "--configs",
       "cartpole", "--peers", "gymnasium", "--rounds", "2", "--train",
       "4000", "--set", "num_envs=16", "--out", str(out)],
      cwd=command.ROOT, check=True)
  configs = json.loads(out.with_suffix(".json").read_text())["configs"]
  assert configs.keys() == {"cartpole"}
  for rounds in configs.values():
    assert len(rounds) == 2
    for speeds in rounds:
      assert speeds.keys() == {
          "raw", "gymnasium_sync", "gymnasium_async", "vector_env",
          *throughput.OURS}
      assert all(speed > 0 for speed in speeds.values())
  assert out.with_suffix(".md").read_text().startswith("| steps/s (÷ raw) ")
