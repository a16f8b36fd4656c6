import pytest

from benchmarks import robots


@pytest.mark.slow
def test_a_row_for_each_config(capsys):
  robots.main(["--configs", "cheetah,hopper", "--envs", "8", "--steps", "50",
               "--rounds", "2"])
  lines = [line for line in capsys.readouterr().out.splitlines() if "|" in line]
  rows = [[cell.strip() for cell in line.strip("|").split("|")]
          for line in lines[2:]]
  assert [name for name, *_ in rows] == ["cheetah", "hopper"]
  for _, *cells in rows:
    assert all(float(cell.replace(",", "")) > 0 for cell in cells)


def test_others_have_nothing_to_compare(capsys):
  with pytest.raises(SystemExit):
    robots.main(["--configs", "cheetah,cartpole"])
  assert "cartpole: CartPole-v1 is not stepped at once" in (
      capsys.readouterr().err)
