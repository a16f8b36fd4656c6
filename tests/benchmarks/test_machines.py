import os

import pytest

from benchmarks import machines


@pytest.mark.slow
def test_it_measures_both_and_compares_their_bits(capsys):
  if len(os.sched_getaffinity(0)) < 2:
    pytest.skip("Machines are cores here.")
  machines.main([
      "--configs", "pendulum", "--steps", "20000", "--rounds", "1", "--set",
      "eval_episodes=2"])
  *_, last = capsys.readouterr().out.splitlines()
  cells = [cell.strip() for cell in last.strip("|").split("|")]
  assert cells[0] == "pendulum"
  assert float(cells[3]) > 0
  assert cells[-1] == "yes"


def test_a_row_is_of_medians():
  def run(speed, bits):
    return machines.Run(
        speed, {"learning": speed / 1000, "exchange": 0.1}, {"x": bits})
  assert machines.row([
      [run(100, b"a"), run(150, b"a")], [run(200, b"b"), run(320, b"b")],
      [run(110, b"c"), run(187, b"c")]]) == [
          "110", "187", "1.60", "11%", "10%", "yes"]
  assert machines.row([[run(100, b"a"), run(150, b"b")]])[-1] == "no"
