from benchmarks import advice
from benchmarks import scaling_points

DEFAULT = scaling_points.Point()
TWO = scaling_points.Point(("num_workers=2",), threads=1)
THREE = scaling_points.Point(("num_workers=3",))


def test_the_highest_median_is_chosen():
  chosen = advice.choose(
      {DEFAULT: [80, 81, 79], TWO: [100, 101, 99], THREE: [90, 500, 90]},
      DEFAULT)
  assert chosen == advice.Advice(TWO, 0.8, sure=True)
  assert advice.describe(chosen, "cheetah") == (
      "The defaults reach 80% of the fastest:\n\n"
      "    TF_NUM_INTRAOP_THREADS=1 python train.py --config cheetah "
      "--set num_workers=2")


def test_a_choice_that_is_behind_in_a_round_is_not_sure():
  chosen = advice.choose({DEFAULT: [97, 102], THREE: [100, 100]}, DEFAULT)
  assert not chosen.sure
  assert "keep the defaults, or try" in advice.describe(chosen, "cheetah")


def test_the_defaults_may_be_the_fastest():
  chosen = advice.choose({DEFAULT: [100, 90], TWO: [90, 100]}, DEFAULT)
  assert chosen.best == DEFAULT
  assert advice.describe(chosen, "cheetah") == "The defaults are the fastest."


def test_the_command_can_be_pasted_whatever_it_holds():
  point = scaling_points.Point(("network.policy_layers=[64,64]",))
  assert advice.command(point, "my robot.py") == (
      "python train.py --config 'my robot.py' --set "
      "'network.policy_layers=[64,64]'")
