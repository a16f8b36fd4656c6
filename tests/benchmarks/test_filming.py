import pytest

from benchmarks import filming


@pytest.mark.slow
def test_pairs_are_compared(capsys):
  filming.main(["--config", "pendulum", "--steps", "20000", "--pairs", "1"])
  first, last = capsys.readouterr().out.splitlines()[-2:]
  assert first.startswith("1: ") and "films" in first
  assert int(first.split(" with ")[1].split()[0]) >= 1
  assert last.startswith("with films ÷ without: median ")
