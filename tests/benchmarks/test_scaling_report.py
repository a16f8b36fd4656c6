import pytest

from benchmarks import scaling_report, scaling_settings
from benchmarks.speed import Speed

OWN = scaling_settings.Point()
FEW, MANY = scaling_settings.Point(("few",)), scaling_settings.Point(("many",))
TWO = scaling_settings.Point(("num_workers=2",), threads=1)
THREE = scaling_settings.Point(("num_workers=3",))


def _results(**speeds):
  """Returns measurements by point from lists of steps per second."""
  return {
    globals()[name]: [Speed(value, None) for value in values] for name, values in speeds.items()
  }


def _advise(**speeds):
  results = _results(**speeds)
  return scaling_report.advise(list(results), results)


def test_advice_is_the_highest_median():
  advice = _advise(OWN=[80, 81, 79], TWO=[100, 101, 99], THREE=[90, 500, 90])
  assert advice == scaling_report.Advice(TWO, 0.8, certain=True)
  assert scaling_report.describe(advice, "cheetah") == (
    "The config's own settings reach 80% of the fastest speed:\n\n"
    "    TF_NUM_INTRAOP_THREADS=1 python train.py --config cheetah "
    "--set num_workers=2"
  )


def test_advice_is_uncertain_if_the_best_is_slower_in_a_round():
  advice = _advise(OWN=[97, 102], THREE=[100, 100])
  assert not advice.certain
  assert "Keep your settings, or try" in scaling_report.describe(advice, "cheetah")


def test_own_settings_can_be_the_fastest():
  advice = _advise(OWN=[100, 90], TWO=[90, 100])
  assert advice.best == OWN
  assert scaling_report.describe(advice, "cheetah") == (
    "The config's own settings are the fastest."
  )


def test_advice_needs_a_measurement_of_the_config():
  assert _advise(FEW=[1]) is None


def test_command_is_quoted_for_the_shell():
  point = scaling_settings.Point(("network.policy_layers=[64,64]",))
  assert scaling_report.command(point, "my robot.py") == (
    "python train.py --config 'my robot.py' --set 'network.policy_layers=[64,64]'"
  )


@pytest.mark.parametrize("speeds, noisy", [([100.0, 110.0], False), ([100.0, 150.0], True)])
def test_report_warns_of_noise(speeds, noisy):
  text = scaling_report.report("cheetah", 2, {1: FEW}, [], _results(FEW=speeds))
  assert ("was noisy" in text) == noisy
  assert ("differed by 50%" in text) == noisy


def test_report_leaves_out_points_without_measurements():
  text = scaling_report.report("cheetah", 2, {1: FEW, 2: MANY}, [FEW, MANY], _results(FEW=[10, 20]))
  assert "| 1            |      15 |" in text
  assert "| 2 " not in text


def test_report_has_a_star_and_the_command():
  results = _results(OWN=[900, 1100], FEW=[2000, 2000])
  text = scaling_report.report("cheetah", 2, {1: FEW, 2: OWN}, [OWN, FEW], results)
  assert "# Speed of `cheetah` on 2 cores" in text
  assert "| 1            |   2,000 |   2,000 |   2,000 |      - |" in text
  assert "| 2 *          |   1,000 |     900 |   1,100 |      - |" in text
  assert "own settings reach 50% of the fastest speed" in text
  assert "    python train.py --config cheetah --set few" in text


def test_report_has_the_median_of_the_memory():
  results = {FEW: [Speed(10.0, 2**20), Speed(10.0, 3 * 2**20), Speed(10.0, 9 * 2**20)]}
  text = scaling_report.report("cheetah", 2, {8: FEW}, [], results)
  assert "|      10 |      10 |      10 |      3 |" in text
