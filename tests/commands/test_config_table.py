import pathlib
import re

from agents import configs
from agents.commands import config_table

_README = (pathlib.Path(__file__).parents[2] / "README.md").read_text()


def test_a_line_for_each_config():
  header, *lines = config_table.table().split("\n\n")[0].splitlines()
  assert header.split() == ["config", "task", "steps", "score", "minutes"]
  assert [line.split()[0] for line in lines] == [
      name for name in configs.names() if configs.load(name)[1].env.id]
  cheetah, = (line for line in lines if line.startswith("cheetah"))
  _, expected = configs.about("cheetah")
  assert cheetah.split()[:6] == [
      "cheetah", "HalfCheetah-v5", "1,000,000", f"{expected.score:g}", "±",
      f"{expected.std:g}"]
  assert cheetah.endswith("never falls, so all episodes last 1000 steps.")


def test_scores_are_those_of_the_readme():
  rows = re.findall(
      r"^\| `(\w+)`[^|]*\| (\d+) \| ([-\d.]+)(?: ± ([\d.]+))? \|", _README,
      re.MULTILINE)
  told = {name: configs.about(name)[1] for name in configs.names()}
  told = {name: (expected.score, expected.std, expected.seeds)
          for name, expected in told.items() if expected}
  assert told == {
      name: (float(score), float(std) if std else None, int(seeds))
      for name, seeds, score, std in rows}
